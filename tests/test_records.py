"""Records keep what they are given, and refuse what is no number."""

from __future__ import annotations

import json

import pytest

from pipeline.records import SCHEMA, JobError, JobRecord, Pair, Piece

RECORD = JobRecord(
    digest="d",
    name="int8 k=8 seed=0",
    status="failed",
    overrides=("draft=int8", "k=8"),
    params={"k": 8, "prompt": "é\n"},
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
