"""Headless Chromium, spoken to in its DevTools protocol over a pair of pipes."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_SECONDS = 120.0

# What the protocol's `Input.dispatchKeyEvent` wants to know of keys that write nothing.
_NAMED_KEYS = {
    "Escape": 27, "Enter": 13, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
    "ArrowDown": 40,
}  # fmt: skip


def program() -> str | None:
    """Returns the browser that is installed, if one is."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


@dataclass(slots=True)
class Page:
    """One page.

    Attributes:
      complaints: script errors, console messages, violations of the content security policy, and
        requests for anything but the file itself, in order.
    """

    _write: int
    _read: int
    complaints: list[str] = field(default_factory=list)
    _session: str | None = None
    _number: int = 0
    _rest: bytes = b""
    _loaded: bool = False
    _url: str = ""

    def attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.call(f"{domain}.enable")

    def open(self, file: Path, *, width: int = 1400, height: int = 900, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        self._url = file.resolve().as_uri()
        self.call("Page.navigate", url=self._url)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._loaded:
            self._take(deadline)

    def evaluate(self, expression: str) -> Any:
        """Returns the value of an expression; it must be one that JSON can say."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, *keys: str) -> None:
        """Presses keys, one after another: names, or texts to be typed."""
        for key in keys:
            if key in _NAMED_KEYS:
                code = _NAMED_KEYS[key]
                event = {"key": key, "code": key, "windowsVirtualKeyCode": code}
                if key == "Enter":
                    event["text"] = "\r"
                self.call("Input.dispatchKeyEvent", type="keyDown", **event)
                self.call("Input.dispatchKeyEvent", type="keyUp", **event)
                continue
            for char in key:
                self.call("Input.dispatchKeyEvent", type="keyDown", key=char, text=char)
                self.call("Input.dispatchKeyEvent", type="keyUp", key=char)

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole, **self._clip(whole))
        file.write_bytes(base64.b64decode(data["data"]))

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        return {"clip": clip}

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = self._take(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result

    def _take(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise EOFError("the browser has gone")
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded":
                self.complaints.append(json.dumps(parameters))
            case "Audits.issueAdded":
                self.complaints.append(json.dumps(parameters["issue"]))
            case "Network.requestWillBeSent" if (
                parameters["request"]["url"].partition("#")[0] != self._url
            ):
                self.complaints.append(f"asks for {parameters['request']['url']}")


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """Starts a browser with one page, and ends it.

    Args:
      profile: an empty directory for what it keeps.
    """
    found = program()
    assert found is not None
    their_read, write = os.pipe()
    read, their_write = os.pipe()
    command = [
        found, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
        "--disable-background-networking", "--no-first-run", f"--user-data-dir={profile}",
    ]  # fmt: skip
    # The protocol's pipes are descriptors 3 and 4 of the browser; the shell puts them there.
    placed = ["bash", "-c", f'exec "$@" 3<&{their_read} 4>&{their_write}', "bash", *command]
    process = subprocess.Popen(
        placed,
        pass_fds=(their_read, their_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(their_read)
    os.close(their_write)
    try:
        page = Page(write, read)
        page.attach()
        yield page
    finally:
        os.close(write)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(read)
