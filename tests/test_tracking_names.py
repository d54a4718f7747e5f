"""Nothing reaches MLflow under a name that is not explained."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.records import JobRecord
from pipeline.spec import JobSpec
from tests.records_factory import make_record
from tracking import names
from tracking.notes import experiment_note, for_page

PROJECT = Path(__file__).resolve().parents[1]


def test_every_metric_has_a_side_a_unit_a_meaning_and_a_known_section() -> None:
    for name, metric in names.METRICS.items():
        assert name == metric.name
        assert metric.side in ("counts", "clocks")
        assert metric.unit and metric.meaning
        assert name.partition("/")[0] in names.SECTIONS


def test_the_seconds_of_the_machine_are_never_counts() -> None:
    assert {m.side for m in names.METRICS.values() if m.unit in ("s", "us", "tokens/s")} == {
        "clocks"
    }


def refused_names(record: JobRecord) -> str:
    """What is wrong with a record's names; empty where nothing is."""
    try:
        names.check_record(record)
    except ValueError as error:
        return str(error)
    return ""


def test_a_whole_record_passes() -> None:
    assert refused_names(make_record()) == ""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"metrics": {"time/speedup_medain": 1.0}}, "did you mean time/speedup_median"),
        ({"metrics": {"time/pair_ratio": 1.0}}, "metric 'time/pair_ratio'"),
        ({"series": {"count/alpha": [(0, 1.0)]}}, "series 'count/alpha'"),
        ({"params": {"drafd": "int8"}}, "did you mean draft"),
        ({"tags": {"verdct": "faster"}}, "did you mean verdict"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(
    change: dict[str, Any], told: str
) -> None:
    record = dataclasses.replace(make_record(), **change)
    with pytest.raises(ValueError, match="tracking/names.py") as refused:
        names.check_record(record)
    assert told in str(refused.value)


def test_a_drafts_own_options_are_parameters() -> None:
    record = make_record()
    with_option = dataclasses.replace(record, params=record.params | {"draft.bits": 8})
    assert refused_names(with_option) == ""


def test_the_experiments_note_explains_every_name_and_fits_into_mlflow() -> None:
    note = experiment_note()
    assert all(f"`{name}`" in note for name in (*names.METRICS, *names.TAGS))
    assert len(note) < 20_000


def test_markdown_is_laid_out_for_mlflows_page() -> None:
    written = (
        "One\nparagraph.\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n\n- an item that\n  goes on\n- two"
    )
    assert for_page(written) == (
        "One paragraph.\n\n"
        "| a&nbsp;&nbsp; | b&nbsp;&nbsp; |\n|---|---:|\n| 1&nbsp;&nbsp; | 2&nbsp;&nbsp; |\n\n"
        "&nbsp;\n\n"  # a line of room
        "- an item that goes on\n- two"
    )


def test_every_metric_that_the_pipeline_writes_is_explained() -> None:
    written = re.compile(r'"((?:count|dist|memory|time|cost|null|load|sweep)/\w+)"')
    for file in (PROJECT / "pipeline").rglob("*.py"):
        for name in written.findall(file.read_text(encoding="utf-8")):
            assert name in names.METRICS, f"{file.name} writes {name}"


def test_every_part_of_a_job_is_a_parameter() -> None:
    parts = {field.name for field in dataclasses.fields(JobSpec)}
    assert parts - {"draft_options", "weights"} <= set(names.PARAMS)
