"""Edges of trees and their rules: shapes, batches, float64 against fractions, bad input."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest

from pipeline.tree_proposal import siblings
from pipeline.verify import RULES, TREE_RULES, find, find_tree
from pipeline.verify.rows import draw
from pipeline.verify.tree import Tree, tree
from pipeline.verify.tree_rule import TreeRule
from tests.enumeration import Array, Prefix, Row, random_case
from tests.tree_enumeration import rows_of

V = 7
SHAPES = [(), (1,), (3,), (2, 1), (2, 2), (3, 2, 1), (1, 3)]
TOP = float(np.nextafter(1, 0))  # the largest uniform there is
Rounds = tuple[Array, Array, Array, Array, Array]


def batch(rule: TreeRule, shape: Tree, rounds: int, seed: int = 0, support: int = V) -> Rounds:
    """Random rows, and trees drawn from q; q has `support` ids that are possible."""
    generator = np.random.default_rng(seed)
    p = generator.dirichlet(np.ones(V), (rounds, shape.nodes + 1))
    q = 0.4 * p[:, : shape.inner] + 0.6 * generator.dirichlet(np.ones(V), (rounds, shape.inner))
    q = np.where(q >= np.sort(q, axis=-1)[..., V - support][..., None], q, 0)
    q /= q.sum(axis=-1, keepdims=True)
    drafted = np.zeros((rounds, shape.nodes), np.int64)
    for parent in range(shape.inner):
        width = shape.widths[shape.depths[parent]]
        here = slice(shape.first[parent] - 1, shape.first[parent] - 1 + width)
        numbers = generator.random((rounds, width))
        drafted[:, here] = siblings(q[:, parent], numbers, rule.with_replacement)
    u = generator.random((rounds, rule.columns(shape)))
    return p, q, drafted, u, generator.random(rounds)


def test_nodes_are_numbered_breadth_first_with_the_root_at_0() -> None:
    shape = tree((3, 2))
    assert (shape.nodes, shape.inner, shape.depth) == (9, 4, 2)
    assert shape.parents.tolist() == [-1, 0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert shape.depths.tolist() == [0, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    assert shape.first[:4].tolist() == [1, 4, 6, 8]
    assert [(x.start, x.stop) for x in shape.levels] == [(0, 1), (1, 4), (4, 10)]
    assert [-c for c in shape.tour if c < 0] == [4, 5, 1, 6, 7, 2, 8, 9, 3]
    assert shape.path(np.array([0, 2, 9])).tolist() == [[0, 1, 4], [0, 2, 6], [0, 3, 9]]


def test_a_shallower_tree_is_the_beginning_of_the_deeper_one() -> None:
    deep, shallow = tree((3, 2, 2)), tree((3, 2))
    assert deep.parents[: shallow.nodes + 1].tolist() == shallow.parents.tolist()


def test_a_tree_without_depth_is_a_root_alone() -> None:
    shape = tree(())
    assert (shape.nodes, shape.inner, shape.depth, shape.tour) == (0, 0, 0, ())
    assert shape.path(np.array([0, 0])).tolist() == [[0], [0]]


@pytest.mark.parametrize(
    ("widths", "told"), [((2, 0), "needs a width of 1 or more"), ((7, 7, 7), "has 399 nodes")]
)
def test_a_tree_that_cannot_be_is_refused_in_a_sentence(widths: tuple[int, ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        tree(widths)


@pytest.mark.parametrize("widths", SHAPES, ids=str)
@pytest.mark.parametrize("name", TREE_RULES)
@pytest.mark.parametrize("support", [V, 2])
def test_a_round_of_a_batch_equals_the_round_alone_to_the_bit(
    name: str, widths: tuple[int, ...], support: int
) -> None:
    rule, shape = TREE_RULES[name], tree(widths)
    p, q, drafted, u, u_next = batch(rule, shape, 60, support=support)
    node, token = rule.verify(shape, p, q, drafted, u, u_next)
    margin = rule.margin(shape, p, q, drafted, u, u_next)
    assert (margin > 0).all() and (margin <= 1).all()
    for i in range(60):
        at = slice(i, i + 1)
        alone = (shape, p[at], q[at], drafted[at], u[at], u_next[at])
        assert [x[0] for x in rule.verify(*alone)] == [node[i], token[i]]
        assert rule.margin(*alone)[0] == margin[i]


@pytest.mark.parametrize("name", TREE_RULES)
def test_float64_decides_as_fractions_do_and_its_margin_says_when(name: str) -> None:
    rule, generator, checked = TREE_RULES[name], np.random.default_rng(7), 0
    for seed in range(24):
        shape = tree(SHAPES[1 + seed % 4])
        case = random_case(generator, shape.depth)
        drafted = _drawn(rule, shape, case.draft, generator)
        p, q = rows_of(shape, case, drafted)
        count = len(drafted), rule.columns(shape)
        u, u_next = _fractions(generator, count), _fractions(generator, count[:1])
        exact = rule.verify(shape, p, q, drafted, u, u_next)
        exact_margin = rule.margin(shape, p, q, drafted, u, u_next).astype(float)
        p, q, u, u_next = (x.astype(float) for x in (p, q, u, u_next))
        found = rule.verify(shape, p, q, drafted, u, u_next)
        margin = rule.margin(shape, p, q, drafted, u, u_next)
        safe = margin > 1e-12
        assert all((a == b)[safe].all() for a, b in zip(found, exact, strict=True))
        assert np.allclose(margin[safe], exact_margin[safe], atol=1e-11)
        checked += int(safe.sum())
    assert checked > 200


def _drawn(
    rule: TreeRule, shape: Tree, draft: Mapping[Prefix, Row], generator: np.random.Generator
) -> Array:
    trees = []
    for _ in range(20):
        texts: list[Prefix] = [()]
        for parent in range(shape.inner):
            row = np.array([draft[texts[parent]]], float)
            numbers = generator.random((1, shape.widths[shape.depths[parent]]))
            drawn = siblings(row, numbers, rule.with_replacement)[0].tolist()
            texts += [(*texts[parent], token) for token in drawn]
        trees.append([text[-1] for text in texts[1:]])
    return np.array(trees)


def _fractions(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    values = [Fraction(int(n), 997) for n in generator.integers(0, 997, int(np.prod(shape)))]
    return np.array(values, object).reshape(shape)


def test_traversal_of_a_chain_decides_as_block_in_float64_too() -> None:
    rule, shape = TREE_RULES["traversal"], tree((1, 1, 1, 1))
    p, q, drafted, u, u_next = batch(rule, shape, 3000)
    node, token = rule.verify(shape, p, q, drafted, u, u_next)
    accepted, other = RULES["block"].verify(p, q, drafted, u, u_next)
    assert (shape.depths[node] == accepted).all() and (token == other).all()


def test_match_on_a_tree_emits_what_plain_decoding_draws() -> None:
    rule, shape = TREE_RULES["match"], tree((3, 2))
    p, q, drafted, u, u_next = batch(rule, shape, 500)
    node, token = rule.verify(shape, p, q, drafted, u, u_next)
    assert set(shape.depths[node]) == {0, 1, 2}
    every = np.concatenate([u, u_next[:, None]], axis=1)
    for i in range(500):
        kept = int(shape.depths[node[i]])
        path = shape.path(node[i : i + 1])[0, : kept + 1]
        plain = draw(p[i, path], every[i, : kept + 1])
        assert [*drafted[i, path[1:] - 1], token[i]] == plain.tolist()
        children = shape.first[path[-1]] + np.arange(shape.widths[kept]) if kept < 2 else []
        assert all(drafted[i, child - 1] != token[i] for child in children)


@pytest.mark.parametrize("name", ["specinfer", "sequoia", "traversal"])
def test_an_identical_draft_is_accepted_to_a_leaf(name: str) -> None:
    rule, shape = TREE_RULES[name], tree((3, 2, 1))
    p, _, drafted, u, u_next = batch(rule, shape, 800)
    node, _ = rule.verify(shape, p, p[:, : shape.inner].copy(), drafted, u * 0 + TOP, u_next)
    assert (shape.depths[node] == 3).all()


@pytest.mark.parametrize("name", TREE_RULES)
@pytest.mark.parametrize("noise", [1e-15, 1e-16, 1e-300])
def test_rows_equal_to_rounding_give_tokens_and_no_nan(name: str, noise: float) -> None:
    rule, shape = TREE_RULES[name], tree((2, 2))
    p, _, drafted, u, u_next = batch(rule, shape, 300)
    q = p[:, : shape.inner]
    q = np.maximum(q * (1 + noise * np.random.default_rng(0).normal(size=q.shape)), 0)
    for value in (0.0, 0.5, TOP):
        node, token = rule.verify(shape, p, q, drafted, u * 0 + value, u_next)
        assert ((0 <= node) & (node <= shape.nodes) & (0 <= token) & (token < V)).all()
        margin = rule.margin(shape, p, q, drafted, u * 0 + value, u_next)
        assert (np.isfinite(margin) & (margin >= 0) & (margin <= 1)).all()


@pytest.mark.parametrize("name", TREE_RULES)
def test_nothing_of_target_probability_zero_is_ever_emitted(name: str) -> None:
    rule, shape = TREE_RULES[name], tree((3, 2))
    p, q, drafted, u, u_next = batch(rule, shape, 2000, support=3)
    p = np.where(p > 0.1, p, 0)
    p /= p.sum(axis=-1, keepdims=True)
    for scale in (0.0, 1.0):
        node, token = rule.verify(shape, p, q, drafted, u * scale, u_next * scale)
        path, depth = shape.path(node), shape.depths[node]
        every = np.arange(len(p))
        for at in range(shape.depth):
            kept = depth > at
            ids = drafted[every, path[:, at + 1] - 1]
            assert (p[every, path[:, at], ids] > 0)[kept].all()
        assert (p[every, node, token] > 0).all()


@pytest.mark.parametrize("name", ["specinfer", "sequoia", "traversal"])
def test_q_that_cannot_have_given_the_tree_is_refused(name: str) -> None:
    rows = np.full((1, 3, 2), 0.5)
    with pytest.raises(ValueError, match="very rows the tree was sampled from"):
        TREE_RULES[name].verify(
            tree((2,)),
            rows,
            np.array([[[1.0, 0.0]]]),
            np.array([[1, 1]]),
            np.full((1, 2), 0.9),
            np.full(1, 0.5),
        )


@pytest.mark.parametrize(("look_up", "name"), [(find, "sequoia"), (find_tree, "block")])
def test_a_rule_for_the_other_shape_is_refused_with_what_goes_together(
    look_up: object, name: str
) -> None:
    assert callable(look_up)
    told = f"verify={name}: .*chain goes with token, block, match, .*tree with specinfer, sequoia"
    with pytest.raises(ValueError, match=told):
        look_up(name)
