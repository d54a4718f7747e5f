"""A real browser for the tests: headless Chromium, driven over its DevTools protocol.

Nothing but this machine can be reached from it. What goes wrong inside a page is kept.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_S = 120.0  # of a busy machine
_FLAGS = (
    "--headless=new --disable-gpu --disable-dev-shm-usage --disable-extensions --no-first-run "
    "--no-default-browser-check --disable-background-networking --disable-component-update "
    "--disable-sync --hide-scrollbars --remote-debugging-port=0 --window-size=1400,1000"
).split()
_OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost"


class Page:
    """One tab. `errors` are uncaught exceptions, console errors, and what did not load."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._session: str | None = None
        self._last = 0
        self.errors: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, address: str) -> None:
        """Goes there, and waits until the document is complete."""
        self.errors.clear()
        failed = self._call("Page.navigate", url=address).get("errorText")
        assert not failed, f"{address}: {failed}"
        self.wait("document.readyState === 'complete'")

    def value(self, script: str) -> Any:
        """What a JavaScript expression is; promises are waited for."""
        told = self._call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, f"{script}: {told['exceptionDetails']}"
        return told["result"].get("value")

    def wait(self, script: str, patience_s: float = PATIENCE_S) -> Any:
        """The first value of the expression that is true; the test fails if none comes."""
        end_s = time.monotonic() + patience_s
        while time.monotonic() < end_s:
            if value := self.value(script):
                return value
            time.sleep(0.1)
        shown = self.value("document.body ? document.body.innerText.slice(0, 2000) : ''")
        raise AssertionError(f"{script} stayed false; errors: {self.errors}; the page: {shown}")

    def text(self) -> str:
        """What a reader sees."""
        return str(self.value("document.body.innerText"))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """What is asked in the block is asked of the page's frame, once there is one: MLflow shows
        HTML in one that the page around it may not look into."""
        end_s = time.monotonic() + PATIENCE_S
        while not (frames := self._frames()):
            assert time.monotonic() < end_s, f"no frame came; errors: {self.errors}"
            time.sleep(0.1)
        attached = self._call("Target.attachToTarget", targetId=frames[0], flatten=True)
        outside, self._session = self._session, attached["sessionId"]
        try:
            for domain in ("Runtime", "Log"):
                self._call(f"{domain}.enable")
            yield
        finally:
            self._session = outside
            self._call("Target.detachFromTarget", sessionId=attached["sessionId"])

    def _frames(self) -> list[str]:
        targets = self._call("Target.getTargets")["targetInfos"]
        return [one["targetId"] for one in targets if one["type"] == "iframe"]

    def picture(self) -> bytes:
        """The window as a PNG."""
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

    def resize(self, width: int, height: int) -> None:
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._connection.send(json.dumps(message))
        while True:
            answer: dict[str, Any] = json.loads(self._connection.recv(timeout=PATIENCE_S))
            if answer.get("id") == self._last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._hear(answer.get("method", ""), answer.get("params", {}))

    def _hear(self, event: str, told: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.errors.append(str(details.get("exception", details).get("description", details)))
        elif event == "Runtime.consoleAPICalled" and told["type"] == "error":
            words = [str(arg.get("value", arg.get("description", ""))) for arg in told["args"]]
            self.errors.append("console: " + " ".join(words))
        elif event == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.errors.append(f"{told['entry']['text']} {told['entry'].get('url', '')}".strip())


def find() -> str:
    """Chromium's file; the test is left out, with a sentence, where there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium here: pages are not looked at in a browser")
    return found


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A page of a browser whose profile is in `folder`; no process is left behind."""
    profile = folder / "profile"
    flags = [*_FLAGS, _OFFLINE, f"--user-data-dir={profile}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")  # Chromium refuses to run as root otherwise
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            [find(), *flags, "about:blank"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            address = _address(profile, process)
            with connect(
                address, max_size=None, open_timeout=PATIENCE_S, ping_interval=None
            ) as connection:
                yield Page(connection)
        finally:
            _end(process)


def _address(profile: Path, process: subprocess.Popen[bytes]) -> str:
    """Chromium writes the port and path that it listens on into its profile."""
    file = profile / "DevToolsActivePort"
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        if file.is_file() and len(lines := file.read_text(encoding="utf-8").split()) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        assert process.poll() is None, f"Chromium ended with {process.returncode}"
        time.sleep(0.1)
    raise AssertionError(f"Chromium did not start within {PATIENCE_S:.0f} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills the browser and all that it started: a profile in a test's folder needs no farewell."""
    own = psutil.Process(process.pid)
    family = [own]
    with suppress(psutil.NoSuchProcess):
        family += own.children(recursive=True)
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait(10)
    psutil.wait_procs(family, timeout=10)
