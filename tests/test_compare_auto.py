"""k=auto in a comparison: by what it drafts on average, and called as it was asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.records import JobRecord
from tests.compared import on_machine, side_by_side, timed
from tests.records_factory import make_record
from tracking.compare import Comparison
from tracking.compare.breakeven import Point, constant_acceptance, points
from tracking.compare.breakeven_map import map_of
from tracking.compare.data import as_data
from tracking.compare.table import tidy
from tracking.compare.words import rank_sentences

COSTS = {"c": 0.2, "v": 1.2, "o": 0.1}


def auto(draft: str, drafted: float, ratios: tuple[float, ...], **costs: float) -> JobRecord:
    record = make_record(draft, 8)
    params = {**record.params, "k": "auto", "k_auto": 0.3, "k_most": 8}
    metrics = {**record.metrics, "count/draft_length": drafted, "count/emitted": 200.0}
    record = replace(record, digest=f"auto {draft}", params=params, metrics=metrics)
    return timed(record, ratios, **(COSTS | costs))


@pytest.fixture
def found() -> Comparison:
    jobs = [
        timed(make_record("int8", 8), (1.1, 1.2), **COSTS),
        auto("int8", 5.5, (1.3, 1.4)),
        timed(make_record("bigram", 8), (0.8, 0.9), **COSTS),
        auto("bigram", 1.5, (0.9, 1.0)),
    ]
    return side_by_side(on_machine("attic", jobs), on_machine("cellar", jobs))


def test_a_point_is_on_the_side_of_its_panels_line_that_its_prediction_says(
    found: Comparison,
) -> None:
    predicted = {
        (line.series, row.length): row.predicted
        for line in found.lines
        for row in line.cells
        if row is not None
    }
    every = points(found.lines)
    assert [point.length for point in every] == ["8"] * 4 + ["auto"] * 4
    assert {point.drafted for point in every if point.length == "auto"} == {5.5}
    for point in every:
        speedup = predicted[point.name, point.length]
        assert speedup is not None
        assert _pays(point) == (speedup > 1)
    assert len({_pays(point) for point in every}) == 2


def _pays(point: Point) -> bool:
    """Whether it is in the shaded part: its acceptance is above what its cost needs."""
    return point.a > constant_acceptance(1 + point.drafted * point.cost, point.drafted)


def test_auto_has_a_panel_of_its_own(found: Comparison) -> None:
    figure = map_of(found.lines, ["attic", "cellar"])
    assert figure is not None
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["k=8", "k=auto (up to 5.5)"]


def test_auto_is_no_fixed_length_in_the_order_by_acceptance_and_in_the_data(
    found: Comparison,
) -> None:
    ranks = as_data(found)["ranks"]
    assert [rank["accepted_at"] for rank in ranks] == [8, 8]
    only_auto = [auto("int8", 5.5, (1.3, 1.4)), auto("bigram", 1.5, (0.9, 1.0))]
    told = rank_sentences(side_by_side(*(on_machine(name, only_auto) for name in ("a", "b"))))
    assert told[0].startswith("a idle: by speed int8 k=auto 1.35 > bigram k=auto 0.95; by")
    assert "(at k=auto)" in told[0]
    assert [row["k"] for row in tidy(found)][::2] == [8, "auto", 8, "auto"]


def test_the_terms_of_a_flip_are_weighed_by_what_is_drafted_not_by_the_most() -> None:
    """At k=8 the drafted tokens would make the larger part of the difference."""
    pays = [auto("int8", 1.5, (2.0, 2.1), c=0.1, v=1.0)]
    loses = [auto("int8", 1.5, (0.8, 0.9), c=0.4, v=2.5)]
    (flip,) = side_by_side(on_machine("attic", pays), on_machine("cellar", loses)).flips
    assert [term for term, *_ in flip.costs] == ["v"]
