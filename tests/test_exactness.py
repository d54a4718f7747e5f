"""The statistics a job is judged by: right under the null, and as powerful as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pipeline import exactness, leak
from pipeline.verify import RULES
from tests.enumeration import Case, random_case
from tests.simulation import joint, write

V = 30


def pair_laws(seed: int = 0, roughness: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Joint laws of two characters under a target and a bigram-like draft, `(V, V)` each."""
    generator = np.random.default_rng(seed)
    common = 1 / np.arange(1, V + 1) ** 1.3
    table = generator.dirichlet(20 * common / common.sum(), V) + 1e-5
    table /= table.sum(axis=1, keepdims=True)
    second = table * np.exp(generator.normal(0, roughness, (V, V)))
    second /= second.sum(axis=1, keepdims=True)
    return table[3][:, None] * second, table[3][:, None] * table


def binomial_holds(hits: int, trials: int, chance: float) -> bool:
    low, high = stats.binom.ppf([0.0005, 0.9995], trials, chance)
    return bool(low <= hits <= high)


def test_total_variation_is_half_the_absolute_difference() -> None:
    law = np.array([0.5, 0.5, 0.0])
    assert exactness.total_variation(np.array([5, 5, 0]), law) == 0
    assert exactness.total_variation(np.array([0, 0, 9]), law) == 1
    assert exactness.total_variation(np.array([3, 1, 0]), law) == pytest.approx(0.25)


def test_tv_null_is_what_draws_from_the_target_show_and_is_the_same_every_time() -> None:
    law = pair_laws()[0].sum(axis=1)
    median, high = exactness.tv_null(law, 2000, np.random.default_rng(1))
    assert (median, high) == exactness.tv_null(law, 2000, np.random.default_rng(1))
    drawn = np.random.default_rng(2).multinomial(2000, law, size=400)
    values = np.array([exactness.total_variation(counts, law) for counts in drawn])
    assert binomial_holds(int((values > high).sum()), 400, 0.05)
    assert binomial_holds(int((values > median).sum()), 400, 0.5)


def test_pools_are_sound_and_keep_what_the_draft_likes_together() -> None:
    p, q = pair_laws()
    pool = exactness.pools(500 * p, q)
    expected = np.bincount(pool.ravel(), 500 * p.ravel())
    assert expected.min() >= exactness.SOUND
    assert expected.sum() == pytest.approx(500)
    small = 500 * p < exactness.SOUND
    order = np.argsort((q / p)[small], kind="stable")
    numbers = pool[small][order]
    assert (np.diff(numbers) >= 0).all()


def test_pools_of_too_few_draws_become_one_and_the_test_abstains() -> None:
    assert set(exactness.pools(np.full(10, 0.1), np.zeros(10))) == {0}
    assert exactness.g_test(np.array([1, 0]), np.array([0.5, 0.5])) == 1.0


def test_a_draw_that_the_target_forbids_is_rejected_at_sight() -> None:
    counts, p, q = np.array([500, 499, 1]), np.array([0.5, 0.5, 0.0]), np.array([0.2, 0.2, 0.6])
    assert exactness.g_test(counts, p) == 0
    assert leak.leak_test(counts, p, q) == 0
    assert exactness.pit_test(p[None], None, np.array([2]), np.array([0.5])) == 0


def test_a_greedy_target_is_met_or_not() -> None:
    p, q = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    assert exactness.g_test(np.array([0, 9]), p) == leak.leak_test(np.array([0, 9]), p, q) == 1
    assert exactness.g_test(np.array([1, 8]), p) == leak.leak_test(np.array([1, 8]), p, q) == 0
    assert leak.detectable_leak(p, q, 1000) == pytest.approx(2 * math.log(100) / 1000, rel=0.01)


@pytest.mark.parametrize("draws", [500, 20_000])
def test_null_p_values_of_the_counts_tests_are_uniform(draws: int) -> None:
    p, q = pair_laws()
    tables = np.random.default_rng(3).multinomial(draws, p.ravel(), size=400).reshape(-1, V, V)
    for values in (
        [exactness.g_test(counts, p, q) for counts in tables],
        [leak.leak_test(counts, p, q) for counts in tables],
    ):
        assert stats.kstest(values, "uniform").pvalue > 0.001
        for level in (0.05, 0.01):
            assert binomial_holds(sum(value < level for value in values), 400, level)


@pytest.mark.parametrize("name", RULES)
def test_null_p_values_of_a_rule_are_uniform_over_200_seeds(name: str) -> None:
    case = random_case(np.random.default_rng(8), 2, least=1)
    p, q = joint(case.target, 3), joint(case.draft, 2)
    found = np.array([job_p_values(name, case, p, q, seed) for seed in range(200)])
    for values in found.T:
        assert binomial_holds(int((values < 0.05).sum()), 200, 0.05)
    by_g, by_leak, _, by_pit = found.T
    for values in (by_g, by_leak, by_pit):  # the smaller of two, doubled, is not quite uniform
        assert stats.kstest(values, "uniform").pvalue > 0.001


def job_p_values(
    name: str, case: Case, p: np.ndarray, q: np.ndarray, seed: int
) -> tuple[float, float, float, float]:
    generator = np.random.default_rng([9, seed])
    texts = write(RULES[name], case, 3000, generator)
    counts = texts.counts()
    by_g = exactness.g_test(counts, p)
    by_leak = leak.leak_test(counts.sum(axis=2), p.sum(axis=2), q)
    places = texts.ids.size
    by_pit = exactness.pit_test(
        texts.p.reshape(places, -1),
        texts.q.reshape(places, -1),
        texts.ids.reshape(-1),
        generator.random(places),
    )
    return by_g, by_leak, exactness.smaller_of_two(by_g, by_leak), by_pit


def test_pit_values_are_uniform_and_q_none_means_order_by_id() -> None:
    p, q = np.array([[0.2, 0.3, 0.5]] * 3), np.array([[0.1, 0.6, 0.3]] * 3)
    emitted, u = np.array([0, 1, 2]), np.array([0.5, 0.5, 0.5])
    # ratios 0.5, 2, 0.6: the order is 0, 2, 1
    assert exactness.pit(p, q, emitted, u) == pytest.approx([0.1, 0.85, 0.45])
    assert exactness.pit(p, None, emitted, u) == pytest.approx([0.1, 0.35, 0.75])
    assert exactness.pit(p, 0 * q, emitted, u) == pytest.approx([0.1, 0.35, 0.75])
    with pytest.raises(ValueError, match="probability 0 under the target"):
        exactness.pit(np.array([[0.0, 1.0]]), None, np.array([0]), np.array([0.5]))


def test_pit_sees_a_leak_that_order_by_id_hardly_sees() -> None:
    p, q = (law / law.sum() for law in (pair_laws()[0][3], pair_laws()[1][5]))
    generator, n = np.random.default_rng(10), 4000
    emitted = generator.choice(V, size=n, p=0.85 * p + 0.15 * q)
    rows, draft_rows, u = np.tile(p, (n, 1)), np.tile(q, (n, 1)), generator.random(n)
    assert exactness.pit_test(rows, draft_rows, emitted, u) < 1e-6


def test_kolmogorov_p_value_agrees_with_the_exact_law() -> None:
    generator = np.random.default_rng(12)
    for n in (20, 200, 3000):
        for power in (0.8, 1.0, 1.1):
            values = generator.random(n) ** power
            exact = stats.kstest(values, "uniform", method="exact").pvalue
            assert exactness.uniform_p_value(values) == pytest.approx(exact, abs=0.001)


def test_holm_is_the_textbooks() -> None:
    assert exactness.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert exactness.holm([0.6, 0.7]) == [1.0, 1.0]
    assert exactness.holm([]) == []
    with pytest.raises(ValueError, match="outside"):
        exactness.holm([float("nan")])


def test_leak_tail_is_right_far_out() -> None:
    p, q, draws = np.array([0.7, 0.3]), np.array([0.2, 0.8]), 400
    for hits in (120, 140, 160, 180):
        exact = stats.binom.sf(hits - 1, draws, 0.3) + stats.binom.sf(hits, draws, 0.3)
        found = leak.leak_test(np.array([draws - hits, hits]), p, q)
        assert found == pytest.approx(exact / 2, rel=0.1)  # two outcomes only: half a step apart


@pytest.mark.parametrize("draws", [2000, 20_000])
def test_detectable_leak_is_caught_as_often_as_it_says(draws: int) -> None:
    p, q = pair_laws()
    leaked = leak.detectable_leak(p, q, draws, level=0.025)
    mixed = (1 - leaked) * p + leaked * q
    tables = np.random.default_rng(13).multinomial(draws, mixed.ravel(), size=400)
    caught = sum(
        exactness.smaller_of_two(exactness.g_test(x, p, q), leak.leak_test(x, p, q)) < 0.05
        for x in tables.reshape(-1, V, V)
    )
    assert binomial_holds(caught, 400, 0.99)


def test_detectable_leak_of_a_bigram_is_small_and_of_a_near_copy_large() -> None:
    p, q = pair_laws()
    near = p * np.exp(np.random.default_rng(14).normal(0, 0.05, p.shape))
    assert leak.detectable_leak(p, q, 20_000, level=0.025) <= 0.03
    assert leak.detectable_leak(p, q, 1_000_000, level=0.025) < 0.003
    assert 0.1 < leak.detectable_leak(p, near / near.sum(), 20_000) < 1
    assert leak.detectable_leak(p, p, 20_000) == 1.0


def test_draws_to_catch_gives_the_power_it_promises() -> None:
    law, wrong = np.full(8, 1 / 8), np.linspace(1, 1.3, 8) / np.linspace(1, 1.3, 8).sum()
    needed = leak.draws_to_catch(law, wrong)
    tables = np.random.default_rng(15).multinomial(int(needed), wrong, size=600)
    caught = sum(exactness.g_test(counts, law) < 0.05 for counts in tables)
    assert binomial_holds(caught, 600, 0.99)
    assert leak.draws_to_catch(law, law) == math.inf
    assert leak.draws_to_catch(np.array([1.0, 0.0]), np.array([0.9, 0.1])) == 44


@pytest.mark.parametrize(
    "call",
    [
        lambda: exactness.total_variation(np.zeros(3, int), np.full(3, 1 / 3)),
        lambda: exactness.g_test(np.zeros(3, int), np.full(3, 1 / 3)),
        lambda: leak.leak_test(np.zeros(3, int), np.full(3, 1 / 3), np.full(3, 1 / 3)),
        lambda: exactness.uniform_p_value(np.zeros(0)),
    ],
)
def test_no_data_is_an_error_not_a_p_value(call: object) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match="nothing to test"):
        call()


def test_shapes_that_do_not_fit_are_told() -> None:
    with pytest.raises(ValueError, match="one shape"):
        exactness.g_test(np.ones(3, int), np.full(4, 0.25))
    with pytest.raises(ValueError, match="one shape"):
        leak.detectable_leak(np.full(4, 0.25), np.full(3, 1 / 3), 10)


@pytest.mark.parametrize("draws", [5, 50, 400])
@pytest.mark.parametrize("rare", [0.3, 0.01, 1e-4, 1e-6])
def test_a_certain_draft_and_few_draws_never_make_an_honest_decoder_look_wrong(
    draws: int, rare: float
) -> None:
    """A one-hot q on a character that the target hardly ever writes: one draw carries the score."""
    p, q = np.array([rare, 0.7 - rare, 0.3]), np.array([1.0, 0.0, 0.0])
    tables = np.random.default_rng(3).multinomial(draws, p, size=4000)
    kinds, times = np.unique(tables[:, 0], return_counts=True)
    found = np.array(
        [leak.leak_test(np.array([hits, draws - hits, 0]), p, q) for hits in kinds.tolist()]
    )
    assert ((found >= 0) & (found <= 1)).all()
    for level in (0.05, 0.01, 0.001):
        wrong = times[found <= level].sum() / times.sum()
        assert wrong <= level + 4 * np.sqrt(level / 4000)
