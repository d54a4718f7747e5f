"""What the recorder promises of the store: every job once, whole, whatever happened before."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import socket
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pipeline.records import JobRecord
from tests.records_factory import make_failed, make_record, make_sweep
from tests.tracking_store import client, runs, sweep_in
from tracking import artifacts
from tracking.recorder import Recorder
from tracking.trouble import StoreUnavailable


def test_a_sweep_reads_back_through_mlflows_api_as_it_was_logged(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    record = make_record()
    recorder.log_job(record, {"load.state": "idle"})
    report = recorder.report([record], {"id": "s1"})
    recorder.close_sweep(
        "FINISHED", {"sweep/jobs": 1}, report.markdown(), report.summary(), report.figures()
    )

    parent, (child,) = runs(recorder)
    assert (parent.info.run_name, parent.info.status) == ("s1", "FINISHED")
    assert (child.info.run_name, child.info.status) == ("int8 k=4 seed=0", "FINISHED")
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert child.data.tags["machine.id"] == "abc"
    assert child.data.tags["load.state"] == "idle"
    assert child.data.tags["verdict"] == "slower"
    assert child.info.start_time == record.started_s * 1000
    assert child.info.end_time == record.finished_s * 1000
    assert {n: v for n, v in child.data.metrics.items() if n in record.metrics} == record.metrics
    assert child.data.params["top_k"] == "none"
    assert ratios(recorder, child.info.run_id) == record.series["time/pair_ratio"]
    assert parent.data.metrics == {"sweep/jobs": 1.0}
    assert "| int8&nbsp;&nbsp; | 4&nbsp;&nbsp; |" in parent.data.tags["mlflow.note.content"]


def test_the_parent_has_the_grid_as_parameters_and_keeps_those_it_has(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    records = make_sweep(("int8", "bigram"), (1, 4), (0,))
    for command in ("python -m pipeline.sweep", "another"):
        report = recorder.report(records, {"id": "s1", "command": command, "workers": 2, "jobs": 4})
        recorder.close_sweep("FINISHED", {}, report.markdown(), report.summary(), {})
    found = recorder.open().client.search_runs(
        [recorder.open().experiment_id], "tags.`run.kind` = 'sweep'"
    )
    assert found[0].data.params == {
        "command": "python -m pipeline.sweep",
        "drafts": "int8, bigram",
        "k": "1, 4",
        "seeds": "0",
        "jobs": "4",
        "workers": "2",
    }


def test_rounds_pieces_record_and_figures_are_artifacts(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    record = make_record()
    recorder.log_job(record)
    report = recorder.report([record], {"id": "s1"})
    recorder.close_sweep("FINISHED", {}, report.markdown(), report.summary(), report.figures())

    parent, (child,) = runs(recorder)
    api = client(recorder)
    assert {file.path for file in api.list_artifacts(child.info.run_id)} == {
        "pieces.csv",
        "record.json",
        "rounds.csv",
        "rounds.jsonl",
        "text.txt",
    }
    kept = Path(api.download_artifacts(child.info.run_id, "record.json"))
    assert JobRecord.from_json(kept.read_text(encoding="utf-8")) == record
    assert (tmp_path / "mlartifacts" / child.info.run_id / "artifacts" / "rounds.csv").is_file()
    assert {file.path for file in api.list_artifacts(parent.info.run_id, "figures")} == {
        "figures/acceptance.png",
        "figures/prediction.png",
        "figures/shares.png",
        "figures/speedup.png",
    }
    summary = Path(api.download_artifacts(parent.info.run_id, "summary.json"))
    assert json.loads(summary.read_text(encoding="utf-8"))["jobs"][0]["metrics"] == record.metrics


def test_a_job_logged_twice_is_there_once_and_its_points_too(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    record = make_record()
    for _ in range(2):
        recorder.log_job(record)
    again = Recorder(root=tmp_path)  # another process that goes on
    again.open_sweep("s1", "a test", {"machine.id": "abc"})
    again.log_job(record)
    _, (child,) = runs(again)
    assert ratios(again, child.info.run_id) == record.series["time/pair_ratio"]


def test_a_job_shown_as_running_becomes_the_finished_one(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    record = make_record()
    axes = {"draft": "int8", "k": 4, "seed": 0}
    recorder.start_job(record.digest, record.name, axes, {})
    _, (child,) = runs(recorder)
    assert (child.info.status, child.data.params["k"]) == ("RUNNING", "4")
    recorder.log_job(record)
    _, (finished,) = runs(recorder)
    assert (finished.info.run_id, finished.info.status) == (child.info.run_id, "FINISHED")


def test_counts_are_shown_before_the_job_is_timed(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    timed = make_record()
    counted = dataclasses.replace(make_record(pairs=0), status="counted", params=timed.params)
    recorder.log_job(counted)
    _, (child,) = runs(recorder)
    assert child.info.status == "RUNNING"
    recorder.log_job(timed)
    _, (finished,) = runs(recorder)
    assert (finished.info.run_id, finished.info.status) == (child.info.run_id, "FINISHED")
    history = client(recorder).get_metric_history(child.info.run_id, "count/accept_joint")
    assert [(m.step, m.value) for m in history] == timed.series["count/accept_joint"]


@pytest.mark.parametrize("left", ["killed", "failed", "running"])
def test_what_a_broken_off_sweep_left_is_replaced_never_doubled(tmp_path: Path, left: str) -> None:
    recorder = sweep_in(tmp_path)
    record = make_record()
    if left == "failed":
        failed = make_failed("int8", 4)
        recorder.log_job(dataclasses.replace(failed, digest=record.digest, started_s=1.0))
    else:
        recorder.start_job(record.digest, record.name, {"draft": "int8"}, {})
    if left == "killed":
        recorder.close_sweep("KILLED", {}, "", {}, {})

    again = Recorder(root=tmp_path)
    again.open_sweep("s1", "a test", {"machine.id": "abc"})
    parent, _ = runs(again)
    assert parent.info.status == "RUNNING"
    again.log_job(record)
    again.close_sweep("FINISHED", {}, "", {}, {})
    parent, (child,) = runs(again)
    assert (parent.info.status, child.info.status) == ("FINISHED", "FINISHED")
    assert child.info.start_time == record.started_s * 1000
    assert {f.path for f in client(again).list_artifacts(child.info.run_id)}.isdisjoint(
        {"error.txt"}
    )


@pytest.mark.parametrize("process", ["the same", "another"])
def test_what_a_record_learns_later_is_added_to_its_finished_run(
    tmp_path: Path, process: str
) -> None:
    recorder = sweep_in(tmp_path)
    record = make_record()
    recorder.start_job(record.digest, record.name, {"draft": "int8"}, {})
    recorder.log_job(record)
    if process == "another":
        recorder = Recorder(root=tmp_path)
        recorder.open_sweep("s1", "a test", {"machine.id": "abc"})
    more = dataclasses.replace(
        record,
        metrics=record.metrics | {"dist/recheck_p_value": 0.4},
        tags=record.tags | {"exactness": "ok"},
    )
    for _ in range(2):
        recorder.amend_job(more)
    _, (child,) = runs(recorder)
    assert child.info.status == "FINISHED"
    assert child.info.end_time == record.finished_s * 1000
    assert child.data.metrics["dist/recheck_p_value"] == 0.4
    assert child.data.tags["exactness"] == "ok"
    assert ratios(recorder, child.info.run_id) == record.series["time/pair_ratio"]


def test_another_measurement_does_not_overwrite_a_finished_job(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    record = make_record()
    recorder.log_job(record)
    later = dataclasses.replace(
        record,
        started_s=record.started_s + 99,
        finished_s=record.finished_s + 99,
        metrics=record.metrics | {"time/speedup_median": 9.0},
    )
    recorder.log_job(later)
    _, (child,) = runs(recorder)
    assert child.data.metrics["time/speedup_median"] == record.metrics["time/speedup_median"]


def test_jobs_that_still_run_when_the_sweep_is_closed_are_killed(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    recorder.log_job(make_record(seed=0))
    recorder.start_job("other", "int8 k=4 seed=1", {}, {})
    recorder.close_sweep("KILLED", {}, "stopped", {}, {})
    parent, children = runs(recorder)
    assert parent.info.status == "KILLED"
    assert [child.info.status for child in children] == ["FINISHED", "KILLED"]


def test_a_failed_job_is_failed_with_its_message_and_traceback(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    recorder.log_job(make_failed())
    _, (child,) = runs(recorder)
    assert child.info.status == "FAILED"
    assert child.data.metrics == {}
    assert "83 rows" in child.data.tags["mlflow.note.content"]
    kept = Path(client(recorder).download_artifacts(child.info.run_id, "error.txt"))
    assert "Traceback" in kept.read_text(encoding="utf-8")


def test_of_two_runs_of_one_job_one_stays(tmp_path: Path) -> None:
    """Two come of a request that arrived although its answer was lost."""
    recorder = sweep_in(tmp_path)
    record = make_record()
    recorder.log_job(record)
    parent, (child,) = runs(recorder)
    tags = {"sweep.id": "s1", "job.digest": record.digest, "mlflow.parentRunId": parent.info.run_id}
    client(recorder).create_run(child.info.experiment_id, 0, tags)
    again = Recorder(root=tmp_path)
    again.open_sweep("s1", "a test", {"machine.id": "abc"})
    _, (left,) = runs(again)
    assert left.info.run_id == child.info.run_id


def test_two_sweeps_in_one_store_keep_apart(tmp_path: Path) -> None:
    first, record = sweep_in(tmp_path, "s1"), make_record()
    second = Recorder(root=tmp_path)
    second.open_sweep("s2", "another", {"machine.id": "abc"})
    first.log_job(record)
    second.log_job(record)
    store = first.open()
    found = store.client.search_runs([store.experiment_id], "tags.`job.digest` != ''")
    assert sorted(run.data.tags["sweep.id"] for run in found) == ["s1", "s2"]


def test_a_run_id_in_the_environment_does_not_make_the_child_the_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_RUN_ID", "0" * 32)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "another")
    recorder = sweep_in(tmp_path)
    recorder.log_job(make_record())
    parent, (child,) = runs(recorder)
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id != "0" * 32


def test_a_locked_store_is_told_in_time_and_taken_later(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    recorder.patience_s = 0.3
    record = make_record()
    with closing(sqlite3.connect(tmp_path / "mlflow.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        begun_s = time.monotonic()
        with pytest.raises(StoreUnavailable, match="locked by another program"):
            recorder.log_job(record)
        assert time.monotonic() - begun_s < 5
        other.execute("ROLLBACK")
    recorder.log_job(record)
    _, (child,) = runs(recorder)
    assert child.info.status == "FINISHED"


def test_a_lock_that_is_given_up_soon_is_waited_for(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    with closing(
        sqlite3.connect(tmp_path / "mlflow.db", isolation_level=None, check_same_thread=False)
    ) as other:
        other.execute("BEGIN EXCLUSIVE")
        timer = threading.Timer(0.5, other.execute, ["ROLLBACK"])
        timer.start()
        recorder.log_job(make_record())
        timer.join()
    _, (child,) = runs(recorder)
    assert child.info.status == "FINISHED"


@pytest.mark.parametrize("step", ["log_batch", "put", "set_terminated"])
def test_a_store_that_fails_half_way_gets_the_rest_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    recorder = sweep_in(tmp_path)
    record = make_record()
    api = client(recorder)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(artifacts if step == "put" else type(api), step, full)
        with pytest.raises(StoreUnavailable, match="disk .* is full"):
            recorder.log_job(record)
    recorder.log_job(record)
    _, (child,) = runs(recorder)
    assert child.info.status == "FINISHED"
    assert ratios(recorder, child.info.run_id) == record.series["time/pair_ratio"]


def test_a_server_that_is_down_is_told_at_once(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    recorder = Recorder(uri=f"http://127.0.0.1:{port}", root=tmp_path)
    begun_s = time.monotonic()
    with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{port} does not answer"):
        recorder.open_sweep("s1", "a test", {"machine.id": "abc"})
    assert time.monotonic() - begun_s < 30
    with pytest.raises(StoreUnavailable):
        recorder.log_job(make_record())


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("not a database, " * 100, encoding="utf-8")
    recorder = Recorder(root=tmp_path)
    with pytest.raises(StoreUnavailable, match="not an MLflow database"):
        recorder.open()


def test_a_folder_address_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder"):
        Recorder(uri="file:///tmp/mlruns", root=tmp_path).check()


def test_logging_before_the_sweep_is_open_is_a_mistake_of_the_program(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="open_sweep"):
        Recorder(root=tmp_path).log_job(make_record())


def test_the_project_may_stand_in_a_folder_with_spaces_and_umlauts(tmp_path: Path) -> None:
    folder = tmp_path / "my prüjects 100%"
    folder.mkdir()
    recorder = sweep_in(folder)
    recorder.log_job(make_record())
    _, (child,) = runs(recorder)
    assert len(client(recorder).list_artifacts(child.info.run_id)) == 5
    assert (folder / "mlartifacts").is_dir()


def test_programs_that_start_at_once_on_a_missing_store_both_log(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_one_sweep, args=(tmp_path, f"s{i}")) for i in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(120)
    assert [process.exitcode for process in both] == [0, 0]
    store = Recorder(root=tmp_path).open()
    found = store.client.search_runs([store.experiment_id])
    assert len(found) == 4


def _one_sweep(root: Path, sweep_id: str) -> None:
    recorder = Recorder(root=root)
    recorder.open_sweep(sweep_id, "a test", {"machine.id": "abc"})
    recorder.log_job(make_record())


def test_the_experiment_tells_how_to_read_it_and_opens_in_the_right_view(tmp_path: Path) -> None:
    store = sweep_in(tmp_path).open()
    tags = store.client.get_experiment(store.experiment_id).tags
    assert "Counts" in tags["mlflow.note.content"]
    assert tags["mlflow.experimentKind"] == "custom_model_development"


def test_an_experiment_that_was_deleted_in_the_page_comes_back(tmp_path: Path) -> None:
    store = sweep_in(tmp_path).open()
    store.client.delete_experiment(store.experiment_id)
    again = Recorder(root=tmp_path)
    again.open_sweep("s2", "a test", {"machine.id": "abc"})
    assert again.open().experiment_id == store.experiment_id


def test_a_whole_sweep_keeps_every_job_once(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    records = make_sweep(seeds=(0,))
    for record in records:
        recorder.log_job(record)
    _, children = runs(recorder)
    assert [child.info.run_name for child in children] == sorted(r.name for r in records)


def ratios(recorder: Recorder, run_id: str) -> list[tuple[int, float]]:
    history = client(recorder).get_metric_history(run_id, "time/pair_ratio")
    return sorted((metric.step, metric.value) for metric in history)


def test_a_long_name_is_shortened_for_databases_that_hold_to_their_width(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    record = dataclasses.replace(make_record(), name="int8 k=4 prompt=" + "To be, " * 60)
    recorder.start_job(record.digest, record.name, {"draft": "int8"}, {})
    recorder.log_job(record)
    _, (child,) = runs(recorder)
    assert len(child.info.run_name) <= 250 and "sha256" in child.info.run_name
    assert child.info.status == "FINISHED"


def test_a_tag_without_a_value_is_left_out(tmp_path: Path) -> None:
    recorder = sweep_in(tmp_path)
    data = json.loads(make_record().to_json())
    data["tags"]["load.state"] = None
    recorder.log_job(JobRecord.from_json(json.dumps(data)))
    _, (child,) = runs(recorder)
    assert child.info.status == "FINISHED" and "load.state" not in child.data.tags
