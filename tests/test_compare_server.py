"""A comparison of what a team's server holds is that of the same runs in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.compared import SHARED
from tests.records_factory import make_sweep
from tests.test_tracking_server import team_server
from tests.tracking_store import project
from tracking.__main__ import main
from tracking.compare import compare
from tracking.compare.choose import choose
from tracking.compare.data import as_data
from tracking.compare.read import StoredSweeps
from tracking.recorder import Recorder
from tracking.serve import free_port


def test_a_server_gives_the_same_comparison_as_its_own_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_ARTIFACTS_DESTINATION", (tmp_path / "team").as_uri())
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "60")
    port = free_port(5500)

    with team_server(project(tmp_path), port):
        address = f"http://127.0.0.1:{port}"
        for name in ("attic", "cellar"):
            recorder = Recorder(uri=address, root=tmp_path)
            recorder.open_sweep(name, "", {"machine.id": name, "machine.name": name})
            for record in make_sweep(("int8",), (1, 4), (0,)):
                recorder.log_job(record, SHARED | {"load.state": "idle"})
            recorder.close_sweep("FINISHED", {}, "", {}, {})
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        assert main(["--root", str(tmp_path), "compare", "--json"]) == 0
    by_server = json.loads(capsys.readouterr().out)
    assert by_server["counts"]["agreeing"] == 2
    assert [column["label"] for column in by_server["columns"]] == ["attic idle", "cellar idle"]
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    stored = StoredSweeps(Recorder(root=tmp_path).open())
    by_file = as_data(compare(choose(stored).sweeps, stored.whole))
    assert json.loads(json.dumps(by_file)) == by_server
