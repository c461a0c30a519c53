"""What does a person see and do? Debian's chromium without a window, driven by the DevTools protocol.

One process for a test session. A page has the size, the pixel ratio and the colour scheme that a test asks for.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --hide-scrollbars --mute-audio --disable-dev-shm-usage"
    " --remote-allow-origins=* --remote-debugging-port=0"
).split()
WAIT_S = 60.0


class BrowserError(Exception):
    """The page or the browser said no."""


class Browser:
    """A chromium and its pages."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="relab-chromium-"))
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={self.folder}", "about:blank"]
        env = os.environ | {"HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder)}
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        self.port = int(_wait(lambda: _lines(self.folder / "DevToolsActivePort"))[0])
        self.pages: list[Page] = []

    def page(self, width: int = 1280, height: int = 900, dark: bool = False, ratio: float = 1.0) -> Page:
        import urllib.request

        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            target = json.load(answer)
        self.pages.append(Page(target["webSocketDebuggerUrl"], width, height, dark, ratio))
        return self.pages[-1]

    def close(self) -> None:
        for page in self.pages:
            page.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Page:
    """One tab."""

    def __init__(self, address: str, width: int, height: int, dark: bool, ratio: float):
        from websockets.sync.client import connect

        self.stack = contextlib.ExitStack()
        self.socket = self.stack.enter_context(connect(address, max_size=None, proxy=None, ping_interval=None))
        self.number, self.errors, self.events = 0, list[str](), list[dict[str, Any]]()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Page.bringToFront")
        self.send("Emulation.setFocusEmulationEnabled", enabled=True)
        size = {"width": width, "height": height, "deviceScaleFactor": ratio, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=WAIT_S))
            if message.get("id") == self.number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        """Errors of scripts and of the policy about what may be loaded; a test fails where there are any."""
        self.events.append(message)
        params = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"].get("exception", params["exceptionDetails"])))
        if message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        result = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in result:
            raise BrowserError(f"{script[:200]}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, address: str, until: str = "document.readyState === 'complete'") -> None:
        self.send("Page.navigate", url=address)
        self.wait(f"location.href !== 'about:blank' && document.readyState === 'complete' && ({until})")

    def wait(self, condition: str, seconds: float = WAIT_S) -> Any:
        """Until an expression is true in the page."""

        def ask() -> Any:
            try:
                return self.run(f"Boolean({condition})")
            except BrowserError:  # the page is on its way to another
                return None

        return _wait(ask, seconds, condition)

    def press(self, key: str, text: str | None = None) -> None:
        for kind in ("keyDown", "keyUp"):
            words = {"text": key if text is None and len(key) == 1 else text} if kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=key, **{k: v for k, v in words.items() if v})

    def drag(self, selector: str, start: float, end: float) -> None:
        """Across an element, from one share of its width to another."""
        box = self.run(
            f"(r => [r.left, r.top, r.width, r.height])(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        y = box[1] + box[3] / 2
        places = [box[0] + box[2] * start, box[0] + box[2] * (start + end) / 2, box[0] + box[2] * end]
        self._mouse("mouseMoved", places[0], y)
        self._mouse("mousePressed", places[0], y)
        for x in places[1:]:
            self._mouse("mouseMoved", x, y)
        self._mouse("mouseReleased", places[-1], y)

    def _mouse(self, kind: str, x: float, y: float) -> None:
        button = {"button": "left", "clickCount": 1, "buttons": 1} if kind != "mouseMoved" else {"buttons": 1}
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def picture(self, file: Path | str, whole: bool = False) -> None:
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(file).write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        with contextlib.suppress(Exception):  # the browser may be gone
            self.send("Page.close")
        self.stack.close()


def _lines(path: Path) -> list[str] | None:
    return path.read_text().splitlines() if path.is_file() and path.stat().st_size else None


def _wait(ask: Callable[[], Any], seconds: float = WAIT_S, what: str = "the browser") -> Any:
    end = time.monotonic() + seconds
    while True:
        value = ask()
        if value:
            return value
        if time.monotonic() > end:
            raise BrowserError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.02)
