"""k=auto in what a sweep shows: a row of its own, named so, and last."""

from __future__ import annotations

from dataclasses import replace

from pipeline.records import JobRecord
from tests.records_factory import make_record
from tracking import tables
from tracking.figures import figures
from tracking.reference import findings
from tracking.rows import rows


def auto(draft: str = "int8", k_auto: float = 0.3, k_most: int = 8) -> JobRecord:
    record = make_record(draft, k_most)
    params = {**record.params, "k": "auto", "k_auto": k_auto, "k_most": k_most}
    metrics = {**record.metrics, "count/draft_length": 2.5}
    return replace(record, params=params, metrics=metrics)


def test_auto_is_a_row_after_the_fixed_lengths_and_never_one_of_them() -> None:
    found = rows([auto(), make_record("int8", 8), make_record("int8", 1)])
    assert [row.name for row in found] == ["int8 k=1", "int8 k=8", "int8 k=auto"]
    assert [row["k"] for row in tables.as_dicts(found)] == [1, 8, "auto"]
    assert found[0].split == {}


def test_two_thresholds_are_two_rows_and_fixed_lengths_have_none() -> None:
    found = rows([auto(), auto(k_auto=0.6), make_record("int8", 1)])
    assert sorted(row.name for row in found) == [
        "int8 k=1",
        "int8 k=auto k_auto=0.3",
        "int8 k=auto k_auto=0.6",
    ]


def test_what_it_drafts_on_average_is_what_the_predictions_take() -> None:
    (row,) = rows([auto()])
    assert row.c is not None and row.tokens_per_pass is not None
    assert row.predicted_simple == row.tokens_per_pass / (1 + 2.5 * row.c)


def test_auto_has_its_place_in_the_figures_and_none_in_the_published_table() -> None:
    found = rows([make_record("int8", 1), make_record("int8", 2), auto()])
    (axes,) = figures(found)["speedup"].axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "auto"]
    assert findings(found) == findings(found[:2])


def test_pairs_until_they_are_enough_are_judged_by_their_interval_not_their_range() -> None:
    record = make_record("int8", 4, pairs=30, noise=0.3)
    own = {"time/speedup_low": 0.90, "time/speedup_high": 0.92}
    params = {**record.params, "timing": "adaptive"}
    (row,) = rows([replace(record, params=params, metrics={**record.metrics, **own})])
    assert (row.low, row.high) == (0.90, 0.92)
    (row,) = rows([record])
    ratios = [ratio for _, ratio in record.series["time/pair_ratio"]]
    assert (row.low, row.high) == (min(ratios), max(ratios))
