"""A sweep's exactness: many tests, corrected for their number, and a second look at the worst."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.records import JobRecord
from pipeline.verdicts import (
    AGAIN,
    LOOK_AGAIN_BELOW,
    REJECT_BELOW,
    TESTS,
    adjusted,
    holm_statement,
    rechecked,
    suspects,
)


def record(name: str, p_value: float, pit: float | None = 0.5, **tags: str) -> JobRecord:
    metrics = {"dist/p_value": p_value}
    if pit is not None:
        metrics["dist/pit_p_value"] = pit
    return JobRecord(
        digest=name,
        name=name,
        status="counted",
        overrides=(),
        params={},
        metrics=metrics,
        tags=tags,
    )


def sweep(*p_values: float) -> list[JobRecord]:
    return [record(f"job {i}", p) for i, p in enumerate(p_values)]


def test_an_honest_sweep_gets_one_sentence_and_no_second_look() -> None:
    records = sweep(0.31, 0.02, 0.7)
    assert suspects(records) == ()
    found = holm_statement(records)
    assert found.sentence == (
        "3 jobs, 6 tests of the distribution: smallest Holm-adjusted p 0.12: nothing against "
        "exactness"
    )
    assert found.rejected == ()
    assert found.metrics == {
        "sweep/tests": 6,
        "sweep/holm_p_value": pytest.approx(0.12),
        "sweep/rejected": 0,
    }


def test_both_tests_of_a_job_count_and_the_correction_is_for_all_of_them() -> None:
    by_pit = record("pit", 0.9, pit=0.004)
    assert suspects([by_pit]) == (by_pit,)
    family = [by_pit, *sweep(*[0.5] * 6)]
    assert suspects(family) == ()  # 14 tests: 0.004 times 14 is above 0.05
    assert adjusted(family)[0] == pytest.approx(14 * 0.004)


def test_a_second_look_that_passes_clears_the_job_and_is_not_asked_for_again() -> None:
    records = sweep(1e-6, 0.5)
    records[0] = rechecked(records[0], 0.4)
    assert suspects(records) == ()
    assert records[0].metrics[AGAIN] == 0.4
    assert "exactness" not in records[0].tags and "tested again" in records[0].notes[0]
    found = holm_statement(records)
    assert found.rejected == () and "1 job tested again" in found.sentence


@pytest.mark.parametrize(("again", "rejected"), [(0.0, True), (0.0009, True), (0.001, False)])
def test_only_a_second_look_below_one_in_a_thousand_rejects(again: float, rejected: bool) -> None:
    records = sweep(1e-9, 0.5)
    records[0] = rechecked(records[0], again)
    found = holm_statement(records)
    assert [one.name for one in found.rejected] == ["job 0"] * rejected
    assert ("REJECTED: job 0" in found.sentence) == rejected
    assert (records[0].tags.get("exactness") == "REJECTED") == rejected


def test_a_small_p_that_was_not_looked_at_again_is_no_verdict_yet() -> None:
    found = holm_statement(sweep(1e-9, 0.5))
    assert found.rejected == () and found.sentence.endswith("to be tested again: job 0")


def test_jobs_without_tests_are_no_part_of_the_family() -> None:
    failed = JobRecord("x", "failed", "failed", (), {})
    assert suspects([failed]) == ()
    assert holm_statement([failed]).metrics == {} == holm_statement([]).metrics
    assert holm_statement([failed, *sweep(0.5)]).sentence.startswith("1 job, 2 tests")


def test_an_honest_sweep_is_rejected_less_than_once_in_ten_thousand() -> None:
    generator = np.random.default_rng(1)
    looks = [
        len(suspects([record(str(i), *pair) for i, pair in enumerate(generator.random((36, 2)))]))
        for _ in range(1500)
    ]
    second_looks = np.mean(looks)  # a sweep
    assert second_looks < LOOK_AGAIN_BELOW * 1.3
    assert second_looks * REJECT_BELOW < 1e-4
    assert len(TESTS) == 2
