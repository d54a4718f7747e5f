"""A sweep through a real MLflow server, as `make server` starts it, on a free port."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.bundling import bundle_of, held, laptop, tell
from tests.servers import free_port, team, told_until
from tests.sweeping import PROJECT, Result, program, records, wait_until
from tests.tracking_store import sweep_in
from tracking.recorder import Recorder
from tracking.serve import ServerFailed
from tracking.team import _holds_runs, _prepared, backend_of, team_server
from tracking.trouble import StoreUnavailable

GRID = ("draft=bigram", "k=1", "timing=skip", "n_jobs=1")


def swept(root: Path, verb: str, *arguments: str) -> Result:
    """A sweep over fake jobs, logged to MLflow for real."""
    running = program(root, verb, "fake", *arguments)
    out, _ = running.communicate(timeout=240)
    return Result(running.returncode, out, root)


def test_a_sweep_logs_to_the_server_its_address_names_artifacts_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with team(tmp_path / "team") as page:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", page.base)
        done = swept(tmp_path / "laptop", "sweep", *GRID, "seed=0,1")
        assert done.code == 0, done.out
        found = held(tmp_path)
        family = page.processes
    parent = next(run for key, run in found.items() if key.endswith("/"))
    jobs = [run for key, run in found.items() if not key.endswith("/")]
    assert [run["status"] for run in (parent, *jobs)] == ["FINISHED"] * 3
    assert {run["parent"] for run in jobs} == {parent["name"]}
    assert all("record.json" in run["files"] for run in jobs)
    assert "summary.json" in parent["files"]
    assert f"{page.base}/#/experiments/" in done.out  # where to look
    kept = (tmp_path / "team" / "server-artifacts").rglob("record.json")
    assert len(list(kept)) == 2
    assert not (tmp_path / "laptop" / "mlflow.db").exists()
    assert not (tmp_path / "laptop" / "mlartifacts").exists()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive, "the server was not ended"


def test_a_server_that_is_down_at_the_start_gets_everything_by_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
    done = swept(tmp_path, "sweep", *GRID, "seed=0,1")
    assert done.code == 0, done.out
    assert f"127.0.0.1:{port} does not answer; the sweep goes on" in done.out
    assert "not everything is in MLflow" in done.out and "make resume" in done.out
    assert set(done.statuses.values()) == {"done"}
    with team(tmp_path / "team", port):
        sent = swept(tmp_path, "resume")
        assert sent.code == 0 and "0 of 2 jobs are left to do" in sent.out, sent.out
        found = held(tmp_path)
    assert Counter(run["status"] for run in found.values()) == {"FINISHED": 3}


@pytest.mark.parametrize("end", ["ended", "killed"])
def test_a_server_that_goes_down_in_the_middle_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    port = free_port()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
    with team(tmp_path / "team", port) as page, ExitStack() as last:
        running = program(tmp_path, "sweep", "fake", *GRID, "seed=range(20,45)")
        last.callback(running.kill)
        wait_until(lambda: len(records(tmp_path)) >= 4, 60)
        for one in reversed(page.processes):
            one.kill() if end == "killed" else one.terminate()
        out, _ = running.communicate(timeout=240)
    assert running.returncode == 0, out
    assert "the sweep goes on" in out and "not everything is in MLflow" in out
    assert len(records(tmp_path)) == 25
    with team(tmp_path / "team", port):
        before = held(tmp_path)
        assert 1 <= len(before) < 26
        assert swept(tmp_path, "resume").code == 0
        found = held(tmp_path)
    assert Counter(run["status"] for run in found.values()) == {"FINISHED": 26}
    assert all("record.json" in run["files"] for key, run in found.items() if key[-1] != "/")


def test_bundles_go_to_a_server_and_come_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = laptop(tmp_path / "here", "s1"), laptop(tmp_path / "there")
    file, sent = bundle_of(here), held(here)
    with team(tmp_path / "team") as page, monkeypatch.context() as at_server:
        at_server.setenv("MLFLOW_TRACKING_URI", page.base)
        for _ in range(2):
            assert tell(tmp_path, "import", file) == 0
        assert held(tmp_path) == sent
        (tmp_path / "server").mkdir()
        back = bundle_of(tmp_path / "server")
    assert tell(there, "import", back) == 0
    assert held(there) == sent
    before = held(here, every_tag=True)
    assert tell(here, "import", back) == 0
    assert held(here, every_tag=True) == before


def test_a_server_that_keeps_files_in_a_folder_is_refused_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow would write the artifacts to that folder on the client's machine."""
    here = laptop(tmp_path / "here")
    Recorder(root=here).open()  # makes the experiment, its files in a folder
    backend = backend_of(f"sqlite:///{here / 'mlflow.db'}", here)
    with team_server(backend, here, port=free_port()) as page:
        far = page.base.replace("127.0.0.1", "localhost")
        Recorder(uri=far, root=tmp_path).open()
        monkeypatch.setattr("tracking.store._is_here", lambda host: False)
        with pytest.raises(StoreUnavailable, match="only its own machine reaches.*make server"):
            Recorder(uri=far, root=tmp_path).open()


def test_the_command_says_how_the_others_connect_and_ends_when_told(tmp_path: Path) -> None:
    port = free_port()
    arguments = ["--root", str(tmp_path), "server", "--port", str(port), "--allowed-hosts", "attic"]
    command = [sys.executable, "-m", "tracking", *arguments]
    out, both = subprocess.PIPE, subprocess.STDOUT
    with (
        subprocess.Popen(command, cwd=PROJECT, stdout=out, stderr=both, text=True) as running,
        ExitStack() as last,
    ):
        last.callback(running.kill)
        told = told_until(running, "Ctrl-C ends it; what was logged stays.")
        family = psutil.Process(running.pid).children(recursive=True)
        assert f":{port} make sweep" in told and "there is no password" in told
        base = f"http://127.0.0.1:{port}"
        for host, answer in (("attic", 200), (f"attic:{port}", 200), ("evil.example", 403)):
            found = _status(f"{base}/api/2.0/mlflow/experiments/search?max_results=1", host)
            assert found == answer, host
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive, "the server was not ended"
    assert (tmp_path / "server.db").is_file() and not (tmp_path / ".server.db.unfinished").exists()


def _status(address: str, host: str) -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(address, headers={"Host": host}), timeout=30) as a:
            return int(a.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_database_whose_creation_was_broken_off_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "server.db").write_bytes(b"half a database")
    (tmp_path / ".server.db.unfinished").touch()
    with team_server(backend_of(None, tmp_path), tmp_path, port=free_port()) as page:
        store = Recorder(uri=page.base, root=tmp_path).open()
        assert store.client.get_experiment(store.experiment_id).name == "specsweep"


def test_a_database_that_holds_runs_is_never_begun_anew(tmp_path: Path) -> None:
    sweep_in(tmp_path)
    backend = backend_of("sqlite:///mlflow.db", tmp_path)
    for mark in (".mlflow.db.new", ".mlflow.db.unfinished"):
        (tmp_path / mark).touch()
    with _prepared(backend):
        assert _holds_runs(tmp_path / "mlflow.db")


@pytest.mark.parametrize(
    "backend, sentence",
    [
        ("http://127.0.0.1:5000", "is a server already"),
        ("file:///tmp/mlruns", "is a folder"),
        ("ftp://x", "unknown scheme"),
    ],
)
def test_a_backend_that_is_no_database_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    backend: str,
    sentence: str,
) -> None:
    assert tell(tmp_path, "server", "--backend", backend) == 1
    assert sentence in capsys.readouterr().err
    monkeypatch.setenv("SPECSWEEP_BACKEND", backend)
    assert tell(tmp_path, "server") == 1
    assert sentence in capsys.readouterr().err


def test_a_program_that_ends_before_it_has_said_its_line_is_shown() -> None:
    """The helper above must not wait for ever."""
    command = [sys.executable, "-c", "print('oh'); exit(3)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        with pytest.raises(AssertionError, match="ended with 3 before 'ready': oh"):
            told_until(running, "ready")


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with team(tmp_path) as page:
        port = int(page.base.rpartition(":")[2])
        with pytest.raises(ServerFailed, match=f"port {port} is in use"):
            with team_server(backend_of(None, tmp_path), tmp_path, port=port):
                pass


def test_a_missing_driver_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    address = "postgresql+psycopg://team:secret@127.0.0.1:1/x"
    assert tell(tmp_path, "server", "--backend", address) == 1
    told = capsys.readouterr().err
    assert ".[postgres]" in told and "secret" not in told and told.count("\n") == 1
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    assert tell(tmp_path, "show", "--sweep", "s1") == 1
    assert ".[postgres]" in capsys.readouterr().err
