"""No bundle is written that an import would refuse, and no run stays in a store twice."""

from __future__ import annotations

import dataclasses
import itertools
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.bundling import bundle_of, held, jobs, laptop, lines, sweep_of, tell
from tests.records_factory import make_record
from tracking.recorder import Recorder


@pytest.mark.parametrize(
    "name, sentence",
    [
        ("RECORD.json", "twice"),
        ("what?", "no name of a file on every system"),
    ],
)
def test_a_run_whose_files_no_import_would_take_is_named_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, sentence: str
) -> None:
    here, there = laptop(tmp_path / "here", "s1"), laptop(tmp_path / "there")
    first = next((here / "mlartifacts").rglob("record.json"))
    first.with_name(name).write_text("by hand", encoding="utf-8")
    assert tell(here, "export", tmp_path / "x.zip") == 1
    told = capsys.readouterr()
    assert told.err.count("\n") == 1 and sentence in told.err
    assert "of sweep s1 is left out, as no import would take it" in told.err
    assert "sweep s1, 2 jobs" in told.out
    assert tell(there, "import", tmp_path / "x.zip") == 0
    arrived, sent = held(there), held(here)
    assert len(arrived) == 3 and all(sent[key] == arrived[key] for key in arrived)


def _rename(api: Any, run_id: str) -> None:
    api.update_run(run_id, name="two\nlines")


def _no_number(api: Any, run_id: str) -> None:
    api.log_metric(run_id, "by/hand", float("nan"))


def _many_tags(api: Any, run_id: str) -> None:
    for number in range(101):
        api.set_tag(run_id, f"tag{number}", "x")


@pytest.mark.parametrize(
    "change, why",
    [
        (_rename, "control characters: 'two\\nlines'"),
        (_no_number, "which is no number"),
        (_many_tags, "at most 100"),
    ],
)
def test_a_run_that_was_changed_by_hand_is_named_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Any, why: str
) -> None:
    here = laptop(tmp_path / "here", "s1", "s2")
    store = Recorder(root=here).open()
    (parent,) = store.client.search_runs([store.experiment_id], "attributes.run_name = 's1'")
    job = store.client.search_runs(
        [store.experiment_id], f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'"
    )[0]
    change(store.client, job.info.run_id)
    file = tmp_path / "x.zip"
    assert tell(here, "export", file, "--all") == 1
    told = capsys.readouterr()
    assert why in told.err and told.err.count("\n") == 1
    assert "2 sweeps, 5 jobs" in told.out
    change(store.client, parent.info.run_id)  # and with it its whole sweep
    assert tell(here, "export", file, "--all") == 1
    told = capsys.readouterr()
    assert "sweep s1 is left out" in told.err and "1 sweep, 3 jobs" in told.out
    assert tell(laptop(tmp_path / "there"), "import", file) == 0
    file.unlink()
    assert tell(here, "export", file, "--sweep", "s1") == 1
    assert "nothing can be exported: sweep s1 is left out" in capsys.readouterr().err
    assert not file.exists()


def test_two_sweeps_whose_names_are_one_on_some_systems_are_not_in_one_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = laptop(tmp_path / "here", "s1", "S1")
    assert tell(here, "export", tmp_path / "x.zip", "--all") == 1
    assert "another run is called S1 too" in capsys.readouterr().err
    assert tell(laptop(tmp_path / "there"), "import", tmp_path / "x.zip") == 0


def test_the_longest_texts_that_a_store_takes_arrive(tmp_path: Path) -> None:
    """Together more than a server takes in one request."""
    here, there = laptop(tmp_path / "here"), laptop(tmp_path / "there")
    sweep_of(here, "s1").log_job(make_record())
    store = Recorder(root=here).open()
    (job,) = store.client.search_runs([store.experiment_id], "tags.`run.kind` = 'job'")
    signs = random.Random(0)
    for number in range(60):
        long = "".join(signs.choices('€\n"Ω', k=8000))
        store.client.log_param(job.info.run_id, f"long{number}", long[:6000])
        store.client.set_tag(job.info.run_id, f"tag{number}", long)
    assert tell(there, "import", bundle_of(here)) == 0
    assert held(there) == held(here)


def test_an_answer_that_is_lost_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server made the run twice, and nobody heard of it: of the sweep, and of each job."""
    here = laptop(tmp_path / "here", "s1")
    file, sent = bundle_of(here), held(here)
    for lost in itertools.count():
        there = laptop(tmp_path / f"there{lost}")
        client = type(Recorder(root=there).open().client)
        usual, left = client.create_run, itertools.count()
        reached: list[Any] = []

        def twice(
            *given: Any, usual: Any = usual, left: Any = left, at: int = lost, did: Any = reached
        ) -> Any:
            made = usual(*given)
            if next(left) == at:
                did.append(usual(*given))
                raise ConnectionError("Connection aborted")
            return made

        with monkeypatch.context() as patch:
            patch.setattr(client, "create_run", twice)
            code = tell(there, "import", file)
        if not reached:
            assert code == 0 and lost == len(sent)
            return
        assert code == 1
        assert tell(there, "import", file) == 0
        assert held(there) == sent
        before = held(there, every_tag=True)
        assert tell(there, "import", file) == 0
        assert held(there, every_tag=True) == before


def test_jobs_that_hang_on_a_doubled_sweep_hang_on_the_one_that_stays(tmp_path: Path) -> None:
    """As two imports into one server at once leave it."""
    here, there = laptop(tmp_path / "here", "s1"), laptop(tmp_path / "there")
    file = bundle_of(here)
    assert tell(there, "import", file) == 0
    before = held(there, every_tag=True)
    store = Recorder(root=there).open()
    runs = list(store.client.search_runs([store.experiment_id]))
    (parent,) = (run for run in runs if "mlflow.parentRunId" not in run.data.tags)
    job, other, _ = (run for run in runs if run is not parent)
    twin, twin_job = (
        store.client.create_run(
            store.experiment_id, r.info.start_time, r.data.tags, r.info.run_name
        )
        for r in (parent, other)
    )
    for run in (job, twin_job):
        store.client.set_tag(run.info.run_id, "mlflow.parentRunId", twin.info.run_id)
    assert tell(there, "import", file) == 0
    assert held(there, every_tag=True) == before
    ids = {run.info.run_id for run in store.client.search_runs([store.experiment_id])}
    assert ids == {run.info.run_id for run in runs}


def test_an_import_leaves_doubled_runs_that_were_recorded_here(tmp_path: Path) -> None:
    here = laptop(tmp_path / "here", "s1")
    file = bundle_of(here)
    store = Recorder(root=here).open()
    runs = list(store.client.search_runs([store.experiment_id]))
    for run in runs:
        store.client.create_run(
            store.experiment_id, run.info.start_time, run.data.tags, run.info.run_name
        )
    assert tell(here, "import", file) == 0
    assert len(store.client.search_runs([store.experiment_id])) == 2 * len(runs)


def test_every_member_of_a_bundle_is_one_of_its_runs(tmp_path: Path) -> None:
    """Also where a run was left out in the middle of the sweep."""
    here = laptop(tmp_path / "here")
    recorder = sweep_of(here, "s1")
    for record in jobs("s1"):
        recorder.log_job(dataclasses.replace(record, digest=record.digest.replace("-", "_")))
    records = sorted((here / "mlartifacts").rglob("record.json"))
    records[1].with_name("what?").write_text("", encoding="utf-8")
    assert tell(here, "export", tmp_path / "x.zip") == 1
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        folders = {name.rsplit("/", 1)[0] for name in archive.namelist() if "/" in name}
        runs = lines(archive.read("runs.jsonl"))
    assert folders == {f"artifacts/s1/{run['job']}" for run in runs if run["job"]}
    assert len(runs) == 3


def test_a_sweep_that_was_broken_off_is_said_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = laptop(tmp_path / "here", "s1")
    store = Recorder(root=here).open()
    parent = store.client.search_runs([store.experiment_id], "tags.`run.kind` = 'sweep'")[0]
    assert tell(here, "export", tmp_path / "whole.zip") == 0
    assert "broken off" not in capsys.readouterr().out
    store.client.set_terminated(parent.info.run_id, "KILLED")
    assert tell(here, "export", tmp_path / "part.zip") == 0
    told = capsys.readouterr().out
    assert "sweep s1 was broken off" in told and "make resume ARGS=s1" in told
