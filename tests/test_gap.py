"""How far a prediction is off, and which term makes up the difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.records_factory import make_record
from tracking.gap import gap, sentence
from tracking.rows import Row, rows

(ROW,) = rows([make_record("int8", 4)])


def row(measured: float, c: float = 0.1, v: float = 1.0, o: float = 0.0) -> Row:
    """Three tokens a pass at k=4."""
    simple, full = 3 / (1 + 4 * c), 3 / (v + 4 * c + o)
    known = replace(ROW, tokens_per_pass=3.0, measured=measured, c=c, v=v, o=o)
    return replace(known, predicted_simple=simple, predicted=full)


@pytest.mark.parametrize(
    ("found", "term"),
    [
        (row(3 / 2.0, v=1.5, o=0.1), "verification"),
        (row(3 / 2.0, v=1.1, o=0.5), "the loop"),
        (row(3 / 2.5, v=1.1, o=0.1), "unexplained"),
        (row(3 / 1.0, v=1.1, o=0.1), "unexplained"),
    ],
)
def test_the_largest_part_of_the_difference_is_named(found: Row, term: str) -> None:
    told = gap(found)
    assert told is not None and told.term == term


def test_the_parts_add_up_to_the_difference_between_simple_and_measured() -> None:
    found = row(1.3, c=0.2, v=1.4, o=0.2)
    told = gap(found)
    assert told is not None
    measured_cost, simple_cost = 3 / 1.3, 1 + 4 * 0.2
    parts = told.verification + told.loop + told.unexplained
    assert parts == pytest.approx(measured_cost - simple_cost)
    assert told.simple == pytest.approx(measured_cost / simple_cost - 1)


def test_what_was_not_timed_has_no_gap_and_no_sentence() -> None:
    assert gap(replace(ROW, measured=None)) is None
    assert gap(replace(ROW, v=None)) is None
    assert sentence([]) == "" and sentence([replace(ROW, measured=None)]) == ""


def test_rows_that_the_full_formula_misses_are_named_with_the_way_it_errs() -> None:
    near = row(3 / 1.9, v=1.5)
    slow = replace(row(3 / 1.6, v=1.5), draft="quick")
    told = sentence([near, slow])
    assert "within 5% of the measured median in 1 of 2 rows" in told
    assert "(farthest: quick k=4, -16%)" in told and "predicted too slow: quick k=4" in told
    assert "too fast" not in told
    assert "Farther off" not in sentence([near])
