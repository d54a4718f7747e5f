"""What a sweep promises, over jobs that cost nothing."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pipeline import store
from tests import fake_jobs
from tests.sweeping import go_on, records, run, spawn

ONE = ("draft=int8", "k=1", "seed=0")
FOUR = ("draft=int8,bigram", "k=1,2", "seed=0")


def read(root: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in records(root)]


def test_every_job_of_the_grid_is_counted_timed_and_recorded(tmp_path: Path) -> None:
    result = run(tmp_path, *FOUR, "n_jobs=2")
    names = [f"{draft} k={k} seed=0" for draft in ("int8", "bigram") for k in (1, 2)]
    assert result.code == 0
    assert result.statuses == dict.fromkeys(names, "done")
    assert sorted(result.runs[0]["logged"]) == sorted(names)
    assert result.runs[0]["status"] == "FINISHED"
    job = result.summary["jobs"][0]
    assert (job["draft"], job["k"], job["seed"]) == ("int8", 1, 0)
    assert (job["verify"], job["proposal"], job["error"]) == ("token", "chain", None)
    assert job["metrics"]["null/ratio_max"] == 1.03  # measured once, repeated on each
    assert job["metrics"]["load/others_share"] == 0.25 and job["tags"]["load.state"] == "busy"


def test_each_kind_of_baseline_has_a_null_of_its_own(tmp_path: Path) -> None:
    sweep = run(tmp_path, "draft=bigram", "k=1,2", "seed=0", "timing=pairs,whole")
    assert sweep.code == 0
    jobs = sweep.summary["jobs"]
    assert sorted(job["metrics"]["null/ratio_max"] for job in jobs) == [1.03, 1.03, 1.2, 1.2]
    assert sweep.summary["sweep"]["null"]["null/ratio_max"] == 1.2


def test_counting_is_side_by_side_and_timing_alone_in_one_other_process(tmp_path: Path) -> None:
    meeting = ("draft=int8", "k=1,2", "seed=17", f"prompt='{tmp_path}'")
    assert run(tmp_path, *meeting, "n_jobs=2").code == 0
    found = read(tmp_path)
    counting = {record["metrics"]["count/target_passes"] for record in found}
    timing = {record["pieces"][0]["pid"] for record in found}
    assert len(counting) == 2 and len(timing) == 1
    assert os.getpid() not in counting | timing and not timing & counting


def test_one_worker_is_a_process_of_its_own_and_timing_skip_reads_no_clock(tmp_path: Path) -> None:
    result = run(tmp_path, *FOUR, "n_jobs=1", "timing=skip")
    counting = {record["metrics"]["count/target_passes"] for record in read(tmp_path)}
    assert len(counting) == 1 and os.getpid() not in counting
    assert set(result.statuses.values()) == {"done"}
    assert not any(record["pieces"] for record in read(tmp_path))
    assert "time/speedup_median" not in result.summary["jobs"][0]["metrics"]


def test_jobs_that_raise_or_die_cost_no_other_job(tmp_path: Path) -> None:
    result = run(tmp_path, "draft=int8", "k=1", "seed=0,1,13,14", "n_jobs=2")
    assert result.code == 1
    assert result.statuses == {
        "int8 k=1 seed=0": "done",
        "int8 k=1 seed=1": "done",
        "int8 k=1 seed=13": "failed",
        "int8 k=1 seed=14": "failed",
    }
    raised, died = (job for job in result.summary["jobs"] if job["status"] == "failed")
    assert raised["error"] == "RuntimeError: the dice are loaded" and not raised["metrics"]
    assert "died twice" in died["error"]
    for job in (raised, died):  # all are listed, each with what runs it again
        assert f"{job['name']}: python -m pipeline.sweep draft=int8 k=1 seed=" in result.out
    trace = next(r["error"]["traceback"] for r in read(tmp_path) if r["params"]["seed"] == 13)
    assert "fake_jobs.py" in trace
    states = {job["name"]: job["status"] for job in result.runs[0]["jobs"].values()}
    assert states["int8 k=1 seed=13"] == "FAILED" and result.runs[0]["status"] == "FAILED"


def test_a_job_whose_worker_died_once_is_run_again(tmp_path: Path) -> None:
    result = run(tmp_path, "draft=int8", "k=1,2", "seed=0,15", f"prompt='{tmp_path}'", "n_jobs=2")
    assert result.code == 0 and set(result.statuses.values()) == {"done"}


def test_resume_runs_only_what_is_missing_and_logs_nothing_twice(tmp_path: Path) -> None:
    first = run(tmp_path, *FOUR, "n_jobs=2")
    logged = first.runs[0]["logged"]
    lost, kept = records(tmp_path)[0], records(tmp_path)[1:]
    name = json.loads(lost.read_text(encoding="utf-8"))["name"]
    stamps = [path.stat().st_mtime_ns for path in kept]
    lost.unlink()
    runs = json.loads((tmp_path / "runs.json").read_text(encoding="utf-8"))
    for sweep in runs.values():  # as a killed parent leaves it
        sweep["status"] = "RUNNING"
        for job in sweep["jobs"].values():
            job["status"] = "RUNNING" if job["name"] == name else job["status"]
    (tmp_path / "runs.json").write_text(json.dumps(runs), encoding="utf-8")
    again = go_on(tmp_path)
    assert again.code == 0 and again.statuses == first.statuses
    assert [path.stat().st_mtime_ns for path in kept] == stamps
    assert len(again.runs) == 1 and again.runs[0]["status"] == "FINISHED"
    assert sorted(again.runs[0]["logged"]) == sorted([*logged, name])


def test_a_store_that_is_away_costs_no_figure_and_resume_sends_them(tmp_path: Path) -> None:
    (tmp_path / "refuse").touch()
    result = run(tmp_path, *FOUR, "n_jobs=2")
    assert set(result.statuses.values()) == {"done"}
    assert result.out.count("the store is away; the sweep goes on") == 1
    assert "make resume" in result.out.splitlines()[-1]
    (tmp_path / "refuse").unlink()
    again = go_on(tmp_path)
    assert again.code == 0 and sorted(again.runs[0]["logged"]) == sorted(result.statuses)
    assert "counting" not in again.out and "timing" not in again.out


@pytest.mark.parametrize(
    "name, text, told",
    [
        ("plan.json", "{", "plan.json cannot be read"),
        ("plan.json", "[]", "plan.json is not what a sweep wrote"),
        ("plan.json", '{"schema": "x"}', "its schema is 'x'"),
        ("plan.json", '{"schema": 99}', "begun by a newer specsweep: update"),
        ("plan.json", '{"schema": 1, "jobs": []}', "no 'tracking'"),
        ("nulls.json", "{", "delete the file to have it timed anew"),
        ("record.json", "{", "delete it to run the job again"),
    ],
)
def test_a_damaged_file_is_named_and_nothing_is_run_over_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, told: str
) -> None:
    run(tmp_path, *ONE, "n_jobs=1")
    file = next(tmp_path.glob(f"outputs/[0-9]*/**/{name}"))
    file.write_text(text, encoding="utf-8")
    capsys.readouterr()
    assert go_on(tmp_path).code == 2
    err = capsys.readouterr().err
    assert told in err and err.count("\n") == 1
    assert file.read_text(encoding="utf-8") == text


def test_a_reader_who_goes_away_does_not_end_the_sweep(tmp_path: Path) -> None:
    running = spawn(tmp_path, *FOUR, "n_jobs=1")
    assert running.stdout is not None
    assert "4 jobs" in running.stdout.readline()
    running.stdout.close()  # as `make sweep | head -1` does
    assert running.wait(120) == 0
    assert len(records(tmp_path)) == 4
    (sweep,) = json.loads((tmp_path / "runs.json").read_text(encoding="utf-8")).values()
    assert sweep["status"] == "FINISHED"


def test_a_full_disk_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = store.write_whole

    def full(path: Path, text: str) -> None:
        if path.name == "record.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, text)

    monkeypatch.setattr(store, "write_whole", full)
    result = run(tmp_path, *ONE, "timing=skip")
    assert result.code == 1
    last = result.out.splitlines()[-1]
    assert "No space left on device" in last and "make resume" in last
    assert result.runs[0]["status"] == "KILLED" and not records(tmp_path)
    monkeypatch.undo()
    assert go_on(tmp_path).code == 0


def test_two_sweeps_at_once_both_finish_and_never_time_at_once(tmp_path: Path) -> None:
    roots = [tmp_path / "a", tmp_path / "b"]
    for root in roots:
        root.mkdir()
    programs = [spawn(root, "draft=int8", "k=1,2,4", "seed=0,1", "n_jobs=1") for root in roots]
    told = [program.communicate(timeout=60)[0] for program in programs]
    assert [program.returncode for program in programs] == [0, 0], told
    spans = []
    for root in roots:
        pieces = [record["pieces"][0] for record in read(root)]
        begun = min(piece["begun_ns"] for piece in pieces)
        spans.append((begun, max(piece["begun_ns"] + piece["wall_ns"] for piece in pieces)))
    (_, first_end), (second_begin, _) = sorted(spans)
    assert first_end <= second_begin


def test_a_dry_run_lists_the_jobs_and_runs_none(tmp_path: Path) -> None:
    result = run(tmp_path, *FOUR, "n_jobs=2", "dry_run=true")
    assert result.code == 0 and not (tmp_path / "outputs").exists()
    assert "int8 k=2 seed=0" in result.out
    assert "4 jobs: counting about 0:04" in result.out and "timing about 0:12" in result.out


def test_the_same_job_named_twice_is_run_once(tmp_path: Path) -> None:
    result = run(tmp_path, "draft=int8", "k=1,1", "seed=0,0", "timing=skip")
    assert len(result.summary["jobs"]) == 1


def test_jobs_that_differ_in_an_option_only_have_names_of_their_own(tmp_path: Path) -> None:
    result = run(tmp_path, *ONE, "draft.bits=6,7", "timing=skip", "n_jobs=1")
    assert list(result.statuses) == ["int8 k=1 seed=0 bits=6", "int8 k=1 seed=0 bits=7"]


def test_an_odd_number_of_pairs_is_allowed_and_warned_of(tmp_path: Path) -> None:
    result = run(tmp_path, *ONE, "timing.pairs=5", "dry_run=true")
    assert result.code == 0 and "AB and BA are not balanced" in result.out


@pytest.mark.parametrize("timing", ["pairs", "skip"])
def test_a_job_with_a_small_p_value_is_tested_again_and_only_then_rejected(
    tmp_path: Path, timing: str
) -> None:
    result = run(tmp_path, "draft=int8", "k=1", "seed=0,18,19", f"timing={timing}", "n_jobs=2")
    assert result.code == 1 and set(result.statuses.values()) == {"done"}
    assert result.runs[0]["status"] == "FAILED"
    plain, inexact, unlucky = result.summary["jobs"]
    assert inexact["tags"]["exactness"] == "REJECTED"
    assert "exactness" not in {**plain["tags"], **unlucky["tags"]}
    again = [job["metrics"].get("dist/recheck_p_value") for job in (plain, inexact, unlucky)]
    assert again == [None, 1e-9, 0.7]
    assert "REJECTED: int8 k=1 seed=18" in result.summary["sweep"]["exactness"]
    assert result.runs[0]["metrics"]["sweep/rejected"] == 1.0


def test_code_that_changes_while_a_sweep_runs_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_jobs, "digest", lambda spec: f"older code {spec.k}")
    result = run(tmp_path, *ONE, "timing=skip")
    assert result.code == 1 and result.statuses == {"int8 k=1 seed=0": "failed"}
    assert "code or weights were changed" in result.summary["jobs"][0]["error"]
    monkeypatch.undo()
    again = go_on(tmp_path)
    assert again.code == 0 and "1 jobs are new ones now" in again.out


def test_a_password_in_an_address_is_told_to_nobody(tmp_path: Path) -> None:
    uri = "tracking.uri='postgresql://me:secret@host/db'"
    result = run(tmp_path, *ONE, "timing=skip", uri)
    assert result.code == 0
    told = json.dumps(result.summary) + json.dumps(result.runs) + result.out
    assert "secret" not in told + "".join(path.read_text() for path in records(tmp_path))
