"""The ways of timing: what each looks at is part of its jobs, and nothing else is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import estimate, job, pairs
from pipeline.compose import compose
from pipeline.config import to_spec, warnings_for
from pipeline.pairs import Measured, PairPlan
from pipeline.spec import JobSpec
from pipeline.timing import MEANT, SETTINGS
from tests.test_job import spec
from tracking.names import METRICS, PARAMS


def composed(*line: str) -> JobSpec:
    (one,) = compose(["draft=bigram", "k=1", "seed=0", *line])
    return to_spec(one.config)


@pytest.mark.parametrize(
    ("way", "setting"),
    [
        ("pairs", "timing.half_width=0.1"),
        ("pairs", "timing.most_pairs=8"),
        ("whole", "timing.limit_s=3"),
        ("whole", "timing.piece_tokens=5"),
        ("skip", "timing.pairs=8"),
        ("skip", "timing.threads=2"),
    ],
)
def test_a_setting_that_a_way_of_timing_ignores_makes_no_other_job(way: str, setting: str) -> None:
    plain, told = composed(f"timing={way}"), composed(f"timing={way}", setting)
    assert told == plain and job.digest(told) == job.digest(plain)
    assert set(plain.params()) & SETTINGS <= set(MEANT[way])


def test_the_settings_of_adaptive_timing_are_part_of_the_job() -> None:
    lines = ["", "timing.half_width=0.1", "timing.most_pairs=8", "timing.limit_s=3"]
    found = [composed("timing=adaptive", *line.split()) for line in lines]
    assert len({job.digest(one) for one in found}) == len(lines)
    assert found[1].params()["half_width"] == 0.1 and found[0].params()["most_pairs"] == 30
    assert set(found[0].params()) & SETTINGS <= set(PARAMS)
    assert found[0].name == "bigram k=1 seed=0 timing=adaptive"


def test_an_odd_limit_is_warned_of_where_it_is_looked_at() -> None:
    (told,) = warnings_for(composed("timing=adaptive", "timing.most_pairs=7"))
    assert told.startswith("timing.most_pairs=7 is odd") and told.endswith("8 would be")
    assert not warnings_for(composed("timing=pairs", "timing.most_pairs=7"))


def test_an_adaptive_job_says_what_stopped_it_and_its_null_has_the_usual_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = spec(timing="adaptive", pairs=6, most_pairs=8, half_width=1e-9)
    done = job.clock(one, job.count(one), {})
    assert done.metrics["time/pairs"] == 8 == len(done.series["time/pair_ratio"])
    assert "8 pairs are the most" in done.tags["timing.stopped"]
    narrow = spec(timing="adaptive", pairs=6, half_width=0.99)
    done = job.clock(narrow, job.count(narrow), {})
    taken = int(done.metrics["time/pairs"])  # 6, unless the machine is very busy
    assert done.tags["timing.stopped"].startswith("the interval is within")
    assert taken >= 6 and f"after {taken} pairs" in done.tags["timing.stopped"]
    planned: list[PairPlan] = []

    def measure(baseline: Any, speculative: Any, plan: PairPlan) -> Measured:
        planned.append(plan)
        return pairs.measure(baseline, speculative, plan)

    monkeypatch.setattr(job, "pairs", SimpleNamespace(**{**vars(pairs), "measure": measure}))
    assert set(job.null(one)) <= set(METRICS)
    assert planned[0].mode == "pairs" and planned[0].pairs == 6


def test_adaptive_pairs_are_estimated_between_the_least_and_the_most() -> None:
    def seconds(**given: Any) -> float:
        return estimate._pairs_s(spec(**{"pairs": 6, **given}), 0.5)

    assert seconds() == 3.0
    assert seconds(timing="adaptive") == 9.0  # of 3 to 15
    assert seconds(timing="adaptive", most_pairs=10) == 4.0
    assert seconds(timing="adaptive", limit_s=5.0) == 5.0
    assert seconds(timing="adaptive", limit_s=1.0) == 3.0  # the least are measured in any case
