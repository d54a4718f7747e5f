"""Nothing calls anywhere: the network is blocked in every process, and calls would be noted."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.bundling import bundle_of, held, laptop
from tests.servers import free_port, team, told_until
from tests.sweeping import PROJECT

GRID = ("draft=bigram", "k=1", "seed=0", "tokens=24", "draws=200", "timing.pairs=2", "n_jobs=2")
_PLAIN = (
    "PATH HOME USER USERPROFILE SYSTEMROOT TEMP TMP TMPDIR APPDATA LOCALAPPDATA PROGRAMDATA "
    "OMP_NUM_THREADS"
).split()
"""What a user's environment has. In one that looks like a test's, MLflow is quiet anyway."""
Offline = Callable[..., str]


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """Where the calls of blocked processes would be noted."""
    return tmp_path / "calls.txt"


def blocked(calls: Path) -> dict[str, str]:
    """The environment of a process for which there is no network."""
    environment = {name: os.environ[name] for name in _PLAIN if name in os.environ}
    environment["PYTHONPATH"] = f"{PROJECT / 'tests' / 'offline'}{os.pathsep}{PROJECT}"
    return environment | {"OFFLINE_CALLS": str(calls)}


@pytest.fixture
def offline(calls: Path) -> Offline:
    """Runs `python ARGUMENTS` to a good end in a world without a network; what it printed."""

    def call(*arguments: str | Path, fails: bool = False, **more: str) -> str:
        environment = blocked(calls) | more
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(
            command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=400
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    return call


def test_the_block_blocks_and_notes_what_was_called(offline: Offline, calls: Path) -> None:
    code = "import socket; socket.socket().connect(('192.0.2.77', 80))"
    assert "the network is blocked" in offline("-c", code, fails=True)
    assert "connect 192.0.2.77" in calls.read_text(encoding="utf-8")
    code = "import requests; requests.get('https://example.invalid/')"
    assert "the network is blocked" in offline("-c", code, fails=True)
    assert "look up example.invalid" in calls.read_text(encoding="utf-8")


def test_mlflow_would_call_home_if_it_were_let(offline: Offline, calls: Path) -> None:
    """What the other tests would find: MLflow's telemetry, when nobody switches it off."""
    code = (
        "import sys, time, mlflow\n"
        "from pathlib import Path\n"
        "mlflow.MlflowClient(f'sqlite:///{sys.argv[1]}').create_experiment('x')\n"
        "end_s = time.monotonic() + 120\n"
        "while not Path(sys.argv[2]).exists() and time.monotonic() < end_s:\n"
        "    time.sleep(0.1)\n"
    )
    offline("-c", code, calls.with_name("x.db"), calls)
    assert calls.exists(), "MLflow has changed its telemetry: see what it does now"


def test_a_sweep_its_table_its_bundle_and_a_comparison_call_nowhere(
    tmp_path: Path, offline: Offline, calls: Path
) -> None:
    here, file = tmp_path / "here", tmp_path / "x.zip"
    there = laptop(tmp_path / "there")
    for root, machine in ((here, "attic"), (there, "cellar")):
        named = f"tracking.machine={machine}"
        offline("-m", "tests.sweeping", root, "sweep", "real", *GRID, named)
    assert "bigram 1" in offline("-m", "tracking", "--root", here, "show")
    offline("-m", "tracking", "--root", here, "export", file)
    offline("-m", "tracking", "--root", there, "import", file)
    told = offline("-m", "tracking", "--root", there, "compare", "--html", tmp_path / "x.html")
    assert "attic" in told and "cellar" in told and (tmp_path / "x.html").is_file()
    assert not calls.exists(), calls.read_text(encoding="utf-8")
    assert {run["status"] for run in held(there).values()} == {"FINISHED"}


def test_mlflows_page_calls_nowhere(tmp_path: Path, calls: Path) -> None:
    root, port = laptop(tmp_path / "here", "s1"), str(free_port())
    command = [sys.executable, "-m", "tracking", "--root", str(root), "ui", "--port", port]
    with (
        subprocess.Popen(
            command,
            cwd=PROJECT,
            env=blocked(calls),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running,
        ExitStack() as last,
    ):
        last.callback(running.kill)
        address = told_until(running, "Ctrl-C ends it.").splitlines()[0]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(address, timeout=60) as answer:
            assert b"MLflow" in answer.read()
        running.terminate()
        assert running.wait(60) == 0
    assert not calls.exists(), calls.read_text(encoding="utf-8")


def test_a_team_works_without_the_rest_of_the_world(
    tmp_path: Path, offline: Offline, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = bundle_of(laptop(tmp_path / "here", "s1"))
    for name in [name for name in os.environ if name.startswith("PYTEST")]:
        monkeypatch.delenv(name)  # the server's process must not know that it is tested
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "tests" / "offline"))
    monkeypatch.setenv("OFFLINE_CALLS", str(calls))
    with team(tmp_path / "team", free_port()) as page:
        offline("-m", "tracking", "--root", tmp_path, "import", file, MLFLOW_TRACKING_URI=page.base)
    assert not calls.exists(), calls.read_text(encoding="utf-8")
