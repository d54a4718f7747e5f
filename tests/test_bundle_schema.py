"""Bundles that older versions wrote are read for good; `tests/bundles` keeps one of each form.

Newer ones are refused: see `test_bundle_refused.py`.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from pipeline.records import JobRecord
from tests.bundling import held, lines, tell
from tests.tracking_store import project
from tracking.bundle import SCHEMA
from tracking.bundle_read import opened
from tracking.bundle_row import run_of

OLD = Path(__file__).parent / "bundles"
SWEEP = "20261129-214601-0c69"


def test_there_is_a_bundle_of_every_form() -> None:
    assert [opened_schema(n) for n in range(1, SCHEMA + 1)] == list(range(1, SCHEMA + 1))


def opened_schema(number: int) -> int:
    with zipfile.ZipFile(OLD / f"schema-{number}.zip") as archive:
        manifest = archive.read("manifest.json").decode()
    return number if f'"schema": {number}' in manifest else 0


def test_a_bundle_of_the_first_form_is_merged_whole(tmp_path: Path) -> None:
    assert tell(project(tmp_path), "import", OLD / "schema-1.zip") == 0
    found = held(tmp_path)
    parent, job = found.pop(f"{SWEEP}/"), found.popitem()[1]
    assert not found
    assert (parent["name"], parent["status"], job["parent"]) == (SWEEP, "FINISHED", SWEEP)
    assert parent["times"] == (1795988774956, 1795988794714)
    assert (job["name"], job["status"]) == ("bigram k=2 seed=0", "FINISHED")
    assert job["times"] == (1795988774993, 1795988792554)
    assert job["history"]["count/target_passes"] == [(0, 1795988779836, 16.0)]
    assert [step for step, _, _ in job["history"]["time/pair_ratio"]] == [0, 1]
    assert job["tags"]["record.schema"] == "1" and job["params"]["tokens"] == "24"
    assert set(job["files"]) == {"pieces.csv", "record.json", "rounds.csv", "text.txt"}


def test_a_record_of_the_first_form_is_read(tmp_path: Path) -> None:
    with opened(OLD / "schema-1.zip") as bundle:
        (run,) = (run for run in bundle.runs if run.job)
        with bundle.open(run, "record.json") as file:
            record = JobRecord.from_json(file.read().decode())
    assert (record.name, record.status) == ("bigram k=2 seed=0", "done")
    assert record.metrics["count/emitted"] == 24 and len(record.text) == 24
    assert sum(row["accepted"] for row in record.rounds) == record.metrics["count/accepted"]


def test_an_old_sweep_is_shown_with_its_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(project(tmp_path), "import", OLD / "schema-1.zip")
    capsys.readouterr()
    assert tell(tmp_path, "show", "--sweep", SWEEP) == 0
    told = capsys.readouterr().out
    assert "bigram 2  0.276   1.50" in told and "ambiguous" in told


def test_what_a_newer_program_adds_to_a_row_of_the_same_form_is_passed_over() -> None:
    with zipfile.ZipFile(OLD / "schema-1.zip") as archive:
        rows = lines(archive.read("runs.jsonl"))
    assert run_of(rows[0] | {"invented": [1]}, (), {}) == run_of(rows[0], (), {})
