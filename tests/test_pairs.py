"""Timing in pairs: what is timed, in which order, and what is derived from it."""

from __future__ import annotations

import gc
import itertools
import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.stats

from pipeline.pairs import PairPlan, from_tidy, interval, measure, statistics, tidy, verdict
from pipeline.records import Pair, Piece, Side
from tests.fake_machine import Machine, Writer

MS = 1_000_000


def pair(
    baseline: int,
    speculative: int,
    index: int = 0,
    order: Any = "AB",
    cpu: tuple[float, float] = (1, 1),
    tokens: tuple[int, int] = (10, 10),
) -> Pair:
    """One pair of one piece a half; times in ns, `cpu` as shares of them."""
    sides: tuple[Side, Side] = ("baseline", "speculative")
    walls = (baseline, speculative)
    pieces = (
        Piece(side, 0, wall, round(wall * share), 1, count)
        for side, wall, share, count in zip(sides, walls, cpu, tokens, strict=True)
    )
    return Pair(index, order, tuple(pieces))


def bursts(seed: int) -> Callable[[int], float]:
    """Foreign load that slows everything four times, on and off at random for 50 to 500 ms."""
    generator = random.Random(seed)
    edges = list(itertools.accumulate(generator.uniform(50, 500) * MS for _ in range(400)))
    return lambda now: 4.0 if np.searchsorted(edges, now) % 2 else 1.0


def test_both_orders_occur_equally_often_and_the_seed_decides_which_comes_first() -> None:
    for seed, first in ((0, "AB"), (1, "BA"), (2, "AB")):
        orders = [PairPlan(10, seed=seed).order(index) for index in range(6)]
        assert orders[0] == first
        assert all(a != b for a, b in itertools.pairwise(orders))
    machine = Machine()
    write = partial(Writer, machine, 40, MS)
    found = measure(write, write, PairPlan(40), machine.clock())
    assert [one.order for one in found.pairs] == ["AB", "BA"] * 3
    for one in found.pairs:
        sides = [piece.side for piece in one.pieces]
        first_side = "baseline" if one.order == "AB" else "speculative"
        assert sides[::2] == [first_side] * (len(sides) // 2)


def test_pieces_are_the_same_stretches_on_both_sides_and_nothing_is_decoded_twice() -> None:
    machine = Machine()
    opened: list[Writer] = []

    def opener(per_round: int) -> Callable[[], Writer]:
        def new() -> Writer:
            opened.append(Writer(machine, 200, MS, per_round))
            return opened[-1]

        return new

    found = measure(opener(1), opener(3), PairPlan(200, 4, round_tokens=3), machine.clock())
    assert len(opened) == 2 + 2 * 4  # the warm-up's, then two a pair
    for writer in opened[2:]:
        assert writer.stretches[0][0] == 0 and writer.out == 200
        assert all(a[1] == b[0] for a, b in itertools.pairwise(writer.stretches))
    for one in found.pairs:
        for index in range(10):
            two = [piece for piece in one.pieces if piece.index == index]
            assert {piece.side for piece in two} == {"baseline", "speculative"}
            assert abs(two[0].tokens - two[1].tokens) < 3
        assert sum(piece.tokens for piece in one.pieces) == 400


def test_a_piece_is_what_the_baseline_writes_in_20_ms_and_never_below_a_round() -> None:
    machine = Machine()
    slow, fast = partial(Writer, machine, 200, 2 * MS), partial(Writer, machine, 200, MS, 9)
    assert measure(slow, fast, PairPlan(200), machine.clock()).piece_tokens == 10
    assert PairPlan(200).stops(10) == list(range(10, 201, 10))
    assert PairPlan(200, round_tokens=9).stops(1) == [200 * i // 22 for i in range(1, 23)]
    assert PairPlan(7).stops(100) == [7]
    asked = measure(slow, fast, PairPlan(200, piece_tokens=50), machine.clock())
    assert len(asked.pairs[0].pieces) == 2 * 4


def test_whole_halves_are_one_piece_a_half() -> None:
    machine = Machine()
    write = partial(Writer, machine, 200, MS)
    found = measure(write, write, PairPlan(200, mode="whole"), machine.clock())
    assert [len(one.pieces) for one in found.pairs] == [2] * 6


def test_opening_a_side_and_warming_up_are_outside_every_clock() -> None:
    machine = Machine()

    def opened(round_ns: int) -> Writer:
        machine.work(1000 * MS)
        return Writer(machine, 50, round_ns)

    found = measure(partial(opened, 4 * MS), partial(opened, 2 * MS), PairPlan(50), machine.clock())
    got = statistics(found.pairs)
    assert got.ratios == (2.0,) * 6
    assert got.baseline_s == (0.2,) * 6 and got.speculative_s == (0.1,) * 6
    assert got.baseline_tokens_per_s == pytest.approx(250)
    assert got.timed_s == pytest.approx(1.8)


def test_bursts_of_load_cancel_in_pieces_and_not_in_whole_halves() -> None:
    def spread(mode: Any) -> float:
        medians = []
        for seed in range(20):
            machine = Machine(load=bursts(seed))
            baseline = partial(Writer, machine, 200, MS)
            faster = partial(Writer, machine, 200, 2 * MS, 3)
            found = measure(baseline, faster, PairPlan(200, mode=mode), machine.clock())
            medians.append(math.log(statistics(found.pairs).median))
        return float(np.std(medians))

    assert spread("pairs") < spread("whole") / 2


def test_the_collector_is_off_inside_the_halves_and_as_before_outside() -> None:
    machine = Machine()
    seen: list[bool] = []

    class Watching(Writer):
        def advance(self, until: int) -> tuple[int, int]:
            seen.append(gc.isenabled())
            return super().advance(until)

    write = partial(Watching, machine, 20, MS)
    for was_on in (True, False):
        seen.clear()
        (gc.enable if was_on else gc.disable)()
        try:
            measure(write, write, PairPlan(20, 2), machine.clock())
            assert gc.isenabled() is was_on
        finally:
            gc.enable()
        assert not any(seen[4:])  # the warm-up's are the first four


def test_a_pair_is_heard_of_as_soon_as_it_is_done() -> None:
    machine = Machine()
    heard: list[Pair] = []
    write = partial(Writer, machine, 20, MS)
    found = measure(write, write, PairPlan(20, 3), machine.clock(), heard.append)
    assert tuple(heard) == found.pairs and found.stopped == "3 pairs, as planned"


def test_the_median_is_of_the_ratios_not_the_ratio_of_the_medians() -> None:
    pairs = [pair(a, b, i) for i, (a, b) in enumerate([(100, 100), (900, 300), (400, 200)])]
    got = statistics(pairs)
    assert got.ratios == (1.0, 3.0, 2.0)
    assert (got.median, got.minimum, got.maximum) == (2.0, 1.0, 3.0)


def test_up_to_six_pairs_the_interval_is_the_range() -> None:
    for count, confidence in ((1, 0.0), (5, 0.9375), (6, 0.96875)):
        ratios = [1.1 + i / 10 for i in range(count)]
        assert interval(ratios) == (ratios[0], ratios[-1], confidence)


@pytest.mark.parametrize("count", [7, 9, 12])
def test_from_seven_pairs_the_interval_holds_what_the_exact_signed_rank_test_accepts(
    count: int,
) -> None:
    ratios = np.exp(np.random.default_rng(count).normal(0.2, 0.1, count))
    low, high, confidence = interval(list(ratios))
    assert 0.95 <= confidence < 0.98

    def p_value(centre: float) -> float:
        shifted = np.log(ratios) - math.log(centre)
        return float(scipy.stats.wilcoxon(shifted, method="exact").pvalue)

    assert min(p_value(low * 1.0001), p_value(high / 1.0001)) > 0.05
    assert max(p_value(low / 1.0001), p_value(high * 1.0001)) <= 0.05


def test_the_confidence_is_the_share_of_sign_patterns_that_cover() -> None:
    sizes = np.array([0.01, 0.023, 0.04, 0.055, 0.08, 0.11, 0.17])
    signs = list(itertools.product((-1, 1), repeat=7))
    ends = [interval(list(np.exp(sizes * sign))) for sign in signs]
    covered = sum(low <= 1 <= high for low, high, _ in ends)
    assert covered / len(signs) == pytest.approx(ends[0][2])


def test_swapping_the_sides_gives_the_reciprocal_interval() -> None:
    ratios = [0.8, 0.9, 0.95, 1.0, 1.02, 1.1, 1.3, 1.31]
    low, high, _ = interval(ratios)
    other_low, other_high, _ = interval([1 / r for r in ratios])
    assert (1 / other_high, 1 / other_low) == pytest.approx((low, high))


def test_the_order_effect_compares_ab_with_ba() -> None:
    pairs = [pair(110, 100, 0, "AB"), pair(100, 100, 1, "BA")]
    assert statistics(pairs).order_effect == pytest.approx(1.1)
    assert statistics(pairs[:1]).order_effect is None


def test_pairs_with_unequal_cpu_shares_are_flagged_and_kept() -> None:
    shares = [(1.0, 1.0), (1.0, 0.9), (0.9, 0.97), (0.8, 0.84)]
    pairs = [pair(1000, 1000, i, cpu=share) for i, share in enumerate(shares)]
    got = statistics(pairs)
    assert got.flagged == (1, 2)
    assert len(got.ratios) == 4
    assert got.cpu_share_baseline == pytest.approx(0.925)


def test_an_end_of_text_at_different_places_does_not_pass_for_speed() -> None:
    assert statistics([pair(100, 50, tokens=(10, 5))]).median == 1.0
    with pytest.raises(ValueError, match="emitted no token"):
        statistics([pair(100, 50, tokens=(10, 0))])


def test_adaptive_goes_on_until_the_interval_is_narrow_whoever_is_ahead() -> None:
    for factor in (1.0, 3.0):  # no difference, and a blatant one
        machine = Machine()
        baseline = partial(Writer, machine, 50, factor * MS)
        plan = PairPlan(50, mode="adaptive", half_width=0.01)
        found = measure(baseline, partial(Writer, machine, 50, MS), plan, machine.clock())
        assert len(found.pairs) == 6 and "after 6 pairs" in found.stopped


def test_adaptive_stops_at_the_most_pairs_or_the_time_limit_and_says_so() -> None:
    def run(**given: Any) -> tuple[int, str]:
        machine, noise = Machine(), random.Random(3)

        def write() -> Writer:
            return Writer(machine, 50, noise.uniform(1, 3) * MS)

        plan = PairPlan(50, mode="adaptive", half_width=0.01, **given)
        found = measure(write, write, plan, machine.clock())
        return len(found.pairs), found.stopped

    count, why = run(most_pairs=9)
    assert count == 9 and "9 pairs are the most" in why
    count, why = run(limit_s=2.0)
    assert 6 < count < 30 and "2 s allowed" in why


def test_a_result_that_meets_one_or_the_null_is_ambiguous() -> None:
    def says(ratios: list[int], null: tuple[float, float] | None = None) -> str:
        pairs = [pair(ratio, 100, i) for i, ratio in enumerate(ratios)]
        return verdict(statistics(pairs), *(null or (None, None)))

    assert says([110, 120]) == "faster"
    assert says([80, 90]) == "slower"
    assert says([90, 110]) == says([100, 110]) == "ambiguous"
    assert says([110, 120], (0.9, 1.11)) == "ambiguous"
    assert says([110, 120], (0.9, 1.05)) == "faster"
    assert says([80, 90], (0.89, 1.05)) == "ambiguous"
    assert says([110, 120], (0.9, 0.95)) == "faster"  # a null that misses 1 does not widen it


def test_statistics_can_be_derived_again_from_the_rows_on_record() -> None:
    machine = Machine(load=bursts(1))
    write = partial(Writer, machine, 200, MS)
    pairs = measure(write, write, PairPlan(200, 7), machine.clock()).pairs
    assert from_tidy(tidy(pairs)) == pairs


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"tokens": 0}, "tokens=0: give 1 or more"),
        ({"pairs": 0}, "pairs=0: give 1 or more"),
        ({"piece_tokens": 0}, "timing.piece_tokens=0"),
        ({"mode": "sideways"}, "timing=sideways"),
        ({"half_width": 0.0}, "timing.half_width"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_by_name(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        PairPlan(**{"tokens": 10, **given})
    with pytest.raises(ValueError, match="no pair was timed"):
        statistics([])
