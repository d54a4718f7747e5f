"""Plain decoding against itself: once for each kind of baseline, never another kind's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline import nulls
from pipeline.spec import JobSpec

ONE = JobSpec(draft="bigram", draft_options={}, k=2, seed=0)


@pytest.mark.parametrize(
    "change",
    [
        {"compile": True},
        {"timing": "whole"},
        {"tokens": 80},
        {"threads": 2},
        {"temperature": 0.5},
        {"weights": "weights/mine"},
    ],
)
def test_another_baseline_has_a_null_of_its_own(change: dict[str, Any]) -> None:
    assert nulls.kind(replace(ONE, **change)) != nulls.kind(ONE)


@pytest.mark.parametrize(
    "change", [{"draft": "int8"}, {"k": 8}, {"seed": 1}, {"verify": "block"}, {"draws": 5}]
)
def test_jobs_of_one_baseline_share_their_null(change: dict[str, Any]) -> None:
    assert nulls.kind(replace(ONE, **change)) == nulls.kind(ONE)


def test_an_adaptive_jobs_null_is_that_of_fixed_pairs() -> None:
    adaptive = replace(ONE, timing="adaptive", most_pairs=30, half_width=0.02, limit_s=60.0)
    assert nulls.kind(adaptive) == nulls.kind(ONE)


def test_a_sweeps_noise_is_the_widest_of_its_nulls() -> None:
    some = [
        {nulls.MEDIAN: 1.0, nulls.LOW: 0.9, nulls.HIGH: 1.02},
        {nulls.MEDIAN: 1.02, nulls.LOW: 0.98, nulls.HIGH: 1.1},
    ]
    assert nulls.together(some) == {nulls.MEDIAN: 1.01, nulls.LOW: 0.9, nulls.HIGH: 1.1}
    assert nulls.together([]) == {}
