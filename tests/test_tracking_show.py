"""`python -m tracking` reads sweeps back from their folder or from the store."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pipeline.records import JobError, JobRecord
from tests.records_factory import make_failed, make_record, make_sweep
from tests.tracking_store import sweep_in
from tracking.__main__ import main


def keep(root: Path, sweep_id: str, records: list[JobRecord]) -> Path:
    folder = root / "outputs" / sweep_id
    for record in records:
        file = folder / "jobs" / record.digest / "record.json"
        file.parent.mkdir(parents=True)
        file.write_text(record.to_json(), encoding="utf-8")
    return folder


def test_the_newest_sweep_is_shown_from_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(tmp_path, "s1", [make_record("int4")])
    keep(tmp_path, "s2", make_sweep(("bigram",), (1, 2)))
    (tmp_path / "outputs" / "latest").write_text("s2", encoding="utf-8")
    assert main(["--root", str(tmp_path), "show"]) == 0
    told = capsys.readouterr().out
    assert "sweep s2" in told
    assert "bigram k=2 is fastest here" in told


def test_another_sweep_is_shown_by_its_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(tmp_path, "s1", [make_record("int4")])
    assert main(["--root", str(tmp_path), "show", "--sweep", "s1"]) == 0
    assert "int4" in capsys.readouterr().out


def test_without_a_folder_the_store_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = sweep_in(tmp_path, "s7")
    for record in make_sweep(("bigram", "int8"), (4,), seeds=(0,)):
        recorder.log_job(record)
    recorder.start_job("open", "int4 k=4 seed=0", {"draft": "int4", "k": 4}, {})
    assert main(["--root", str(tmp_path), "show"]) == 0
    told = capsys.readouterr().out
    assert "sweep s7" in told
    assert "bigram k=4 is fastest here" in told


def test_a_record_of_the_store_that_cannot_be_read_is_named_by_its_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = sweep_in(tmp_path, "s7")
    recorder.log_job(make_record("int8", 4))
    (file,) = (tmp_path / "mlartifacts").rglob("record.json")
    file.write_text("not a record", encoding="utf-8")
    assert main(["--root", str(tmp_path), "show"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("the file record.json of run 'int8 k=4 seed=0' of sweep s7: not a job")


def test_nothing_to_show_is_one_sentence_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep_in(tmp_path)
    assert main(["--root", str(tmp_path), "show", "--sweep", "s9"]) == 1
    told = capsys.readouterr()
    assert told.err == "there is no sweep 's9' in outputs/ or in the store: run `make sweep`\n"


def test_a_damaged_record_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = keep(tmp_path, "s1", [make_record()])
    (file,) = folder.rglob("record.json")
    file.write_text("{", encoding="utf-8")
    assert main(["--root", str(tmp_path), "show", "--sweep", "s1"]) == 1
    assert str(file) in capsys.readouterr().err


def test_a_folder_address_is_refused_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "file:///tmp/mlruns")
    assert main(["--root", str(tmp_path), "show"]) == 1
    assert "sqlite:///PATH/mlflow.db" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, told",
    [
        (["ui", "--port", "99999"], "port 99999: give one from 1 to 65535"),
        (["server", "--host", "203.0.113.9"], "203.0.113.9 is no address of this machine: give "),
        (["ui", "--sweep", "nope"], "there is no sweep 'nope' in "),
    ],
)
def test_what_cannot_be_served_is_one_sentence(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep_in(tmp_path)
    assert main(["--root", str(tmp_path), *words]) == 1
    said = capsys.readouterr().err
    assert said.startswith(told) and said.count("\n") == 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "postgresql+psycopg://127.0.0.1:1/x"])
def test_a_store_that_is_down_is_told_with_what_to_do(
    address: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    assert main(["--root", str(tmp_path), "export"]) == 1
    assert "does not answer: start it, or unset MLFLOW_TRACKING_URI" in capsys.readouterr().err


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["--help"])
    assert done.value.code == 0
    assert "python -m tracking show --sweep ID" in capsys.readouterr().out


@pytest.mark.parametrize("named", [".", "..", "../outputs", "s1/jobs", ""])
def test_what_is_no_sweeps_folder_is_not_shown_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], named: str
) -> None:
    sweep_in(tmp_path)
    keep(tmp_path, "s1", [make_record("int4")])
    keep(tmp_path, "s2", make_sweep(("bigram",), (1, 2)))
    assert main(["--root", str(tmp_path), "show", "--sweep", named]) == 1
    assert "there is no sweep" in capsys.readouterr().err


def test_a_sweep_may_be_named_by_the_path_of_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = keep(tmp_path, "s1", [make_record("int4")])
    assert main(["--root", str(tmp_path), "show", "--sweep", str(folder)]) == 0
    assert "sweep s1" in capsys.readouterr().out


def test_a_terminal_obeys_nothing_that_a_record_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record may have come with a bundle; markup of the table's own is only text in it too."""
    esc, bell = "\x1b]0;PWN\x07", "\x9b2J"
    hostile = dataclasses.replace(
        make_failed(),
        name=f"x{esc}",
        params={"draft": f"[red]i{esc}", "k": 4, "temperature": f"1{bell}", f"draft.{esc}": 1},
        overrides=(f"draft={esc}",),
        error=JobError(f"Error{esc}", f"no {bell}", ""),
    )
    other = dataclasses.replace(make_record(), params=hostile.params | {"temperature": "[/]"})
    third = dataclasses.replace(make_record(k=1), params=hostile.params | {f"draft.{esc}": 2})
    keep(tmp_path, "s1", [hostile, other, third])
    assert main(["--root", str(tmp_path), "show", "--sweep", "s1"]) == 0
    told = capsys.readouterr()
    assert "[red]i\\x1b]0;PWN\\x07" in told.out
    assert not set(told.out + told.err) & set("\x1b\x07\x9b")
