"""Best k, break-even acceptance and cost, from a sweep's own figures."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from rich.console import Console

from pipeline import theory
from pipeline.advice import advice, as_dict
from pipeline.records import JobRecord
from tests.records_factory import make_failed, make_record
from tracking import advice as told
from tracking import recommend
from tracking.maps import break_even, shares
from tracking.rows import rows


def job(draft: str, k: int, alpha: float, c: float, v: float = 1.2, o: float = 0.1) -> JobRecord:
    record = make_record("int8", k)
    tokens = theory.expected_tokens(alpha, k)
    figures = {"count/alpha": alpha, "cost/c": c, "cost/v": v, "cost/o": o}
    figures |= {"count/emitted": 1000 * tokens, "count/target_passes": 1000.0}
    params = {**record.params, "draft": draft, "k": k}
    return replace(record, params=params, metrics={**record.metrics, **figures})


KS = (1, 2, 4, 8)


def _measured(record: JobRecord, speedup: float) -> JobRecord:
    """The same job, its six pairs within a hundredth of `speedup`."""
    ratios = [speedup * (1 + 0.004 * (step - 2.5)) for step in range(6)]
    ends = {"low": min(ratios), "high": max(ratios), "min": min(ratios), "max": max(ratios)}
    figures = {f"time/speedup_{end}": ratio for end, ratio in ends.items()}
    series = {**record.series, "time/pair_ratio": list(enumerate(ratios))}
    metrics = {**record.metrics, **figures, "time/speedup_median": speedup}
    return replace(record, metrics=metrics, series=series)


def test_a_cheap_good_draft_pays_at_the_k_that_the_formula_says() -> None:
    (found,) = advice(job("good", k, 0.8, 0.1) for k in KS)
    ways = {
        k: theory.speedup(theory.expected_tokens(0.8, k), k, 0.1, 1.2, 0.1) for k in range(1, 9)
    }
    assert found.best_k == max(ways, key=lambda k: ways[k])
    assert found.expected == pytest.approx(max(ways.values())) and found.pays


def test_costs_between_two_measured_k_lie_on_the_line_between_them() -> None:
    (found,) = advice([job("d", 2, 0.9, 0.2, v=1.2), job("d", 4, 0.9, 0.1, v=1.4)])
    at_three = theory.expected_tokens(0.9, 3) / (1.3 + 0.4 + 0.1)  # both draft for 0.4 in all
    at_four = theory.expected_tokens(0.9, 4) / (1.4 + 0.4 + 0.1)
    assert found.expected == pytest.approx(max(at_three, at_four))


def test_a_draft_as_dear_as_the_target_can_never_pay_and_is_told_what_it_would_need() -> None:
    found = advice(job("int8", k, 0.99, 1.06, v=1.3) for k in KS)
    assert not found[0].pays and all(one.needs > 1 for one in found[0].at)
    text = recommend.sentence(as_dict(found), [])
    assert text.startswith("Advice: decode plainly.") and "No acceptance is enough for int8" in text
    least = min(one.needs for one in found[0].at)
    assert f"int8 ({least:.2f})" in text


def test_a_draft_that_proposes_only_at_times_is_promised_only_what_it_drafts() -> None:
    """A quarter of the rounds drafts: three quarters yield a single token."""
    records = [job("ngram", k, 0.8, 0.1) for k in (1, 4)]
    records = [
        replace(r, metrics={**r.metrics, "count/draft_length": r.params["k"] / 4}) for r in records
    ]
    (found,) = advice(records)
    tokens = 1 + (theory.expected_tokens(0.8, 4) - 1) / 4
    assert found.best_k == 4 and found.expected == pytest.approx(tokens / (1.2 + 1 * 0.1 + 0.1))
    at = found.at[-1]
    worth = 1 + (sum(at.needs**i for i in range(1, 5))) / 4
    assert worth == pytest.approx(1.2 + 1 * 0.1 + 0.1)


def test_at_the_needed_acceptance_a_round_is_worth_what_it_costs() -> None:
    (found,) = advice(job("d", k, 0.5, 0.05) for k in KS)
    for one in found.at:
        tokens = theory.expected_tokens(one.needs, one.k)
        assert theory.speedup(tokens, one.k, one.c, one.v, one.o) == pytest.approx(1.0)
        as_dear = theory.speedup(one.tokens_per_pass, one.k, max(one.c_limit, 0), one.v, one.o)
        assert one.c_limit < 0 or as_dear == pytest.approx(1.0)


def test_the_best_draft_is_named_first_and_the_others_that_pay_after_it() -> None:
    records = [job(name, k, a, 0.02) for name, a in (("fair", 0.6), ("best", 0.9)) for k in KS]
    records = [_measured(record, 1.3) for record in records]
    text = recommend.sentence(as_dict(advice(records)), rows(records))
    assert text.startswith("Advice: best with k=8, expected at ")
    assert text.index("best") < text.index("fair") and "would pay too" in text


@pytest.mark.parametrize(
    "alpha, speedups, told",
    [
        # promised and measured: k=4 was not the best by the formula, and nothing is hidden
        (0.9, (1.2, 1.3, 1.4, 1.5), "d with k=8, expected at 4.20× and measured at 1.50× ("),
        # promised, and slower by the clock: another k that was faster is named
        (0.9, (1.2, 1.0, 1.0, 0.8), "d k=1, measured at 1.20× ("),
        # promised, and not told apart: no more than a hope
        (
            0.9,
            (1.0, 1.0, 1.0, 1.0),
            "perhaps d with k=8, expected at 4.20× and",
        ),
        # nothing promised, and measured faster all the same
        (0.1, (1.2, 0.9, 0.9, 0.9), "d k=1, measured at 1.20× ("),
        # promised, measured slower, and nothing else faster
        (0.9, (0.9, 0.9, 0.9, 0.8), "decode plainly. "),
    ],
)
def test_the_advice_never_contradicts_the_clock(
    alpha: float, speedups: tuple[float, ...], told: str
) -> None:
    jobs = [job("d", k, alpha, 0.02) for k in KS]
    records = [_measured(one, speed) for one, speed in zip(jobs, speedups, strict=True)]
    text = recommend.sentence(as_dict(advice(records)), rows(records))
    assert text.startswith(f"Advice: {told}"), text


def test_a_k_between_the_measured_ones_is_said_not_to_be_measured() -> None:
    jobs = [job("d", k, 0.5, c, v) for k, c, v in ((1, 0.05, 1.3), (2, 0.05, 1.4), (4, 0.05, 1.42))]
    records = [_measured(one, 1.1) for one in jobs]
    found = as_dict(advice(records))
    found["drafts"][0]["best_k"] = 3
    text = recommend.sentence(found, rows(records))
    assert "k=3, expected" in text and "(not measured; k=1 was, at 1.10× (" in text


def test_only_timed_chains_of_a_fixed_length_under_the_token_rule_are_advised_on() -> None:
    auto = job("d", 4, 0.8, 0.1)
    auto = replace(auto, params={**auto.params, "k": "auto", "k_auto": 0.3, "k_most": 8})
    block = job("d", 4, 0.8, 0.1)
    block = replace(block, params={**block.params, "verify": "block"})
    assert advice([auto, block, make_failed(), make_record(pairs=0)]) == []
    assert as_dict([]) == {} and recommend.sentence({}, []) == ""


def test_seeds_are_taken_together_and_settings_apart() -> None:
    one, other = job("d", 4, 0.8, 0.1), job("d", 4, 0.6, 0.3)
    other = replace(other, params={**other.params, "seed": 1})
    (found,) = advice([one, other])
    assert found.alpha == pytest.approx(0.7) and found.at[0].c == pytest.approx(0.2)
    warm = replace(other, params={**other.params, "temperature": 0.5})
    assert [a.setting for a in advice([one, warm])] == [
        {"temperature": "1.0"},
        {"temperature": "0.5"},
    ]


def test_the_table_has_a_line_a_draft_and_fits_a_terminal() -> None:
    found = as_dict(advice(job(d, k, 0.6, 0.1) for d in ("layerskip", "int8") for k in KS))
    out = io.StringIO()
    Console(file=out, width=80).print(told.as_rich(found))
    lines = out.getvalue().splitlines()
    assert len(lines) == 4 and all("…" not in line for line in lines)
    assert lines[0].split()[:4] == ["draft", "keeps", "alpha", "best"]
    assert len(told.as_markdown(found).splitlines()) == 4


def test_the_map_is_the_break_even_formula_at_each_c_and_k() -> None:
    grid = as_dict(advice(job("d", k, 0.6, 0.1) for k in KS))["map"]
    assert grid["k"] == list(range(1, 9)) and len(grid["c"]) == len(grid["needs"][0])
    for k, row in zip(grid["k"], grid["needs"], strict=True):
        assert row[10] == pytest.approx(theory.break_even_acceptance(k, grid["c"][10], 1.2, 0.1))


def test_the_map_has_a_point_a_draft_and_k_filled_where_it_pays() -> None:
    records = [job("pays", k, 0.9, 0.05) for k in KS] + [job("never", k, 0.9, 1.2) for k in KS]
    figure = break_even(as_dict(advice(records)))
    assert figure is not None
    points = [line for line in figure.axes[0].lines if np.size(line.get_xdata()) == 1]
    filled = [line.get_markerfacecolor() != "white" for line in points]
    assert filled == [True] * 4 + [False] * 4
    assert break_even({}) is None and break_even(as_dict(advice([job("d", 1, 0.5, 0.1)]))) is None


def test_a_draft_that_costs_more_than_the_map_shows_stands_in_the_dark() -> None:
    """A white field would say that hardly any acceptance is needed there."""
    dear = break_even(as_dict(advice(job("dear", k, 0.9, 3.0) for k in KS)))
    cheap = break_even(as_dict(advice(job("cheap", k, 0.9, 0.05) for k in KS)))
    assert dear is not None and cheap is not None
    assert max(to_rgb(dear.axes[0].get_facecolor())) < 0.6
    assert to_rgb(cheap.axes[0].get_facecolor()) == (1.0, 1.0, 1.0)


def test_the_bars_of_a_round_end_where_the_full_formula_ends() -> None:
    found = rows([make_record(d, k) for d in ("int8", "bigram") for k in KS])
    figure = shares(found)
    assert figure is not None
    bars = [bar for bar in figure.axes[0].patches if isinstance(bar, Rectangle)]
    ends = [sum(bar.get_width() for bar in bars[i :: len(found)]) for i in range(len(found))]
    costs = [(r.tokens_per_pass or 0.0) / (r.predicted or 1.0) for r in found]
    assert ends == pytest.approx(costs)
    assert shares(rows([make_record(pairs=0)])) is None
