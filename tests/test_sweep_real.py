"""One real sweep, from the command to MLflow: real models, real store, few characters."""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.bundling import held, tell
from tests.servers import team
from tests.sweeping import Result, program, records, wait_until
from tracking.location import locate
from tracking.serve import served
from tracking.store import prepare_environment

GRID = ("draft=bigram,int8", "k=1,2", "seed=0", "tokens=24", "draws=200", "timing.pairs=2")
NAMES = {f"{draft} k={k} seed=0" for draft in ("bigram", "int8") for k in (1, 2)}


def real(root: Path, verb: str, *arguments: str) -> Result:
    running = program(root, verb, "real", *arguments)
    out, _ = running.communicate(timeout=400)
    return Result(running.returncode, out, root)


def runs(root: Path) -> tuple[Any, list[Any]]:
    """The newest parent run and its children, through MLflow's own client."""
    prepare_environment()
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=locate(None, root, {}).uri)
    (experiment,) = client.search_experiments(filter_string="name = 'specsweep'")
    every = client.search_runs([experiment.experiment_id], order_by=["start_time DESC"])
    parent = next(run for run in every if "mlflow.parentRunId" not in run.data.tags)
    children = [r for r in every if r.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    return parent, children


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Result]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        patch.setenv("MLFLOW_RUN_ID", "0" * 32)  # must not make a child the parent
        yield real(tmp_path_factory.mktemp("swept"), "sweep", *GRID, "n_jobs=2")


def test_a_real_sweep_is_read_back_through_mlflow(swept: Result) -> None:
    assert swept.code == 0, swept.out
    parent, children = runs(swept.root)
    assert parent.info.status == "FINISHED" and len(children) == 4
    assert {child.info.run_name for child in children} == NAMES
    for child in children:
        assert child.info.status == "FINISHED"
        assert child.data.params["tokens"] == "24"
        assert child.data.metrics["count/emitted"] == 24
        assert child.data.metrics["time/pairs"] == 2
        assert child.data.metrics["null/ratio_max"] == parent.data.metrics["null/ratio_max"]
        assert len(child.data.tags["counts.digest"]) == 64


def test_the_summary_and_the_store_say_the_same(swept: Result) -> None:
    _, children = runs(swept.root)
    by_name = {child.info.run_name: child.data for child in children}
    assert {job["name"] for job in swept.summary["jobs"]} == NAMES
    for job in swept.summary["jobs"]:
        assert job["status"] == "done" and job["error"] is None
        kept = {key: by_name[job["name"]].metrics[key] for key in job["metrics"]}
        assert kept == pytest.approx(job["metrics"])  # the store has the series as well
        assert by_name[job["name"]].tags["counts.digest"] == job["tags"]["counts.digest"]
    assert swept.summary["conclusion"] in " ".join(swept.out.split())


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Result]:
    """The same sweep in another folder, as on another machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        patch.delenv("MLFLOW_RUN_ID", raising=False)
        root = tmp_path_factory.mktemp("elsewhere")
        yield real(root, "sweep", *GRID, "n_jobs=1", "timing=skip", "tracking.machine=cellar")


def test_counts_are_the_same_with_another_number_of_workers(
    swept: Result, elsewhere: Result
) -> None:
    digests = [
        {job["name"]: job["tags"]["counts.digest"] for job in result.summary["jobs"]}
        for result in (swept, elsewhere)
    ]
    assert digests[0] == digests[1]


def test_a_real_sweep_is_carried_to_another_machine_and_compared_there(
    swept: Result, elsewhere: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sent, own = held(swept.root), held(elsewhere.root, every_tag=True)
    file = tmp_path / "swept.zip"
    assert tell(swept.root, "export", file, "--all") == 0
    assert tell(elsewhere.root, "import", file) == 0
    both = held(elsewhere.root)
    assert len(sent) == 5 and {key: both[key] for key in sent} == sent
    assert all(run["history"] and run["files"] and all(run["times"]) for run in sent.values())
    assert {k: held(elsewhere.root, every_tag=True)[k] for k in own} == own
    before = database(elsewhere.root)
    assert tell(elsewhere.root, "import", file) == 0
    assert database(elsewhere.root) == before
    capsys.readouterr()
    assert tell(elsewhere.root, "compare", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["counts"]["matched"] == told["counts"]["agreeing"] == 4


def database(root: Path) -> list[str]:
    """All that the tables hold, line by line."""
    with closing(sqlite3.connect(root / "mlflow.db")) as store:
        return list(store.iterdump())


def test_a_real_sweep_is_carried_to_a_server(
    swept: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, sent = tmp_path / "swept.zip", held(swept.root)
    assert tell(swept.root, "export", file, "--all") == 0
    with team(tmp_path / "team") as page:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", page.base)
        for _ in range(2):
            assert tell(tmp_path, "import", file) == 0
            assert held(tmp_path) == sent


def test_mlflows_own_page_lists_the_runs(swept: Result) -> None:
    parent, _ = runs(swept.root)
    query = {"experiment_ids": [parent.info.experiment_id], "max_results": 100}
    with served(locate(None, swept.root, {})) as page:
        request = urllib.request.Request(
            f"{page.base}/api/2.0/mlflow/runs/search",
            json.dumps(query).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            found = json.load(answer)["runs"]
        with urllib.request.urlopen(page.base, timeout=30) as answer:
            assert b"<title>MLflow</title>" in answer.read()
    assert {run["info"]["run_name"] for run in found} >= NAMES


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_sweep_goes_on_and_mlflow_has_each_job_once(
    tmp_path: Path, number: signal.Signals
) -> None:
    running = program(tmp_path, "sweep", "real", *GRID, "n_jobs=2")
    wait_until(lambda: any('"done"' in path.read_text() for path in records(tmp_path)), 400)
    running.send_signal(number)
    told, _ = running.communicate(timeout=60)
    if number == signal.SIGTERM:
        parent, children = runs(tmp_path)
        assert parent.info.status == "KILLED" and "make resume" in told.splitlines()[-1]
        assert {child.info.status for child in children} == {"FINISHED", "KILLED"}
    again = real(tmp_path, "resume")
    assert again.code == 0, again.out
    parent, children = runs(tmp_path)
    assert parent.info.status == "FINISHED"
    assert sorted(child.info.run_name for child in children) == sorted(NAMES)
    assert {child.info.status for child in children} == {"FINISHED"}


def test_a_store_that_is_locked_for_the_whole_sweep_gets_its_runs_later(tmp_path: Path) -> None:
    short = ("draft=bigram", "k=1", "seed=0", "tokens=8", "draws=50", "timing=skip")
    assert real(tmp_path, "sweep", *short).code == 0  # makes the store
    with closing(sqlite3.connect(tmp_path / "mlflow.db", isolation_level=None)) as somebody:
        somebody.execute("BEGIN EXCLUSIVE")
        locked = real(tmp_path, "sweep", *short, "k=2")
        somebody.execute("ROLLBACK")
    assert locked.statuses == {"bigram k=2 seed=0": "done"}
    assert "is locked by another program; the sweep goes on" in locked.out
    assert "make resume" in locked.out.splitlines()[-1]
    assert real(tmp_path, "resume").code == 0
    _, children = runs(tmp_path)
    assert [child.info.run_name for child in children] == ["bigram k=2 seed=0"]
