"""A page in headless Chromium, watched over the DevTools protocol: its requests, its errors, its size, its picture."""

import base64
import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --disable-dev-shm-usage --remote-debugging-pipe
"""


@dataclass
class Tab:
    """An open page. Everything that it asked for and complained about is kept."""

    _to: Any
    _from: Any
    _session: str = ""
    _calls: int = 0
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer; events on the way are kept."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": parameters}
        self._to.write(json.dumps(message | ({"sessionId": self._session} if self._session else {})).encode() + b"\0")
        self._to.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._calls:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def open(self, path: Path, width: int, height: int, scheme: str, *, fragment: str = "") -> None:
        """Show a file, or a place in it, in a window of this size, in light or dark, and wait until it is loaded."""
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path.resolve().as_uri() + fragment)
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page; of a promise, what it comes to."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Press and release the mouse's button in the middle of an element."""
        find = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{find}.scrollIntoView({{block: 'center'}})")
        x, y = self.evaluate(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({find}.getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press and release a key, by the name that the page sees."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def picture(self, path: Path, *, clip: Sequence[float] = ()) -> None:
        """Write a picture of the window, or of a part of the page: x, y, width, height."""
        part = {"clip": dict(zip(("x", "y", "width", "height"), clip, strict=True), scale=1)} if clip else {}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=bool(clip), **part)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _next(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self._from.read(1)) != b"\0":
            assert byte, "the browser has gone"
            text += byte
        message: dict[str, Any] = json.loads(text)
        event, told = message.get("method"), message.get("params", {})
        if event == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif event in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Audits.issueAdded"):
            self.complaints.append(json.dumps(told))
        return message


@contextlib.contextmanager
def chromium(profile: Path) -> Iterator[Tab]:
    """Start a browser with a new profile and yield its tab."""
    read_commands, write_commands = os.pipe()
    read_events, write_events = os.pipe()
    # The browser reads file descriptor 3 and writes 4.
    shell = f"exec {CHROMIUM} {' '.join(FLAGS.split())} --user-data-dir={profile} 3<&{read_commands} 4>&{write_events}"
    process = subprocess.Popen(
        ["bash", "-c", shell],
        pass_fds=(read_commands, write_events),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_commands)
    os.close(write_events)
    patience = threading.Timer(120, process.kill)  # a browser that hangs fails the test and does not hang it
    patience.start()
    try:
        with os.fdopen(write_commands, "wb") as to, os.fdopen(read_events, "rb") as events:
            tab = Tab(to, events)
            target = tab.call("Target.createTarget", url="about:blank")["targetId"]
            tab._session = tab.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Network", "Runtime", "Log", "Audits"):
                tab.call(f"{domain}.enable")
            yield tab
    finally:
        patience.cancel()
        process.terminate()
        process.wait(30)
