"""Edges of the verification rules: one sequence, zeros, near-equal rows, batches, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import sampling
from pipeline.verify import RULES, find, verify
from pipeline.verify.rows import draw, edge_gap

V, K = 7, 3
TOP = float(np.nextafter(1, 0))  # the largest uniform there is


Rounds = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def batch(seed: int, lanes: int, k: int = K) -> Rounds:
    generator = np.random.default_rng(seed)
    p = generator.dirichlet(np.ones(V), (lanes, k + 1))
    q = 0.5 * p[:, :k] + 0.5 * generator.dirichlet(np.ones(V), (lanes, k))
    drafted = np.zeros((lanes, k), np.int64)
    for i in range(k):
        drafted[:, i] = draw(q[:, i], generator.random(lanes))
    return p, q, drafted, generator.random((lanes, k)), generator.random(lanes)


@pytest.mark.parametrize("name", RULES)
def test_a_row_of_a_batch_equals_the_row_alone_to_the_bit(name: str) -> None:
    p, q, drafted, u, u_next = batch(1, 200)
    accepted, token = RULES[name].verify(p, q, drafted, u, u_next)
    margin = RULES[name].margin(p, q, drafted, u, u_next, accepted)
    for lane in range(200):
        at = slice(lane, lane + 1)
        one = RULES[name].verify(p[at], q[at], drafted[at], u[at], u_next[at])
        assert (one[0][0], one[1][0]) == (accepted[lane], token[lane])
        closest = RULES[name].margin(p[at], q[at], drafted[at], u[at], u_next[at], one[0])
        assert closest[0] == margin[lane]
        single = verify(name, p[lane], q[lane], drafted[lane], u[lane], u_next[lane])
        assert single == (accepted[lane], token[lane])


@pytest.mark.parametrize("name", RULES)
def test_nothing_drafted_is_a_plain_draw_from_the_target(name: str) -> None:
    p, _, _, _, u_next = batch(2, 50)
    none = p[:, :0], np.zeros((50, 0), np.int64), np.zeros((50, 0))
    accepted, token = RULES[name].verify(p[:, :1], *none, u_next)
    assert (accepted == 0).all()
    assert (token == sampling.draw(p[:, 0], u_next)).all()
    assert np.allclose(
        RULES[name].margin(p[:, :1], *none, u_next, accepted), edge_gap(p[:, 0], u_next)
    )
    assert verify(name, p[0, :1], [], [], [], u_next[0]) == (0, token[0])


def test_match_emits_what_plain_decoding_draws_with_the_same_uniforms() -> None:
    p, q, drafted, u, u_next = batch(3, 500)
    accepted, token = RULES["match"].verify(p, q, drafted, u, u_next)
    plain = np.stack([sampling.draw(p[:, i], u[:, i]) for i in range(K)], axis=1)
    plain = np.concatenate([plain, sampling.draw(p[:, K], u_next)[:, None]], axis=1)
    for lane in range(500):
        kept = accepted[lane]
        assert [*drafted[lane, :kept], token[lane]] == list(plain[lane, : kept + 1])


@pytest.mark.parametrize("name", ["token", "block"])
def test_an_identical_draft_is_accepted_whole(name: str) -> None:
    p, _, _, u, u_next = batch(4, 2000)
    q = p[:, :K].copy()
    generator = np.random.default_rng(4)
    drafted = np.stack([draw(q[:, i], generator.random(2000)) for i in range(K)], axis=1)
    accepted, _ = RULES[name].verify(p, q, drafted, np.full_like(u, TOP), u_next)
    assert (accepted == K).all()


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("noise", [1e-15, 1e-16, 1e-300])
def test_rows_equal_to_rounding_give_tokens_and_no_nan(name: str, noise: float) -> None:
    p, _, drafted, u, u_next = batch(5, 500)
    q = np.maximum(p[:, :K] * (1 + noise * np.random.default_rng(0).normal(size=(500, K, V))), 0)
    for value in (0.0, 0.5, TOP):
        accepted, token = RULES[name].verify(p, q, drafted, np.full_like(u, value), u_next)
        margin = RULES[name].margin(p, q, drafted, np.full_like(u, value), u_next, accepted)
        assert ((0 <= accepted) & (accepted <= K) & (0 <= token) & (token < V)).all()
        assert (np.isfinite(margin) & (margin >= 0) & (margin <= 1)).all()


@pytest.mark.parametrize("name", RULES)
def test_one_hot_rows_on_both_sides_follow_the_target(name: str) -> None:
    eye = np.eye(V)
    p = eye[[2, 0, 4, 6]]
    for uniform in (0.0, 0.5, TOP):
        u = np.full(K, uniform)
        assert verify(name, p, eye[[2, 0, 4]], [2, 0, 4], u, uniform) == (3, 6)
        assert verify(name, p, eye[[2, 0, 5]], [2, 0, 5], u, uniform) == (2, 4)
        assert verify(name, p, eye[[1, 0, 4]], [1, 0, 4], u, uniform) == (0, 2)


ROW = st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any)


@pytest.mark.parametrize("name", RULES)
@given(
    weights=st.lists(ROW, min_size=5, max_size=5),
    picks=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    uniforms=st.lists(st.sampled_from([0.0, 0.25, 0.5, TOP]), min_size=3, max_size=3),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_nothing_of_probability_zero_is_ever_emitted(
    name: str, weights: list[list[int]], picks: tuple[int, int], uniforms: list[float]
) -> None:
    rows = np.array(weights, float)
    rows /= rows.sum(axis=1, keepdims=True)
    p, q = rows[:3], rows[3:]
    drafted = [int(np.resize(np.flatnonzero(q[i]), 3)[picks[i]]) for i in range(2)]
    accepted, token = verify(name, p, q, drafted, uniforms[:2], uniforms[2])
    for i, emitted in enumerate([*drafted[:accepted], token]):
        assert p[i, emitted] > 0


def test_a_draw_is_the_samplers_draw_and_never_of_weight_zero() -> None:
    generator = np.random.default_rng(6)
    rows = generator.dirichlet(np.ones(V), 300) * generator.integers(0, 2, (300, V))
    rows[:, 3] += 1e-3
    for u in (generator.random(300), np.zeros(300), np.full(300, TOP)):
        ids = draw(rows, u)
        assert (rows[np.arange(300), ids] > 0).all()
        assert (ids == sampling.draw(rows, u)).all()
        assert all(draw(rows[i : i + 1], u[i : i + 1])[0] == ids[i] for i in range(300))


def test_a_token_of_target_probability_zero_fails_even_at_u_zero() -> None:
    p, q = [[0.0, 1.0], [0.5, 0.5]], [[0.5, 0.5]]
    for name in RULES:
        assert verify(name, p, q, [0], [0.0], 0.0) == (0, 1)


def test_token_id_zero_is_a_token_like_any_other() -> None:
    p, q = [[0.9, 0.1], [1.0, 0.0]], [[0.9, 0.1]]
    for name in RULES:
        assert verify(name, p, q, [0], [0.3], 0.3) == (1, 0)


def test_margin_is_the_distance_to_the_nearest_threshold() -> None:
    p, q = np.array([[[0.2, 0.8], [0.5, 0.5]]]), np.array([[[0.4, 0.6]]])
    drafted, u, u_next = np.array([[0]]), np.array([[0.45]]), np.array([0.1])
    accepted, _ = RULES["token"].verify(p, q, drafted, u, u_next)
    assert RULES["token"].margin(p, q, drafted, u, u_next, accepted)[0] == pytest.approx(0.05)
    assert RULES["block"].margin(p, q, drafted, u, u_next, accepted)[0] == pytest.approx(0.05)
    # match draws with u at the edge 0.2, disagrees, and needs neither p_2 nor u_next
    accepted, _ = RULES["match"].verify(p, q, drafted, u, u_next)
    assert accepted[0] == 0
    assert RULES["match"].margin(p, q, drafted, u, u_next, accepted)[0] == pytest.approx(0.25)


def test_a_uniform_that_was_not_looked_at_does_not_narrow_the_margin() -> None:
    p = np.full((1, 3, 2), 0.5)
    q = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    drafted, u = np.array([[0, 0]]), np.array([[0.9, 0.5]])  # the second sits on its threshold
    accepted, _ = RULES["token"].verify(p, q, drafted, u, np.array([0.5]))
    assert accepted[0] == 0
    margin = RULES["token"].margin(p, q, drafted, u, np.array([0.5]), accepted)
    assert margin[0] == pytest.approx(0.4)


def test_q_that_cannot_have_given_the_draft_is_refused() -> None:
    for name in ("token", "block"):
        with pytest.raises(ValueError, match="very rows the draft was sampled from"):
            verify(name, [[0.5, 0.5]] * 2, [[1.0, 0.0]], [1], [0.5], 0.5)


def test_an_unknown_rule_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match="verify=tokn: .* token, block, match"):
        find("tokn")


GOOD: dict[str, Any] = {
    "p": [[0.5, 0.5], [0.5, 0.5]],
    "q": [[0.5, 0.5]],
    "drafted": [1],
    "u": [0.5],
    "u_next": 0.5,
}
BAD = [
    ({"p": [0.5, 0.5]}, r"p must be rows \(k\+1, V\)"),
    ({"p": [[0.5, 0.5]]}, r"q has shape \(1, 2\).* must be \(0, 2\)"),
    ({"q": [[0.5, 0.25, 0.25]]}, "q has shape"),
    ({"q": []}, "q has shape"),
    ({"drafted": [0, 1]}, "drafted has shape"),
    ({"u": []}, "u has shape"),
    ({"drafted": [2]}, "drafted must hold ids from 0 to 1"),
    ({"drafted": [-1]}, "drafted must hold ids from 0 to 1"),
    ({"p": [[0.5, 0.6], [0.5, 0.5]]}, "every row of p must be probabilities that sum to 1"),
    ({"p": [[-0.5, 1.5], [0.5, 0.5]]}, "every row of p must be probabilities"),
    ({"q": [[float("nan"), 0.5]]}, "every row of q must be probabilities"),
    ({"u": [1.0]}, r"u must lie in \[0, 1\)"),
    ({"u_next": -0.1}, r"u_next must lie in \[0, 1\)"),
    ({"u_next": float("nan")}, r"u_next must lie in \[0, 1\)"),
]


@pytest.mark.parametrize(("change", "told"), BAD)
def test_bad_input_gets_one_sentence(change: dict[str, object], told: str) -> None:
    for name in RULES:
        verify(name, **GOOD)
        with pytest.raises(ValueError, match=told):
            verify(name, **{**GOOD, **change})
