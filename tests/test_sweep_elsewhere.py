"""A sweep's folder opened on another machine: nothing is run there, and nothing is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.sweeping import go_on, records, run

FOUR = ("draft=int8,bigram", "k=1,2", "seed=0", "n_jobs=1")


def files(root: Path) -> dict[str, str]:
    """All that a sweep's folder holds but its summary, which every try writes anew."""
    found = [path for path in root.rglob("outputs/[0-9]*/**/*") if path.is_file()]
    kept = [path for path in found if path.name not in ("summary.json", ".lock")]
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in kept}


@pytest.fixture
def broken_off(tmp_path: Path) -> Path:
    """A sweep on the attic's machine that was killed while its last job was timed."""
    assert run(tmp_path, *FOUR).code == 0
    last = records(tmp_path)[-1]
    counted: dict[str, Any] = json.loads(last.read_text(encoding="utf-8"))
    last.write_text(json.dumps(counted | {"status": "counted", "pieces": []}), encoding="utf-8")
    return tmp_path


def test_nothing_of_a_sweep_is_run_on_another_machine(
    broken_off: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(broken_off)
    monkeypatch.setenv("FAKE_MACHINE", "cellar")
    elsewhere = go_on(broken_off)
    assert elsewhere.code == 1
    assert "counting" not in elsewhere.out
    told = " ".join(elsewhere.out.split())
    assert "1 of 4 jobs are left and are not run here: this sweep was begun on attic" in told
    assert "this is cellar (machine.id id-of-cellar)" in told
    assert "a sweep of its own: " in told and "-m pipeline.sweep draft=int8,bigram" in told
    assert files(broken_off) == before
    assert elsewhere.runs[0]["status"] == "KILLED"  # not failed: it was never run to its end
    monkeypatch.setenv("FAKE_MACHINE", "attic")
    home = go_on(broken_off)
    assert home.code == 0 and set(home.statuses.values()) == {"done"}


def test_nothing_is_counted_there_either(broken_off: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records(broken_off)[0].unlink()
    before = files(broken_off)
    monkeypatch.setenv("FAKE_MACHINE", "cellar")
    elsewhere = go_on(broken_off)
    assert elsewhere.code == 1 and "2 of 4 jobs are left" in " ".join(elsewhere.out.split())
    assert files(broken_off) == before


def test_results_that_wait_are_sent_from_another_machine_as_the_first_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "refuse").touch()
    first = run(tmp_path, *FOUR)
    copy = tmp_path / "copied"
    shutil.copytree(tmp_path / "outputs", copy / "outputs", symlinks=True)
    monkeypatch.setenv("FAKE_MACHINE", "cellar")
    sent = go_on(copy)
    assert sent.code == 0, sent.out
    assert sorted(sent.runs[0]["logged"]) == sorted(first.statuses)
    assert sent.runs[0]["status"] == "FINISHED"
    assert sent.runs[0]["tags"]["machine.name"] == "attic"
    assert sent.summary["sweep"]["machine"]["machine.name"] == "attic"


def test_what_failed_is_sent_from_there_and_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "refuse").touch()
    assert run(tmp_path, "draft=int8", "k=1", "seed=0,13", "n_jobs=1").code == 1
    (tmp_path / "refuse").unlink()
    monkeypatch.setenv("FAKE_MACHINE", "cellar")
    sent = go_on(tmp_path)
    assert sent.code == 1 and "1 of 2 jobs are left" in " ".join(sent.out.split())
    states = {job["name"]: job["status"] for job in sent.runs[0]["jobs"].values()}
    assert states == {"int8 k=1 seed=0": "FINISHED", "int8 k=1 seed=13": "FAILED"}


def test_other_code_on_another_machine_does_not_hold_results_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "refuse").touch()
    first = run(tmp_path, *FOUR)
    (tmp_path / "refuse").unlink()
    monkeypatch.setattr("tests.fake_jobs.digest", lambda spec: f"other code {spec.name}")
    monkeypatch.setenv("FAKE_MACHINE", "cellar")
    sent = go_on(tmp_path)
    assert sent.code == 0 and sorted(sent.runs[0]["logged"]) == sorted(first.statuses)


def test_a_name_given_to_the_machine_is_not_passed_on_to_another(
    broken_off: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = next(broken_off.glob("outputs/[0-9]*/plan.json"))
    told = json.loads(plan.read_text(encoding="utf-8"))
    told["tracking"]["machine"] = "attic"
    plan.write_text(json.dumps(told), encoding="utf-8")
    monkeypatch.setenv("FAKE_MACHINE", "cellar")
    assert "with a tracking.machine of its own" in " ".join(go_on(broken_off).out.split())


def test_a_whole_sweep_is_sent_whatever_became_of_code_and_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "refuse").touch()
    first = run(tmp_path, *FOUR)
    (tmp_path / "refuse").unlink()

    def gone(spec: object) -> str:
        raise ValueError("the weights folder is gone")

    monkeypatch.setattr("tests.fake_jobs.digest", gone)
    sent = go_on(tmp_path)
    assert sent.code == 0 and sorted(sent.runs[0]["logged"]) == sorted(first.statuses)
    records(tmp_path)[0].unlink()
    assert go_on(tmp_path).code == 2
