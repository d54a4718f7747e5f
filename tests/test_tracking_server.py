"""MLflow's page and MLflow's server, for real, on a free port of this machine."""

from __future__ import annotations

import dataclasses
import json
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.records_factory import make_record
from tests.tracking_store import client, project, runs, sweep_in
from tracking.location import locate
from tracking.recorder import Recorder
from tracking.serve import Page, ServerFailed, free_port, served
from tracking.trouble import StoreUnavailable


def test_the_page_lists_the_sweeps_runs_and_serves_its_figures(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    record = make_record()
    recorder.log_job(record)
    report = recorder.report([record], {"id": "s1"})
    recorder.close_sweep("FINISHED", {}, report.markdown(), report.summary(), report.figures())
    parent, _ = runs(recorder)

    with served(recorder.check(), free_port(5200)) as page:
        assert b"<title>MLflow" in get(page.base)
        asked = {"experiment_ids": [parent.info.experiment_id]}
        found = post(f"{page.base}/api/2.0/mlflow/runs/search", asked)["runs"]
        assert {run["info"]["run_name"] for run in found} == {"s1", "int8 k=4 seed=0"}
        run_id = parent.info.run_id
        figure = get(f"{page.base}/get-artifact?path=figures/speedup.png&run_uuid={run_id}")
        assert figure.startswith(b"\x89PNG")
        port = int(page.base.rpartition(":")[2])
        with pytest.raises(ServerFailed, match=f"port {port} is in use"):
            served(recorder.check(), port).__enter__()


def test_a_sweep_goes_through_a_server_that_comes_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ARTIFACTS_DESTINATION", (tmp_path / "team").as_uri())
    port = free_port(5300)
    recorder = Recorder(uri=f"http://127.0.0.1:{port}", root=tmp_path)
    first, second = make_record(seed=0), make_record(seed=1)
    with pytest.raises(StoreUnavailable, match="does not answer"):
        recorder.open_sweep("s1", "a test", {"machine.id": "abc"})

    with team_server(project(tmp_path), port):
        recorder.log_job(first)
        recorder.start_job(second.digest, second.name, {"draft": "int8"}, {})
    with pytest.raises(StoreUnavailable, match="does not answer"):
        recorder.log_job(second)

    with team_server(tmp_path, port):
        for record in (first, second):
            recorder.log_job(record)
        recorder.close_sweep("FINISHED", {"sweep/jobs": 2}, "the table", {}, {})
        parent, children = runs(recorder)
        assert [child.info.status for child in children] == ["FINISHED", "FINISHED"]
        assert parent.info.status == "FINISHED"
        history = client(recorder).get_metric_history(children[0].info.run_id, "time/pair_ratio")
        assert [(m.step, m.value) for m in history] == first.series["time/pair_ratio"]
        kept = client(recorder).download_artifacts(children[1].info.run_id, "record.json")
        assert json.loads(Path(kept).read_text(encoding="utf-8"))["name"] == second.name
        assert recorder.ui_command("s1").endswith(
            f"/runs/{parent.info.run_id}?workflowType=machine_learning"
        )


def test_a_store_on_a_server_is_at_its_own_address(tmp_path: Path) -> None:
    with served(locate("http://example.invalid:5000", tmp_path, {})) as page:
        assert page.base == "http://example.invalid:5000"
        page.wait()


def team_server(folder: Path, port: int) -> AbstractContextManager[Page]:
    """A server as a team would start it: artifacts go through it."""
    location = locate(f"sqlite:///{(folder / 'mlflow.db').as_posix()}", folder, {})
    return served(dataclasses.replace(location, artifacts=None), port)


def get(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return bytes(answer.read())


def post(address: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        address, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        told: dict[str, Any] = json.loads(answer.read())
    return told
