"""Mutations of files: blind ones of bytes, and ones that know the format and reach the checks behind the parser."""

import hashlib
import io
import json
import os
import pickle
import random
import shutil
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

Change = tuple[str, bytes]  # what was done, and the content after it
DEPTH = 100_000
GIANT = 20 * 2**30


class Mutated(NamedTuple):
    """What was done to a file."""

    name: str
    may_differ: bool  # a checksum does not cover it: a valid file with other numbers is read as what it says


# Bytes. --------------------------------------------------------------------------------------------------------------


def _place(rng: random.Random, content: bytes) -> int:
    return rng.randrange(len(content) + 1)


def flip_bits(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 3, 20)) if content else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def splice(rng: random.Random, content: bytes) -> bytes:
    start, length = _place(rng, content), rng.choice((1, 4, 30, 300))
    return content[:start] + rng.randbytes(length) + content[start + rng.choice((0, length)) :]


def swap_blocks(rng: random.Random, content: bytes) -> bytes:
    a, b, c = sorted(_place(rng, content) for _ in range(3))
    return content[:a] + content[b:c] + content[a:b] + content[c:]


def insert(*texts: bytes) -> Callable[[random.Random, bytes], bytes]:
    def inserted(rng: random.Random, content: bytes) -> bytes:
        place = _place(rng, content)
        return content[:place] + rng.choice(texts) + content[place:]

    return inserted


def change_a_number(rng: random.Random, content: bytes) -> bytes:
    """Replace one run of digits by a number that is too much for something."""
    digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
    if not digits:
        return content
    start = end = rng.choice(digits)
    while start > 0 and 48 <= content[start - 1] <= 57:
        start -= 1
    while end < len(content) and 48 <= content[end] <= 57:
        end += 1
    number = rng.choice((b"0", b"-1", b"1e308", b"1e400", b"9" * 30, b"9" * 5000, b"18446744073709551616", b"0.5"))
    return content[:start] + number + content[end:]


DEEP = (b"[" * DEPTH, b'{"a":' * DEPTH, b"[" * DEPTH + b"]" * DEPTH)
OF_BYTES: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "flipped bits": flip_bits,
    "truncated": lambda rng, content: content[: rng.randrange(max(1, len(content)))],
    "emptied": lambda rng, content: b"",
    "doubled": lambda rng, content: content + content,
    "spliced": splice,
    "swapped blocks": swap_blocks,
    "inserted zeros": insert(b"\0", b"\0" * 100),
    "inserted what is not UTF-8": insert(b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf0\x9f", b"\xef\xbb\xbf"),
    "inserted depth": insert(*DEEP),
    "replaced by depth": lambda rng, content: rng.choice(DEEP),
    "changed a number": change_a_number,
}


# JSON. ---------------------------------------------------------------------------------------------------------------


class Raw:
    """Text that `json.dumps` would not write."""

    def __init__(self, text: str) -> None:
        self.text = text


def _array(dtype: str, shape: list[Any], content: Any) -> dict[str, Any]:
    return {"@": "array", "with": [dtype, shape, content]}


NASTY: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 0.5, 1e308, -1e308, 5e-324, 2**31, 2**40, 2**53, 2**63, 2**70, 10**400),
    *(
        "",
        "x",
        "\ud800",
        "\0",
        "a\nb",
        "\x1b[31mred",
        "../../x",
        "/dev/zero",
        "None",
        "1",
        "nan",
        "é" * 300,
        "y" * 100_000,
    ),
    *([], {}, [[]], [None], [[[[[1]]]]], {"a": {"a": {}}}, [0] * 1000, {"@": None}, {"@": []}, {"": 0}),
    *(
        Raw("NaN"),
        Raw("-Infinity"),
        Raw("1e400"),
        Raw("-0"),
        Raw("01"),
        Raw('"\\ud800"'),
        Raw("[" * DEPTH + "]" * DEPTH),
    ),
    *(Raw("[" * 400 + "]" * 400), Raw('{"a":' * 900 + "1" + "}" * 900), Raw('{"a":1,"a":2}'), Raw("")),
    Raw('{"@":"tuple","with":[' * 300 + "1" + "]}" * 300),
    *({"@": "class", "with": [name]} for name in ("Adam", "MlpPolicy", "Identity", "os.system", "FlattenExtractor")),
    *({"@": "tuple"}, {"@": "tuple", "with": []}, {"@": "tuple", "with": [1, 2]}, {"@": "eval", "with": ["1"]}),
    *({"@": "float", "with": [text]} for text in ("nan", "inf", "-inf", "1" * 5000, "x")),
    *({"@": "dict", "with": []}, {"@": "dict", "with": [[[], 1]]}, {"@": "dict", "with": [[1, 2], ["a", 3]]}),
    *(_array("<f4", shape, "AAAAAA==") for shape in ([1], [], [-1], [2], [1, 1, 1], [0], [2**40, 2**40], [2**40, 0])),
    *(_array(dtype, [1], "AAAAAA==") for dtype in ("O", "<U1", "<i8", "V4", "", "f4,f4", "|S0", "<M8[s]", ">f4")),
    *(_array("<f4", [1], text) for text in ("", "!", 3, "AAAAAA", "AADAfw==")),  # the last is NaN
    _array("|V0", [2**50], ""),
    *({"@": "generator", "with": [state]} for state in ({}, {"bit_generator": "PCG64"}, {"bit_generator": "os"}, 3)),
    {"@": "generator", "with": [{"bit_generator": "PCG64", "state": {"state": -1, "inc": 2**200}}]},
    *({"@": "discrete", "with": [n, 0, "<i8"]} for n in (0, 3, 2**33, 2**62)),
    *({"@": "multi-binary", "with": [shape]} for shape in ([], [2**33], [2**20, 2**20], [-1], 4)),
    {"@": "multi-discrete", "with": [_array("<i8", [1], "//////////8="), _array("<i8", [1], "AAAAAAAAAAA="), "<i8"]},
    {"@": "box", "with": [_array("<f4", [1], "AAAAAA=="), _array("<f4", [1], "AAAAAA=="), "<f4"]},
    {"@": "box", "with": [0, 1, "O"]},
    {"@": "dict-space", "with": [[["a", {"@": "discrete", "with": [2, 0, "<i8"]}]]]},
    *({"@": kind, "with": [value]} for kind in ("float-schedule", "constant-schedule") for value in (-1, "x", None)),
    {"@": "linear-schedule", "with": [1, 0, 0]},
)


def _slots(tree: Any, path: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Yield every value of a tree as container, key and path."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        place = f"{path}.{key}" if path else str(key)
        yield tree, key, place
        yield from _slots(value, place)


def _dumps(tree: Any) -> bytes:
    raws: list[str] = []

    def stand_in(value: Any) -> str:
        raws.append(value.text)
        return f"@raw{len(raws) - 1}@"

    text = json.dumps(tree, default=stand_in)
    for i, raw in enumerate(raws):
        text = text.replace(f'"@raw{i}@"', raw)
    return text.encode()


def _choose_slot(rng: random.Random, tree: Any) -> tuple[Any, Any, str]:
    """Choose a value; those near the root as often as the many in long lists."""
    slots = list(_slots(tree))
    depth = rng.choice(sorted({place.count(".") for _, _, place in slots}))
    return rng.choice([slot for slot in slots if slot[2].count(".") == depth])


def mutate_json(rng: random.Random, content: bytes) -> Change:
    tree = json.loads(content)
    holder, key, place = _choose_slot(rng, tree)
    how = rng.choice(("nasty", "nasty", "nasty", "nasty", "other", "nudged", "removed", "renamed", "doubled", "added"))
    if how == "nasty":
        holder[key] = value = rng.choice(NASTY)
        name = value.text if isinstance(value, Raw) else repr(value)
        return f"{place} becomes {name[:60]}", _dumps(tree)
    if how == "other":
        other, other_key, from_place = _choose_slot(rng, tree)
        holder[key] = json.loads(json.dumps(other[other_key]))
        return f"{place} becomes a copy of {from_place}", _dumps(tree)
    if how == "nudged":
        value = holder[key]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        nudged = rng.choice((value + 1, -value, value * 2, value / 3, float(value), str(value))) if number else [value]
        holder[key] = not value if isinstance(value, bool) else nudged
        return f"{place} becomes {repr(holder[key])[:60]}", _dumps(tree)
    if how == "removed":
        del holder[key]
        return f"{place} is removed", _dumps(tree)
    if isinstance(holder, list):
        holder.insert(key, json.loads(json.dumps(holder[key])))
        return f"{place} is there twice", _dumps(tree)
    if how == "renamed":
        name = rng.choice((key + "x", key.upper(), "", "../x", "x" * 5000, "é", "__class__", "\0"))
        holder[name] = holder.pop(key)
        return f"{place} is renamed {name[:20]!r}", _dumps(tree)
    if how == "doubled":
        value = rng.choice((None, 1, "x", holder[key]))
        pairs = [f"{json.dumps(k)}:{json.dumps(v)}" for k, v in holder.items()] + [f'"{key}":{json.dumps(value)}']
        raw = Raw("{" + ",".join(pairs) + "}")
        return f"{place} is there twice", _dumps(raw if holder is tree else _replaced(tree, holder, raw))
    name = rng.choice(("unheard_of", "predict", "_logger", "env", "@", "", "learn", "device", "tensorboard_log"))
    holder[name] = rng.choice([value for value in NASTY if not isinstance(value, Raw)])
    return f"{name!r} is added beside {place}", _dumps(tree)


def _replaced(tree: Any, old: Any, new: Any) -> Any:
    if tree is old:
        return new
    if isinstance(tree, dict):
        return {key: _replaced(value, old, new) for key, value in tree.items()}
    return [_replaced(value, old, new) for value in tree] if isinstance(tree, list) else tree


# Weights: a length, a JSON header, the numbers. ----------------------------------------------------------------------


def mutate_safetensors(rng: random.Random, content: bytes) -> Change:
    (size,) = struct.unpack("<Q", content[:8])
    header, numbers = content[8 : 8 + size], content[8 + size :]
    how = rng.choice(("header", "header", "tensor", "tensor", "length", "not finite", "noise", "no tensors"))
    if how == "header":
        what, header = mutate_json(rng, header)
        return f"header: {what}", struct.pack("<Q", len(header)) + header + numbers
    if how == "tensor":
        what, tree = _mutated_tensor(rng, json.loads(header))
        header = json.dumps(tree).encode()
        return what, struct.pack("<Q", len(header)) + header + numbers
    if how == "length":
        length = rng.choice((0, 1, size - 1, size + 1, len(content), 2**31, 2**40, 2**63, 2**64 - 1))
        return f"the header's length is {length}", struct.pack("<Q", length) + content[8:]
    if how == "no tensors":
        return "there are no tensors", struct.pack("<Q", 2) + b"{}"
    if len(numbers) < 4:
        return "nothing", content
    place = rng.randrange(len(numbers) // 4) * 4
    value = rng.randbytes(4) if how == "noise" else struct.pack("<f", rng.choice((float("nan"), float("inf"), 3e38)))
    return f"a weight is {value.hex()}", content[: 8 + size] + numbers[:place] + value + numbers[place + 4 :]


def _mutated_tensor(rng: random.Random, tree: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    names = [name for name in tree if name != "__metadata__"]
    if not names:
        return "nothing", tree
    name = rng.choice(names)
    tensor = tree[name]
    how = rng.choice(("shape", "dtype", "offsets", "renamed", "removed", "as another"))
    if how == "shape":
        sizes = tensor["shape"]
        shapes = ([], [0], [1], [*sizes, 1], sizes[::-1], [2**40, 2**40], [-1], [sum(sizes)], [*sizes, 0])
        tensor["shape"] = rng.choice(shapes)
    elif how == "dtype":
        tensor["dtype"] = rng.choice(("F64", "F16", "BF16", "I64", "I32", "BOOL", "U8", "F8_E4M3", "C64", "X"))
    elif how == "offsets":
        start, end = tensor["data_offsets"]
        tensor["data_offsets"] = rng.choice(([end, start], [0, 2**60], [start, end + 4], [0, 0], [start + 4, end + 4]))
    elif how == "renamed":
        tree[rng.choice((name + "x", "", "0." + name, "99999999999.exp_avg", "-1.step"))] = tree.pop(name)
    elif how == "removed":
        del tree[name]
    else:
        other = rng.choice(names)
        tree[name], tree[other] = tree[other], tree[name]
    return f"{name}: {how}", tree


# Saved agents: a zip. ------------------------------------------------------------------------------------------------


class Planted:
    """What runs code when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def _zipped(parts: list[tuple[str, bytes]], compressed: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts:
            how = zipfile.ZIP_DEFLATED if name == compressed else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(name), content, how)
    return buffer.getvalue()


def mutate_agent(rng: random.Random, content: bytes, marker: Path) -> tuple[str, bytes, bool]:
    """Mutate a part of an agent and put it together again, or the zip itself; say whether its sums are right."""
    archive = zipfile.ZipFile(io.BytesIO(content))
    parts = {name: archive.read(name) for name in archive.namelist()}
    how = rng.choice(
        ("data", "data", "data", "data", "size", "weights", "weights", "part", "member", "member", "zip", "planted")
    )
    if how == "zip":
        return *_mutated_zip(rng, content), False
    name = rng.choice(sorted(parts))
    if how == "data":
        what, parts["data.json"] = mutate_json(rng, parts["data.json"])
        return f"data.json: {what}", _zipped(list(parts.items())), True
    if how == "size":
        what, parts["data.json"] = _claiming_a_size(rng, parts["data.json"])
        return f"data.json: {what}", _zipped(list(parts.items())), True
    if how == "weights":
        name = rng.choice([part for part in sorted(parts) if part.endswith(".safetensors")])
        what, parts[name] = mutate_safetensors(rng, parts[name])
        return f"{name}: {what}", _zipped(list(parts.items())), True
    if how == "part":
        what = rng.choice(sorted(OF_BYTES))
        parts[name] = OF_BYTES[what](rng, parts[name])
        return f"{name}: {what}", _zipped(list(parts.items())), True
    if how == "planted":
        parts["pickled.bin"] = payload = pickle.dumps({"seed": Planted(marker)})
        if rng.random() < 0.5:
            parts["data.json"] = json.dumps(json.loads(parts["data.json"]) | {"pickled": ["seed"]}).encode()
        else:
            parts[name] = payload
        return f"planted code in pickled.bin and {name}", _zipped(list(parts.items())), True
    how = rng.choice(("dropped", "twice", "renamed", "compressed", "added", "comment", "reordered"))
    listed = list(parts.items())
    if how == "dropped":
        listed = [(other, part) for other, part in listed if other != name]
    elif how == "twice":
        listed.append((name, rng.choice((parts[name], b"", b"{}"))))
    elif how == "renamed":
        new = rng.choice(("../x", str(marker), "x", "data", name.upper(), "é", "a/../" + name, "y" * 60_000))
        listed = [(new if other == name else other, part) for other, part in listed]
    elif how == "added":
        listed.append((rng.choice(("../x", str(marker), "estimator.safetensors", "more.bin")), b"0" * 9))
    elif how == "reordered":
        rng.shuffle(listed)
    zipped = _zipped(listed, compressed=name if how == "compressed" else "")
    if how == "comment":
        zipped = zipped[:-2] + struct.pack("<H", 5) + b"hello"
    return f"{name}: {how}", zipped, True


SIZES: tuple[tuple[str, Any], ...] = (
    *((name, {"@": "discrete", "with": [2**33, 0, "<i8"]}) for name in ("observation_space", "action_space")),
    *((name, {"@": "multi-binary", "with": [[2**33]]}) for name in ("observation_space", "action_space")),
    ("observation_space", {"@": "multi-binary", "with": [[2**16, 2**16]]}),
    *(("net_arch", layers) for layers in ([2**40], [2**16] * 4, [1] * 100_000, {"pi": [2**33], "vf": []})),
    *(("width", factor) for factor in (1e6, 1e18, 1e-9, -1)),
    *((name, size) for name in ("n_steps", "n_envs", "batch_size", "_stats_window_size") for size in (2**33, 2**70)),
)


def _claiming_a_size(rng: random.Random, content: bytes) -> Change:
    """Let a description ask for more memory than there is."""
    description = json.loads(content)
    name, value = rng.choice(SIZES)
    data = description["data"]
    if name == "net_arch":
        data["policy_kwargs"][name] = value
    elif name == "width":
        data["policy_kwargs"]["features_extractor_kwargs"] = {name: value}
    else:
        data[name] = value
    return f"{name} becomes {repr(value)[:60]}", json.dumps(description).encode()


def _mutated_zip(rng: random.Random, content: bytes) -> Change:
    """Change bytes of the zip's own records: sizes, offsets, flags, methods."""
    signatures = [b"PK\1\2", b"PK\3\4", b"PK\5\6"]
    found = [i for i in range(len(content) - 4) if content[i : i + 4] in signatures]
    place = rng.choice(found) + rng.randrange(4, 46)
    value = rng.choice((b"\0", b"\xff", b"\xff\xff\xff\xff", b"\1", b"\x63\0", rng.randbytes(2)))
    changed = content[:place] + value + content[place + len(value) :]
    return f"byte {place} of the zip is {value.hex()}", changed[: len(content)]


# Arrays in NumPy's format. -------------------------------------------------------------------------------------------


def mutate_npy(rng: random.Random, content: bytes) -> Change:
    (length,) = struct.unpack("<H", content[8:10])
    header, numbers = content[10 : 10 + length].decode("latin1"), content[10 + length :]
    how = rng.choice(("shape", "type", "numbers", "numbers", "length", "header", "pickle", "archive"))
    if how == "shape":
        shape = rng.choice(
            ("()", "(0,)", "(1,)", "(-1,)", f"({2**40},)", f"({2**33}, {2**33})", "(2, 2)", "'x'", "None")
        )
        start, end = header.index("(", header.index("'shape'")), header.index("}", header.index("'shape'"))
        header = header[:start] + shape + header[end:]
    elif how == "type":
        text = rng.choice(("'|O'", "'<f8'", "'V1'", "'|V0'", "[('a', '|O')]", "''", "'<U4'", "3", "[('rng0', '<u8')]"))
        header = f"{{'descr': {text}, 'fortran_order': False, 'shape': (4,), }}\n"
    elif how == "numbers":
        changed = bytearray(numbers)
        for _ in range(rng.choice((1, 4, 100)) if changed else 0):
            changed[rng.randrange(len(changed))] = rng.choice((0, 1, 127, 128, 255))
        return "other numbers", content[: 10 + length] + bytes(changed)
    elif how == "length":
        value = struct.pack("<H", rng.choice((0, 1, length + 64, 65535)))
        return "another length of the header", content[:8] + value + content[10:]
    elif how == "header":
        header = rng.choice(("[" * 5000, "{}", "(" * 200, "{'descr': '<f8'}", "9" * 5000, "\0" * 20, "1+" * 4000 + "1"))
    elif how == "pickle":
        return "a pickle", pickle.dumps(Planted(Path("marker")))
    else:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("arr_0.npy", content)
        return "an archive of arrays", buffer.getvalue()
    encoded = header.encode("latin1")
    return f"{how}: {header.strip()[:60]}", content[:8] + struct.pack("<H", len(encoded)) + encoded + numbers


# Tables and TOML. ----------------------------------------------------------------------------------------------------

CELLS = (
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-1",
    "0",
    "",
    "x",
    "1e300",
    "-1e300",
    "1e-320",
    "0x10",
    "1_0",
    "9" * 400,
    "0.5",
)
CELLS += ("9007199254740993", "9223372036854775808", " 1", "1 ", '"1"', '"', "é", "\x00", "1,1", "True", "y" * 200_000)


def mutate_csv(rng: random.Random, content: bytes) -> Change:
    lines = content.decode().splitlines(keepends=True)
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    how = rng.choice(
        ("cell", "cell", "cell", "dropped a line", "doubled a line", "swapped lines", "column", "many", "ends")
    )
    if how == "cell":
        cells, cell = lines[i].rstrip("\n").split(","), rng.choice(CELLS)
        cells[rng.randrange(len(cells))] = cell
        lines[i] = ",".join(cells) + "\n"
        how = f"a cell of line {i + 1} is {cell[:20]!r}"
    elif how == "dropped a line":
        del lines[i]
    elif how == "doubled a line":
        lines.insert(i, lines[i])
    elif how == "swapped lines":
        lines[i], lines[j] = lines[j], lines[i]
    elif how == "column":
        k = rng.randrange(5)
        split = [line.rstrip("\n").split(",") for line in lines]
        lines = [",".join(cells[:k] + cells[k + 1 :]) + "\n" for cells in split]
        how = f"column {k + 1} is missing"
    elif how == "many":
        lines.extend(lines[i : i + 1] * 20_000)
        how = "20,000 lines more"
    else:
        ending = rng.choice(("\r\n", "\r", "\n\n", ""))
        lines = [line.rstrip("\n") + ending for line in lines]
        how = f"lines end with {ending!r}"
    return how, "".join(lines).encode()


TOML_VALUES = (
    *(
        "true",
        "0",
        "-1",
        "1",
        "2.5",
        "1e308",
        "1e400",
        "inf",
        "nan",
        "9223372036854775808",
        "9" * 30,
        "9" * 5000,
        "0x7f",
    ),
    *(
        '""',
        '"x"',
        '"None"',
        '"500K"',
        '"1e400"',
        '"nan"',
        '"-5K"',
        '"true"',
        '"9e99M"',
        '"\\u0000"',
        f'"{"y" * 100_000}"',
    ),
    *('"\\u001b[31mred"', "[]", "[1]", "[[1]]", "{}", "{a = 1}", "1979-05-27", "07:32:00", "'''\na\nb'''"),
    *(
        "[" * DEPTH,
        "[" * DEPTH + "]" * DEPTH,
        "[" * 300 + "]" * 300,
        "{a=" * 500 + "1" + "}" * 500,
        "",
        '"é"',
        '"/dev/zero"',
    ),
)


def mutate_toml(rng: random.Random, content: bytes) -> Change:
    lines = content.decode().splitlines(keepends=True)
    i = rng.randrange(len(lines))
    how = rng.choice(("value", "value", "value", "value", "name", "doubled", "removed", "table", "dotted"))
    name = lines[i].partition("=")[0].strip()
    if how == "value":
        value = rng.choice(TOML_VALUES)
        lines[i] = f"{name} = {value}\n"
        return f"{name} becomes {value[:40]}", "".join(lines).encode()
    if how == "name":
        lines[i] = lines[i].replace(name, rng.choice((name + "x", '""', "config", "resume", "__class__", '"a\\nb"')), 1)
    elif how == "doubled":
        lines.append(lines[i])
    elif how == "removed":
        del lines[i]
    elif how == "table":
        lines.insert(i, rng.choice(("[settings]\n", "[[runs]]\n", f"[{name}]\n", "[" + "a." * 5000 + "a]\n")))
    else:
        lines[i] = f"{name}.{'a.' * rng.choice((1, 5000))}a = 1\n"
    return f"{name}: {how}", "".join(lines).encode()


# What a format allows. -----------------------------------------------------------------------------------------------


def mutate_content(rng: random.Random, path: Path, marker: Path) -> Mutated:
    """Mutate the content of a file, by its format or blindly; say whether checksums within the file are right."""
    content = path.read_bytes()
    sealed = True  # what checks itself cannot become another valid file by chance
    if rng.random() < 0.25 or not content:
        name = rng.choice(sorted(OF_BYTES))
        changed = OF_BYTES[name](rng, content)
        sealed = path.suffix != ".zip"
    elif path.suffix == ".zip":
        name, changed, sealed = mutate_agent(rng, content, marker)
    elif content.startswith(b"\x93NUMPY"):
        name, changed = mutate_npy(rng, content)
    elif path.suffix in (".json", ".bin"):
        name, changed = mutate_json(rng, content)
    elif path.suffix == ".csv":
        name, changed = mutate_csv(rng, content)
    elif path.suffix == ".toml":
        name, changed = mutate_toml(rng, content)
    else:
        name = rng.choice(sorted(OF_BYTES))
        changed = OF_BYTES[name](rng, content)
    path.write_bytes(changed)
    return Mutated(name, sealed)


def mutate_place(rng: random.Random, path: Path, outside: Path) -> str:
    """Put something else in the place of a file or folder; `outside` is a folder that no reader may change."""
    kinds = [
        "missing",
        "a folder",
        "a pipe",
        "a link to its content elsewhere",
        "a link to a device",
        "a link to nothing",
    ]
    kinds += ["a link to itself", "a file"] if path.is_dir() else ["a link to itself", "a giant", "a giant"]
    kind = rng.choice(kinds)
    if kind == "a giant":
        os.truncate(path, GIANT)
        return kind
    elsewhere = outside / path.name
    path.rename(elsewhere)
    if kind == "a link to its content elsewhere":
        path.symlink_to(elsewhere)
        return kind
    shutil.rmtree(elsewhere) if elsewhere.is_dir() else elsewhere.unlink()
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a link to a device":
        path.symlink_to("/dev/zero")
    elif kind == "a link to nothing":
        path.symlink_to(outside / "nothing")
    elif kind == "a link to itself":
        path.symlink_to(path)
    elif kind == "a file":
        path.write_bytes(b"x")
    return kind


def reseal(checkpoint: Path) -> None:
    """Write into a manifest what its parts are now, as someone would who crafts a checkpoint."""
    manifest = json.loads((checkpoint / "manifest.json").read_bytes())
    for name in manifest["files"]:
        content = (checkpoint / name).read_bytes()
        manifest["files"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))


def mutate(rng: random.Random, path: Path, outside: Path, marker: Path, *, checked: bool) -> Mutated:
    """Mutate a file or folder. With `checked` it belongs to a checkpoint, whose manifest is sometimes made to agree."""
    if path.is_dir() or rng.random() < 0.12:
        is_folder, kind = path.is_dir(), mutate_place(rng, path, outside)
        # Of a checkpoint that is gone nothing is left that could tell.
        return Mutated(f"replaced by {kind}", may_differ=not checked or (is_folder and kind == "missing"))
    mutated = mutate_content(rng, path, marker)
    if checked and path.name != "manifest.json" and rng.random() < 0.75:
        reseal(path.parent)
        return Mutated(f"{mutated.name}; resealed", mutated.may_differ)
    return mutated._replace(may_differ=mutated.may_differ and not checked)
