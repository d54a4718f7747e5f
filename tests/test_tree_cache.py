"""Reading trees: one pass for all nodes, the very logits of each path alone, and what is kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.many_texts import ManyTexts
from pipeline.one_text import OneText
from pipeline.reading import open_texts
from pipeline.sampling import Sampling
from pipeline.verify import TREE_RULES
from pipeline.verify.tree import tree
from tests.family import MODEL, family
from tests.models import TINY, VOCAB
from tests.tree_models import DRAFTS, decode_tree, path_to, text_of


@pytest.mark.parametrize("lanes", [None, 3])
def test_logits_of_a_tree_are_those_of_each_path_run_alone_as_a_chain(lanes: int | None) -> None:
    shape, prompt = tree((3, 2, 2)), np.array([1, 4, 2, 2])
    context = open_texts(MODEL, prompt[:-1], 20, lanes)
    context.reserve(shape.nodes + 1)
    rows = np.arange(lanes or 1)
    drafted = np.random.default_rng(0).integers(0, VOCAB, (len(rows), shape.nodes))
    last = np.full((len(rows), 1), prompt[-1])
    logits = context.read_tree(rows, np.concatenate([last, drafted], axis=1), shape.above)
    for lane in rows:
        for node in range(shape.nodes + 1):
            path = shape.path(np.array([node]))[0, 1 : shape.depths[node] + 1]
            chain = np.concatenate([prompt, drafted[lane, path - 1]])
            alone = MODEL(torch.from_numpy(chain[None])).numpy()[0, -1]
            np.testing.assert_allclose(logits[lane, node], alone, atol=1e-12)


@pytest.mark.parametrize("lanes", [None, 3])
def test_a_tree_read_depth_by_depth_and_one_read_at_once_are_the_same(lanes: int | None) -> None:
    shape, prompt = tree((2, 3)), np.array([1, 4])
    whole, parts = (open_texts(MODEL, prompt, 20, lanes) for _ in range(2))
    rows = np.arange(lanes or 1)
    tokens = np.random.default_rng(1).integers(0, VOCAB, (len(rows), shape.nodes))
    parents = tuple(parent - 1 for parent in shape.above[1:])
    for context in (whole, parts):
        context.reserve(shape.nodes)
    at_once = whole.read_tree(rows, tokens, parents)
    pieces = [parts.read_tree(rows, tokens[:, c], parents[c]) for c in (slice(0, 2), slice(2, 8))]
    np.testing.assert_allclose(at_once, np.concatenate(pieces, axis=1), atol=1e-12)
    for context in (whole, parts):  # and the path that is kept is a text like any other
        context.gather(rows, np.full((len(rows), 2), [1, 6]), np.full(len(rows), 2))
        found = context.read(rows, np.full((len(rows), 1), 5))
        for lane in rows:
            chain = np.array([1, 4, tokens[lane, 1], tokens[lane, 6], 5])
            alone = MODEL(torch.from_numpy(chain[None])).numpy()[0, -1]
            np.testing.assert_allclose(found[lane, 0], alone, atol=1e-12)


@pytest.mark.parametrize("name", DRAFTS)
@pytest.mark.parametrize("rule", TREE_RULES)
def test_caches_after_every_round_equal_an_uncached_forward(rule: str, name: str) -> None:
    texts, target, draft, steps = decode_tree(DRAFTS[name], rule=rule, tokens=24)
    before = texts.ids[0, : texts.lengths[0]].copy()
    fresh = Sampling()
    for step in steps:
        committed = int(texts.lengths[0])
        assert target.lengths[0] == committed - 1
        depth, kept = step.shape.depth, int(step.accepted[0])
        if depth:
            assert committed - 1 - draft.lengths[0] == (1 if kept == depth else 0)
        for node in range(step.shape.nodes + 1):
            chain = np.concatenate([before, path_to(step, node)])
            logits = MODEL(torch.from_numpy(chain[None])).numpy()[0, -1]
            np.testing.assert_allclose(step.p[0, node], fresh.rows(logits), atol=1e-10)
        before = texts.ids[0, :committed].copy()


@pytest.mark.parametrize("name", ["int4", "same", "bigram", "trigram", "layerskip", "heads"])
def test_draft_rows_of_every_round_are_those_the_draft_gives_each_path_as_a_chain(
    name: str,
) -> None:
    texts, _, _, steps = decode_tree(DRAFTS[name], tokens=24, rule="sequoia")
    before = texts.ids[0, : texts.lengths[0]].copy()
    for step in steps:
        for node in range(step.shape.inner):
            row = chain_row(name, before, path_to(step, node))
            np.testing.assert_allclose(step.q[0, node], row, atol=1e-10)
        before = texts.ids[0, : texts.lengths[0]].copy()


def chain_row(name: str, text: np.ndarray, path: np.ndarray) -> np.ndarray:
    one = np.zeros(1, np.int64)
    draft = DRAFTS[name].open(text[:-1], 48, None, MODEL.dtype)
    draft.follow(open_texts(MODEL, text[:-1], 48, None))
    logits = draft.read(one, text[None, -1:])
    for token in path:
        logits = draft.read(one, np.array([[token]]))
    return Sampling().rows(logits[0, -1])


def test_the_whole_tree_is_one_target_pass_and_one_draft_pass_a_depth() -> None:
    texts, target, draft, steps = decode_tree(DRAFTS["int4"], tokens=13)
    calls: list[tuple[str, int]] = []
    for name, context in (("target", target), ("draft", draft)):
        assert isinstance(context, OneText)
        for kind in ("read", "read_tree"):
            _count(context, kind, name, calls)
    step = next(steps)
    assert step.shape.nodes == 15
    assert calls == [("draft", 1), ("draft", 3), ("draft", 6), ("target", 16)]


def _count(context: OneText, kind: str, name: str, calls: list[tuple[str, int]]) -> None:
    original = getattr(context, kind)

    def counted(lanes: np.ndarray, tokens: np.ndarray, *rest: object) -> object:
        calls.append((name, tokens.shape[1]))
        return original(lanes, tokens, *rest)

    setattr(context, kind, counted)


def test_the_cache_at_its_fullest_counts_the_trees_nodes() -> None:
    _, target, _, steps = decode_tree(DRAFTS["bigram"], (3, 2), tokens=3)
    next(steps)
    per_token = 4 * 2 * TINY.layers * TINY.width
    assert target.cache_bytes() == per_token * (2 + 1 + 9)


def test_a_tree_beyond_the_context_is_an_error_and_never_a_wrong_position() -> None:
    with pytest.raises(ValueError, match="beyond the cache"):
        text_of(DRAFTS["int4"], tokens=TINY.context)


def test_prompts_of_almost_the_context_are_read() -> None:
    prompt = tuple(i % VOCAB for i in range(TINY.context - 4))
    assert len(text_of(DRAFTS["int4"], prompt=prompt, tokens=5)) == 5


def test_a_draft_that_cannot_branch_says_so() -> None:
    with pytest.raises(TypeError, match="cannot read a tree"):
        text_of(family()["ngram"])


def test_many_texts_open_their_trees_lane_by_lane() -> None:
    context = open_texts(MODEL, np.array([1]), 10, 4)
    assert isinstance(context, ManyTexts)
    first = context.read_tree(np.array([0, 2]), np.array([[3, 4], [3, 5]]), (-1, -1))
    np.testing.assert_array_equal(first[0, 0], first[1, 0])
    context.gather(np.array([0, 2]), np.array([[1], [1]]), np.array([1, 0]))
    assert context.lengths.tolist() == [2, 1, 1, 1]
