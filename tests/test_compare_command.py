"""`python -m tracking compare`: from a store, chosen by sweep, machine or date, kept in MLflow."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlflow.entities import Run

from pipeline.records import SCHEMA, JobRecord
from tests.compared import SHARED, assert_alone, nudged, timed
from tests.records_factory import make_record, make_sweep
from tests.tracking_store import client, project
from tracking.__main__ import main
from tracking.artifacts import local_folder
from tracking.recorder import Recorder
from tracking.runs import search

JOBS = make_sweep(("bigram", "int8"), (1, 4), (0,))


def keep(
    recorder: Recorder, sweep_id: str, machine: str, records: list[JobRecord], load: str = "idle"
) -> None:
    tags = {"machine.id": f"id-{machine}", "machine.name": machine}
    recorder.open_sweep(sweep_id, "a test", tags)
    for record in records:
        own = SHARED | {"load.state": load} | record.tags
        recorder.log_job(replace(record, tags=own))
    jobs = [{"tags": {"load.state": load}} for _ in records]
    recorder.close_sweep("FINISHED", {}, "", {"jobs": jobs}, {})


@pytest.fixture
def store(tmp_path: Path) -> Recorder:
    """attic was idle, then busy; cellar has other weights for int8."""
    recorder = Recorder(root=project(tmp_path))
    keep(recorder, "s1", "attic", JOBS)
    keep(recorder, "s2", "attic", JOBS, "busy")
    other = [nudged(record) if record.params["draft"] == "int8" else record for record in JOBS]
    keep(recorder, "s3", "cellar", other)
    return recorder


def said(capsys: pytest.CaptureFixture[str], recorder: Recorder, *words: str) -> str:
    assert main(["--root", str(recorder.root), "compare", *words]) == 0
    return " ".join(capsys.readouterr().out.split())


def data(capsys: pytest.CaptureFixture[str], recorder: Recorder, *words: str) -> dict[str, Any]:
    assert main(["--root", str(recorder.root), "compare", "--json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def kept(recorder: Recorder) -> list[Run]:
    return list(search(recorder.open(), "tags.`run.kind` = 'compare'"))


def columns(found: dict[str, Any]) -> list[str]:
    return [column["label"] for column in found["columns"]]


def test_without_arguments_the_newest_of_each_machine_and_load_is_taken(
    store: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(store, "s4", "cellar", JOBS)
    found = data(capsys, store)
    assert columns(found) == ["attic idle", "attic busy", "cellar idle"]
    assert [sweep["id"] for sweep in found["sweeps"]] == ["s1", "s2", "s4"]


def test_the_terminal_tells_counts_timings_and_where_it_is_kept(
    store: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(capsys, store, "--machine", "attic", "cellar")
    assert "The weights differ in 2 jobs (int8)" in told
    assert "the texts part at character 22" in told  # read from the run's file
    assert "not told apart" in told
    assert (
        "MLflow: run 'compare attic idle | attic busy | cellar idle' of experiment 'specsweep': "
        "make ui shows it"
    ) in told


def test_sweeps_are_chosen_by_id_in_the_order_given(
    store: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(capsys, store, "--sweep", "s3", "--sweep", "s1")
    assert columns(found) == ["cellar idle", "attic idle"]


def test_the_last_two_are_taken_by_date(
    store: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert columns(data(capsys, store, "--last")) == ["attic busy", "cellar idle"]
    assert len(columns(data(capsys, store, "--last", "3"))) == 3


def test_a_sweep_that_only_counted_does_not_stand_in_for_a_timed_one(
    store: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    untimed = [
        replace(make_record(str(r.params["draft"]), r.params["k"], pairs=0), tags=r.tags)
        for r in JOBS
    ]
    recorder = store
    recorder.open_sweep("s5", "", {"machine.id": "id-attic", "machine.name": "attic"})
    for record in untimed:
        recorder.log_job(replace(record, tags=SHARED | record.tags))
    recorder.close_sweep("FINISHED", {}, "", {}, {})
    assert columns(data(capsys, store)) == ["attic idle", "attic busy", "cellar idle"]


def test_it_is_kept_once_however_often_it_is_made(
    store: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        said(capsys, store)
    (run,) = kept(store)
    assert run.info.status == "FINISHED"
    assert run.data.metrics == {
        "compare/matched": 4.0,
        "compare/agreeing": 2.0,
        "compare/flips": 0.0,
    }
    assert "**Counts**" in run.data.tags["mlflow.note.content"]
    files = {item.path for item in client(store).list_artifacts(run.info.run_id)}
    assert files == {"compare.html", "compare.json", "compare.csv", "figures"}


def test_other_sweeps_make_another_run(store: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, store)
    said(capsys, store, "--last")
    assert len(kept(store)) == 2


def test_a_kept_comparison_is_not_taken_for_a_sweep(
    store: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, store)
    assert columns(data(capsys, store)) == ["attic idle", "attic busy", "cellar idle"]


def test_the_page_is_written_where_it_is_wanted(
    store: Recorder, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    said(capsys, store, "--html", str(page))
    text = page.read_text(encoding="utf-8")
    assert text.count('<img src="data:image/png;base64,') == 3
    assert_alone(text)


def test_one_machine_alone_is_told_to_bring_anothers_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder(root=project(tmp_path))
    keep(recorder, "s1", "attic", JOBS)
    assert main(["--root", str(tmp_path), "compare"]) == 1
    told = capsys.readouterr().err
    assert "only attic (s1) to compare: bring another machine's results with `make import" in told


def test_a_job_that_was_run_again_does_not_hide_the_sweep(
    store: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(store, "s4", "cellar", JOBS[:1])
    told = said(capsys, store)
    assert "cellar idle: sweep s3, 4 timed jobs" in told
    assert (
        "Which sweeps Of cellar idle, sweep s3 is compared, which has 4 jobs in common with the "
        "others; its newest, s4, has 1: --sweep s1 --sweep s2 --sweep s4 takes that one."
    ) in told


def test_a_sweep_that_two_machines_timed_has_a_column_for_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second one's recorder writes its own name over the sweep's."""
    for seed, machine in enumerate(("attic", "cellar")):
        recorder = Recorder(root=tmp_path if seed else project(tmp_path))
        keep(recorder, "s1", machine, make_sweep(("bigram", "int8"), (1, 4), (seed,)))
    found = data(capsys, recorder)
    assert columns(found) == ["attic idle", "cellar idle"]
    assert [column["jobs"] for column in found["columns"]] == [4, 4]
    assert [column["told"]["id"] for column in found["columns"]] == ["id-attic", "id-cellar"]
    assert [rank["column"] for rank in found["ranks"]] == ["attic idle", "cellar idle"]


def test_records_of_a_newer_version_are_left_out_and_refused_where_they_are_named(
    store: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = [replace(record, schema=SCHEMA + 1) for record in JOBS]
    keep(store, "s4", "cellar", newer)
    told = said(capsys, store)
    assert f"Left out: sweep s4 has records of schema {SCHEMA + 1}, and this version of" in told
    assert "cellar idle: sweep s3, 4 timed jobs" in told
    assert main(["--root", str(store.root), "compare", "--sweep", "s4", "--sweep", "s1"]) == 1
    assert "update specsweep to compare it" in capsys.readouterr().err


def test_records_of_an_older_version_are_compared(
    store: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(store, "s4", "cellar", [replace(record, schema=1) for record in JOBS])
    assert data(capsys, store)["counts"]["agreeing"] == 4


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_terminal_that_knows_few_characters_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, words: list[str]
) -> None:
    recorder = Recorder(root=project(tmp_path))
    keep(recorder, "s1", "Mansarde-\N{HEAVY BLACK HEART}-" + "x" * 20, JOBS)  # also cut, with a …
    keep(recorder, "s2", "Keller-\xe9", JOBS[1:])
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    page = tmp_path / "page.html"
    code = main(["--root", str(tmp_path), "compare", "--html", str(page), *words])
    for stream in (out, err):
        stream.flush()
    told = out.buffer.getvalue().decode(encoding)
    assert code == 0
    assert "3 of 3 jobs agree" in told
    if words:
        assert json.loads(told)["columns"][0]["label"].startswith("Mansarde-\N{HEAVY BLACK HEART}")
    assert "Mansarde-\N{HEAVY BLACK HEART}" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--sweep", "s9"],
            "there is no sweep 's9' in the store: there are s1, s2, s3",
        ),
        (["--machine", "tower"], "the machines are: attic, cellar"),
        (["--sweep", "s1"], "with --sweep s1 there is only attic (s1) to compare: name a second"),
        (["--last", "1"], "only cellar (s3) to compare: ask for more"),
        (["--machine", "cellar"], "name another machine too (attic), or leave --machine out"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence_and_nothing_is_kept(
    store: Recorder, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert main(["--root", str(store.root), "compare", *words]) == 1
    heard = capsys.readouterr()
    assert told in heard.err and heard.err.count("\n") == 1 and not heard.out
    assert kept(store) == []


@pytest.mark.parametrize("words", [[], ["--last"], ["--sweep", "s1"], ["--machine", "attic"]])
def test_where_there_is_one_sweep_nobody_is_told_to_name_a_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    keep(Recorder(root=project(tmp_path)), "s1", "attic", JOBS)
    assert main(["--root", str(tmp_path), "compare", *words]) == 1
    told = capsys.readouterr().err
    assert "only attic (s1) to compare: bring another machine's results with `make import" in told
    assert "or run `make sweep` again" in told
    assert "--sweep" not in told and "ask for more" not in told


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"k": "many"}, []),
        ({"k": "many"}, ["--last"]),
        ({"k": "9" * 5000}, []),
        ({"draft": ""}, []),
    ],
)
def test_a_sweep_whose_k_is_no_number_is_left_out_by_name(
    store: Recorder,
    capsys: pytest.CaptureFixture[str],
    params: dict[str, str],
    words: list[str],
) -> None:
    strange = [replace(r, digest=f"x{r.digest}", params=r.params | params) for r in JOBS]
    keep(store, "s4", "cellar", strange)
    told = said(capsys, store, *words)
    assert "Left out: sweep s4 cannot be compared: its run '" in told
    assert "sweep s3, 4 timed jobs" in told
    assert main(["--root", str(store.root), "compare", "--sweep", "s4", "--sweep", "s1"]) == 1
    assert capsys.readouterr().err.startswith("sweep s4 cannot be compared: its run ")


def test_a_figure_that_nothing_measures_or_counts_is_not_taken(
    store: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = [
        timed(JOBS[0], (0.5, -1.0)),
        timed(JOBS[1], (1e20, 1.7e308, 1.7e308)),
        timed(JOBS[2], (1.0, 1.1), c=1e300, v=-1e300, o=0.0),
        JOBS[3],
    ]
    keep(store, "s4", "cellar", strange)
    found = data(capsys, store, "--sweep", "s1", "--sweep", "s4")
    assert [column["jobs"] for column in found["columns"]] == [4, 2]
    assert found["counts"]["agreeing"] == 4
    assert None in [row["c"] for row in found["timings"]]


@pytest.mark.parametrize(
    "broken",
    [
        lambda text: "not a record",
        lambda text: text.replace(f'"schema": {SCHEMA}', f'"schema": {SCHEMA + 1}'),
        lambda text: text.replace('"start"', '"begin"'),
        lambda text: text.replace('"margin": 0.021', '"margin": "wide"'),
    ],
)
def test_a_job_whose_file_is_no_record_is_compared_by_its_figures(
    store: Recorder, capsys: pytest.CaptureFixture[str], broken: Callable[[str], str]
) -> None:
    for run in search(store.open(), "tags.`sweep.id` = 's3' AND tags.`run.kind` = 'job'"):
        folder = local_folder(str(run.info.artifact_uri))
        assert folder is not None
        file = folder / "record.json"
        old = file.read_text(encoding="utf-8")
        assert broken(old) != old
        file.write_text(broken(old), encoding="utf-8")
    told = said(capsys, store, "--sweep", "s1", "--sweep", "s3")
    assert "2 of 4 jobs agree" in told
    assert "The margin of the round is not recorded" in told


def test_an_empty_store_says_to_run_a_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--root", str(project(tmp_path)), "compare"]) == 1
    assert "run `make sweep`" in capsys.readouterr().err


@pytest.mark.parametrize(("place", "told"), [("no/x.html", "make it first"), (".", "is a folder")])
def test_a_page_that_cannot_be_written_is_said_before_anything_is_done(
    store: Recorder, capsys: pytest.CaptureFixture[str], tmp_path: Path, place: str, told: str
) -> None:
    page = str(tmp_path / place)
    assert main(["--root", str(store.root), "compare", "--html", page]) == 1
    heard = capsys.readouterr()
    assert heard.err.startswith(f"--html {page}: ") and told in heard.err and not heard.out
    assert kept(store) == []
