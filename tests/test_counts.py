"""Count figures: identities, rates without a denominator, positions."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline import counts
from pipeline.records import Round, Trace
from pipeline.verify import find
from tests.models import decode, drafts, tiny

ROUNDS = (
    Round(0, 3, 3, (1, 2, 3, 4)),
    Round(4, 3, 1, (5, 6)),
    Round(6, 3, 0, (7,)),
    Round(7, 1, 1, (8, 9)),
    Round(9, 0, 0, (10,)),
)
TRACE = Trace(ROUNDS, alpha=(0.5, 0.7), margin_min=0.01)


def test_figures_are_totals_over_totals() -> None:
    found = counts.metrics(TRACE)
    assert found["count/drafted"] == 10
    assert found["count/accepted"] == 5
    assert found["count/emitted"] == 10 == found["count/accepted"] + found["count/rounds"]
    assert found["count/acceptance_rate"] == 0.5  # the mean of the rounds' rates would be 0.58
    assert found["count/tokens_per_pass"] == 2
    assert found["count/alpha"] == pytest.approx(0.6)


def test_a_decode_that_drafted_nothing_has_no_acceptance_rate() -> None:
    found = counts.metrics(Trace((Round(0, 0, 0, (1,)), Round(1, 0, 0, (2,)))))
    assert "count/acceptance_rate" not in found and "count/alpha" not in found
    assert found["count/tokens_per_pass"] == 1


def test_rates_by_position_count_only_rounds_that_got_there() -> None:
    found = counts.by_position(TRACE)
    assert found["count/accept_joint"] == [(1, 3 / 4), (2, 1 / 3), (3, 1 / 3)]
    assert found["count/accept_at"] == [(1, 3 / 4), (2, 1 / 2), (3, 1.0)]


def test_a_position_never_reached_is_left_out_and_shifts_no_other() -> None:
    trace = Trace((Round(0, 3, 0, (1,)), Round(1, 3, 0, (2,))))
    found = counts.by_position(trace)
    assert found["count/accept_at"] == [(1, 0.0)]
    assert found["count/accept_joint"] == [(1, 0.0), (2, 0.0), (3, 0.0)]


def test_the_digest_sees_tokens_and_accepted_counts() -> None:
    base = counts.digest(TRACE)
    other_token = Trace((*ROUNDS[:-1], Round(9, 0, 0, (11,))))
    other_count = Trace((Round(0, 3, 2, (1, 2, 3, 4)), *ROUNDS[1:]))
    assert len({base, counts.digest(other_token), counts.digest(other_count)}) == 3
    assert base == counts.digest(Trace(ROUNDS))


def test_alpha_has_one_entry_a_tested_position_and_is_one_for_the_target_itself() -> None:
    model = tiny()
    for name, draft in drafts(model).items():
        _, steps, _, _ = decode(model, draft, 4)
        trace = counts.trace(steps, find("token"))
        tested = sum(min(r.accepted + 1, r.drafted) for r in trace.rounds)
        assert len(trace.alpha) == tested
        assert all(0 <= a <= 1 + 1e-12 for a in trace.alpha)
        assert 0 < trace.margin_min < 0.5
        if name == "same":
            assert min(trace.alpha) == pytest.approx(1, abs=1e-9)


def test_tidy_rows_add_up_to_the_figures() -> None:
    rows = counts.tidy(TRACE)
    assert sum(row["k"] for row in rows) == 10
    assert sum(row["accepted"] for row in rows) == 5
    assert sum(row["emitted"] for row in rows) == 10


@pytest.mark.parametrize("rule", ["token", "block", "match"])
def test_every_round_keeps_how_near_it_was_and_the_smallest_is_the_jobs_own(rule: str) -> None:
    model = tiny()
    _, steps, _, _ = decode(model, drafts(model)["int4"], 4, rule=rule)
    trace = counts.trace(steps, find(rule))
    assert min(trace.margins) == trace.margin_min
    rows = counts.tidy(trace)
    assert [row["margin"] for row in rows] == pytest.approx(trace.margins, rel=5e-3)


def test_a_choice_along_the_text_narrows_the_margin_of_its_own_round_alone() -> None:
    trace = Trace(ROUNDS, margin_min=0.2, margins=(0.5, 0.4, 0.3, 0.2, 0.9))
    gaps = np.ones(10)
    gaps[5], gaps[9] = 0.01, 0.6  # of the second round, and of the last
    found = counts.with_gaps(trace, gaps)
    assert found.margins == (0.5, 0.01, 0.3, 0.2, 0.6)
    assert found.margin_min == 0.01
    assert counts.with_gaps(trace, np.zeros(0)) == trace
    assert counts.digest(found) == counts.digest(trace)
