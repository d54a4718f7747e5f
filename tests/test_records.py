"""Records keep what they are given, and refuse what is no number."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest

from pipeline.records import SCHEMA, JobError, JobRecord, Pair, Piece
from tracking.rows import rows

RECORD = JobRecord(
    digest="d",
    name="int8 k=8 seed=0",
    status="failed",
    overrides=("draft=int8", "k=8"),
    params={"draft": "int8", "k": 8, "prompt": "é\n"},
    metrics={"count/alpha": 0.5},
    series={"count/accept_at": [(1, 0.5), (2, 0.25)]},
    tags={"verdict": "faster"},
    notes=("a note",),
    error=JobError("ValueError", "no", "Traceback"),
)


def test_a_record_comes_back_from_json_as_it_was() -> None:
    assert JobRecord.from_json(RECORD.to_json()) == RECORD


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_refused_by_name(value: float) -> None:
    with pytest.raises(ValueError, match="cost/c"):
        JobRecord("d", "n", "done", (), {}, metrics={"cost/c": value})
    with pytest.raises(ValueError, match="time/pair_ratio"):
        JobRecord("d", "n", "done", (), {}, series={"time/pair_ratio": [(0, value)]})


def test_a_newer_record_is_refused_with_the_fix_and_a_broken_one_named() -> None:
    newer = json.loads(RECORD.to_json()) | {"schema": SCHEMA + 1}
    with pytest.raises(ValueError, match="update specsweep"):
        JobRecord.from_json(json.dumps(newer))
    for broken in ("", "[]", '{"a": 1}', RECORD.to_json()[:100]):
        with pytest.raises(ValueError, match="not a job record"):
            JobRecord.from_json(broken)


def test_a_pairs_ratio_is_baseline_time_over_speculative_time() -> None:
    pieces = (
        Piece("baseline", 0, 60, 50, 10, 10),
        Piece("speculative", 0, 20, 20, 4, 10),
        Piece("speculative", 1, 30, 30, 4, 10),
        Piece("baseline", 1, 40, 40, 10, 10),
    )
    pair = Pair(0, "AB", pieces)
    assert pair.ratio == 2.0
    assert pair.cpu_ns("baseline") == 90


def test_a_record_of_the_form_before_is_read_and_has_no_timed_rounds() -> None:
    older = json.loads(RECORD.to_json()) | {"schema": 1}
    del older["timed_rounds"]
    found = JobRecord.from_json(json.dumps(older))
    assert found.schema == 1 and found.round_log() == [] and found.metrics == RECORD.metrics


WHOLE = dataclasses.replace(
    RECORD,
    rounds=[{"start": 0, "k": 8, "accepted": 2, "emitted": 3, "margin": None}],
    pieces=[{"side": "baseline", "wall_ns": 7}],
    timed_rounds={"k": [8], "accepted": [2], "ms": [[1.5], [2]]},
)


@pytest.mark.parametrize("text", ["", "null", "7", "[]", '"schema"', "[" * 100_000, '{"schema": '])
def test_what_is_no_json_object_is_no_record(text: str) -> None:
    with pytest.raises(ValueError, match="not a job record"):
        JobRecord.from_json(text)


@pytest.mark.parametrize("name", ["digest", "name", "status", "overrides", "params", "schema"])
def test_a_record_without_a_field_that_it_needs_is_refused_by_name(name: str) -> None:
    data = json.loads(WHOLE.to_json())
    del data[name]
    with pytest.raises(ValueError, match=f"not a job record: .*{name}"):
        JobRecord.from_json(json.dumps(data))


def test_a_field_that_nobody_knows_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'mood' is unknown"):
        JobRecord.from_json(json.dumps(json.loads(WHOLE.to_json()) | {"mood": "good"}))


WRONG: dict[str, list[Any]] = {
    "status": ["open", []],
    "overrides": ["draft=int8", [1]],
    "params": [
        [],
        {"draft": "int8"},
        {"k": 8},
        {"draft": "int8", "k": "many"},
        {"draft": "int8", "k": True},
        {"draft": "int8", "k": "auto", "k_most": "many"},
        {"draft": "int8", "k": 8, "x": [[[]]]},
    ],
    "metrics": [[], {"cost/c": "1"}, {"cost/c": None}, {"cost/c": 10**400}, {"cost/c": math.inf}],
    "series": [
        [],
        {"x": 1},
        {"x": [[1]]},
        {"x": [["1", 0.5]]},
        {"x": [[1.5, 1]]},
        {"x": [[1, ""]]},
    ],
    "tags": [{"verdict": 1}],
    "rounds": [{}, [1], [{"start": 0}], [{"start": 0, "emitted": "1"}]],
    "pieces": [[{"wall_ns": []}]],
    "timed_rounds": [
        [],
        {"k": [1]},
        {"k": [1], "accepted": [1], "ms": [1]},
        {"k": [1], "accepted": [1], "ms": [[1, 2]]},
        {"k": [1], "accepted": [], "ms": []},
    ],
    "notes": ["a note", [None]],
    "error": ["no", {}, {"type": "E", "message": "m"}, {"type": 1, "message": "", "traceback": ""}],
    "started_s": ["0", -1, 1e300, math.nan, 10**400],
    "finished_s": [None, True],
    "schema": ["x", "2", True, 0, -1, 1.0, None],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in WRONG.items() for v in values])
def test_a_field_of_another_form_is_refused_by_name(name: str, value: Any) -> None:
    data = json.loads(WHOLE.to_json()) | {name: value}
    with pytest.raises(ValueError, match=f"not a job record: .*{name}|metric cost/c is inf"):
        JobRecord.from_json(json.dumps(data))


@pytest.mark.parametrize("name", list(json.loads(WHOLE.to_json())))
@pytest.mark.parametrize("value", [None, 7, True, "x", [], [1], {}, {"a": []}, [[]], [{"a": {}}]])
def test_whatever_a_field_is_reading_ends_in_a_record_or_a_sentence(name: str, value: Any) -> None:
    try:
        found = JobRecord.from_json(json.dumps(json.loads(WHOLE.to_json()) | {name: value}))
    except ValueError:
        return
    assert JobRecord.from_json(found.to_json()) == found
    assert len(rows([found])) == 1 and found.round_lines() is not None


def test_a_failed_job_that_does_not_know_its_longest_draft_is_a_row() -> None:
    failed = dataclasses.replace(WHOLE, params={"draft": "int8", "k": "auto"})
    (row,) = rows([failed])
    assert (row.length, row.failed) == ("auto", 1)
