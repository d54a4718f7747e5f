"""A store that is away is told at once, in one sentence; the sweep goes on, its results wait."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.bundling import bundle_of, laptop, tell
from tests.servers import free_port
from tests.sweeping import Result, program
from tracking import reach
from tracking.recorder import Recorder
from tracking.trouble import StoreUnavailable


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow, which tries a database ten times, is not even asked."""

    def asked(**options: Any) -> None:
        raise AssertionError("MLflow was asked for a store that is down")

    monkeypatch.setattr("mlflow.MlflowClient", asked)


@pytest.fixture(params=["postgresql+psycopg", "http"])
def down(request: pytest.FixtureRequest) -> str:
    """An address at which nothing listens."""
    if request.param != "http":
        pytest.importorskip("psycopg", reason="left out: PostgreSQL's driver is not installed")
    return f"{request.param}://anna:secret@127.0.0.1:{free_port()}/runs"


def test_every_command_says_so_at_once_in_one_sentence(
    tmp_path: Path,
    down: str,
    untried: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", down)
    for words in (["ui"], ["show"], ["compare"], ["export"]):
        assert tell(tmp_path, *words) == 1
        told = capsys.readouterr().err
        assert "anna:***@127.0.0.1" in told and "does not answer" in told, words
        assert told.count("\n") == 1 and "secret" not in told, words


def test_so_does_an_import(
    tmp_path: Path,
    down: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = bundle_of(laptop(tmp_path / "here", "s1"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", down)
    capsys.readouterr()
    assert tell(tmp_path, "import", file) == 1
    told = capsys.readouterr().err
    assert "does not answer" in told and told.count("\n") == 1 and "secret" not in told


def test_a_sweep_goes_on_and_keeps_no_password(tmp_path: Path, down: str) -> None:
    grid = ("draft=bigram", "k=1", "seed=0", "timing=skip", "n_jobs=1")
    running = program(tmp_path, "sweep", "fake", *grid, f"tracking.uri='{down}'")
    out, _ = running.communicate(timeout=240)
    done = Result(running.returncode, out, tmp_path)
    assert done.code == 0 and set(done.statuses.values()) == {"done"}, out
    assert "does not answer; the sweep goes on" in out and "make resume" in out
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(kept) >= 3
    for path in kept:
        assert b"secret" not in path.read_bytes(), path
    assert "secret" not in out


def test_resume_asks_for_the_address_whose_password_was_not_kept(tmp_path: Path, down: str) -> None:
    grid = ("draft=bigram", "k=1", "seed=0", "timing=skip", "n_jobs=1")
    program(tmp_path, "sweep", "fake", *grid, f"tracking.uri='{down}'").communicate(timeout=240)
    running = program(tmp_path, "resume", "fake")
    out, _ = running.communicate(timeout=240)
    assert running.returncode == 2 and "MLFLOW_TRACKING_URI" in out and "secret" not in out


@pytest.fixture
def silent() -> Iterator[int]:
    """A port whose queue is full: who knocks there hears nothing."""
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = int(server.getsockname()[1])
        crowd = [socket.socket() for _ in range(4)]
        for one in crowd:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield port
        for one in crowd:
            one.close()


def test_a_host_that_swallows_everything_is_not_waited_for_long(
    tmp_path: Path, silent: int, untried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "PATIENCE_S", 0.2)
    with pytest.raises(StoreUnavailable, match="does not answer in time"):
        Recorder(uri=f"http://127.0.0.1:{silent}", root=tmp_path).open()


@pytest.mark.parametrize(
    "address", ["http://anna:se/cret@h:5000", "http://:5000", "http://h:99999"]
)
def test_an_address_that_cannot_be_read_is_refused_before_anything_runs(
    tmp_path: Path, address: str
) -> None:
    with pytest.raises(ValueError, match="cannot be read: write SCHEME") as refused:
        Recorder(uri=address, root=tmp_path).check()
    assert "cret" not in str(refused.value)


def test_a_driver_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(StoreUnavailable, match="needs the driver pymysql, which is not installed"):
        Recorder(uri="mysql+pymysql://u:secret@127.0.0.1:1/x", root=tmp_path).open()
