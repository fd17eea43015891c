"""The page: the data, the style and the scripts in one HTML file that needs no other and no network."""

import base64
import hashlib
import json
import re
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dae.catalog import DAE, GAE
from dae.explorer.data import Exploration, to_json

_GENERATOR = "dae explore"
ASSETS = files("dae.explorer") / "assets"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
# What could end the element that holds the data; JSON has these characters in strings alone.
_ESCAPED = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def render(exploration: Exploration) -> str:
    """Return the page as text; no name in it can become markup."""
    environment = Environment(
        loader=PackageLoader("dae.explorer", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Blue and orange of Okabe and Ito: gains and losses that people with any colour vision can tell apart.
    style = environment.get_template("explorer.css").render(gain=DAE.colour, loss=GAE.colour)
    program = script()
    data = json.dumps(to_json(exploration, packed=True), allow_nan=False, separators=(",", ":"))
    return environment.get_template("page.html").render(
        exploration=exploration,
        generator=_GENERATOR,
        data=Markup(data.translate(_ESCAPED)),
        style=Markup(style),
        style_hash=_hash(style),
        script=Markup(program),
        script_hash=_hash(program),
    )


def is_page(content: bytes) -> bool:
    """Say whether a file is a page that `render` made."""
    return f'<meta name="generator" content="{_GENERATOR}">'.encode() in content[:4096]


def script() -> str:
    """Return the modules as one script, in the order of their imports.

    A page from a disk cannot import files. The modules share one scope here, so their names must differ; a test checks.
    """
    ordered: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in ordered:
            text = (ASSETS / name).read_text(encoding="utf-8")
            for needed in _IMPORT.findall(text):
                add(needed)
            ordered[name] = re.sub(r"^export ", "", _IMPORT.sub("", text), flags=re.MULTILINE)

    add("main.js")
    return "\n" + "\n".join(ordered.values())


def _hash(content: str) -> str:
    """What a Content-Security-Policy calls the content of an element that it allows."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
