"""A headless Chromium, where there is one, by the DevTools protocol over a pair of pipes: no driver, no port, no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WHY_NOT = "there is no Chromium here (Debian, Ubuntu: apt install chromium)"
START = 'exec "$@" 3<&{0} 4>&{1}'  # the two descriptors on which Chromium speaks
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe")
SECONDS = 30


def found() -> str:
    """The path of a Chromium; "" if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), "")


class Page:
    """One page in a browser of its own. `requests`: the URLs that it asked for; `complaints`: what its console said of errors."""

    def __init__(self, width: int = 1000, height: int = 800) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="page-", dir="/tmp")  # a socket in it has a short path
        folder = self._folder.name
        theirs, self._out = os.pipe()
        self._in, ours = os.pipe()
        words = [found(), *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        start = START.format(theirs, ours)
        self.process = subprocess.Popen(
            ["bash", "-c", start, "chromium", *words],
            pass_fds=(theirs, ours),
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": folder, "HOME": folder},
        )
        os.close(theirs)
        os.close(ours)
        self._rest, self._sent, self._session = b"", 0, ""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for name in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{name}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        os.close(self._in)
        self.process.terminate()
        self.process.wait()
        deadline = time.monotonic() + SECONDS
        while os.path.exists(self._folder.name):  # its helper processes outlive it a little, and still write
            try:
                self._folder.cleanup()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def call(self, method: str, /, **values: Any) -> dict[str, Any]:
        """What the browser answers; events meanwhile are kept."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": values}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            got = self._read()
            if got.get("id") == self._sent:
                assert "error" not in got, (method, got)
                return dict(got["result"])
            self._take(got)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            block = os.read(self._in, 65536)
            assert block, "the browser ended"
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        method, values = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(values["exceptionDetails"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.complaints.append(values["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(values["args"]))
        elif method == "Page.loadEventFired":
            self.loaded = True

    def open(self, url: str) -> None:
        """Show a page, until it is loaded."""
        self.loaded = False
        self.call("Page.navigate", url=url)
        end = time.monotonic() + SECONDS
        while not self.loaded:
            assert time.monotonic() < end, "the page did not load"
            self.call("Runtime.evaluate", expression="1")

    def value(self, script: str) -> Any:
        """The JSON value of an expression on the page; a promise is waited for."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return done["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press a key and let it go."""
        given = {"key": key, "code": key, "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code}
        self.call(
            "Input.dispatchKeyEvent",
            type="keyDown" if text else "rawKeyDown",
            **given,
            **({"text": text} if text else {}),
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)
