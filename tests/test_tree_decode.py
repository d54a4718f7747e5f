"""Decoding with trees: texts, counts, the end of a text, and the chain as a special case."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline import counts
from pipeline.decode import Texts
from pipeline.reading import open_texts
from pipeline.sampling import Sampling, SeedBatch
from pipeline.tree_decode import TreeMethod, speculative_tree
from pipeline.verify import TREE_RULES, find_tree
from pipeline.verify.tree import tree
from tests.family import MODEL
from tests.models import decode
from tests.tree_models import DRAFTS, WIDTHS, decode_tree, text_of


@pytest.mark.parametrize("rule", TREE_RULES)
@pytest.mark.parametrize("name", DRAFTS)
@pytest.mark.parametrize("tokens", [1, 2, 3, 13])
def test_exactly_the_asked_number_is_emitted_and_counters_agree(
    name: str, rule: str, tokens: int
) -> None:
    texts, _, _, steps = decode_tree(DRAFTS[name], rule=rule, tokens=tokens)
    trace = counts.trace(steps, find_tree(rule))
    assert trace.tokens == tuple(texts.emitted().tolist()) and len(trace.tokens) == tokens
    assert sum(r.accepted for r in trace.rounds) + len(trace.rounds) == tokens
    for r in trace.rounds:
        assert r.accepted <= r.drafted <= min(3, tokens - 1 - r.start)
        assert r.nodes == tree(WIDTHS[: r.drafted]).nodes
    assert 0 < trace.margin_min < 1
    assert len(trace.alpha) == sum(min(r.accepted + 1, r.drafted) for r in trace.rounds)
    found = counts.metrics(trace)
    assert ("count/nodes" in found) == (tokens > 1)


@pytest.mark.parametrize("rule", TREE_RULES)
@pytest.mark.parametrize("name", DRAFTS)
def test_a_lane_of_a_batch_equals_the_text_alone(rule: str, name: str) -> None:
    texts, _, _, steps = decode_tree(DRAFTS[name], rule=rule, lanes=8, tokens=30)
    many = list(steps)
    alone, _, _, one = decode_tree(DRAFTS[name], rule=rule, tokens=30)
    in_batch, by_itself = (counts.trace(x, find_tree(rule)) for x in (many, one))
    assert counts.digest(in_batch) == counts.digest(by_itself)
    assert in_batch.margin_min == pytest.approx(by_itself.margin_min, rel=1e-6)
    assert len({tuple(row) for row in texts.ids.tolist()}) > 4
    np.testing.assert_array_equal(texts.ids[0], alone.ids[0])


def test_a_batch_of_seeds_equals_the_seeds_one_by_one() -> None:
    ids = np.array([1, 2], np.int64)
    texts = Texts(ids, 20, lanes=3)
    target = open_texts(MODEL, ids[:-1], 22, 3)
    draft = DRAFTS["int4"].open(ids[:-1], 22, 3, MODEL.dtype)
    method = TreeMethod((2, 2), find_tree("traversal"), Sampling())
    assert list(speculative_tree(target, draft, texts, method, SeedBatch([5, 0, 2])))
    for lane, seed in enumerate((5, 0, 2)):
        options = {"prompt": (1, 2), "seed": seed, "rule": "traversal"}
        assert texts.emitted(lane).tolist() == text_of(DRAFTS["int4"], (2, 2), **options)


@pytest.mark.parametrize("name", DRAFTS)
@pytest.mark.parametrize("widths", [(1,), (4,), (2, 2), (3, 2, 1)], ids=str)
def test_match_emits_the_very_text_of_plain_decoding(name: str, widths: tuple[int, ...]) -> None:
    plain, *_ = decode(MODEL, None, seed=3, tokens=40)
    found = text_of(DRAFTS[name], widths, rule="match", seed=3, tokens=40)
    assert found == plain.emitted().tolist()


@pytest.mark.parametrize("rule", TREE_RULES)
@pytest.mark.parametrize("name", DRAFTS)
def test_greedy_equals_the_targets_greedy_text(rule: str, name: str) -> None:
    greedy = Sampling(temperature=0)
    plain, *_ = decode(MODEL, None, sampling=greedy, tokens=40)
    assert text_of(DRAFTS[name], rule=rule, sampling=greedy, tokens=40) == plain.emitted().tolist()


@pytest.mark.parametrize("rule", ["specinfer", "sequoia", "traversal"])
def test_an_identical_draft_accepts_a_whole_path_every_round(rule: str) -> None:
    for seed in range(6):
        _, _, _, steps = decode_tree(DRAFTS["same"], (2, 2, 1), rule=rule, seed=seed, tokens=41)
        assert all((step.accepted == step.shape.depth).all() for step in steps)


@pytest.mark.parametrize(("rule", "other"), [("traversal", "block"), ("sequoia", "token")])
@pytest.mark.parametrize("name", ["int4", "bigram", "heads"])
def test_a_tree_of_width_one_is_the_chain(rule: str, other: str, name: str) -> None:
    chain, *_ = decode(MODEL, DRAFTS[name], 4, rule=other, tokens=30, seed=2)
    found = text_of(DRAFTS[name], (1, 1, 1, 1), rule=rule, tokens=30, seed=2)
    assert found == chain.emitted().tolist()


@pytest.mark.parametrize("rule", TREE_RULES)
@pytest.mark.parametrize("lanes", [None, 16])
def test_nothing_follows_the_end_of_text(rule: str, lanes: int | None) -> None:
    for eos in (0, 3, 5):
        for name in ("int4", "heads", "trigram"):
            texts, target, _, steps = decode_tree(
                DRAFTS[name], rule=rule, eos=eos, tokens=30, lanes=lanes, seed=eos
            )
            taken = list(steps)
            assert (target.lengths == texts.lengths - 1).all()
            for lane in range(lanes or 1):
                emitted = texts.emitted(lane).tolist()
                assert eos not in emitted[:-1]
                assert len(emitted) == 30 or emitted[-1] == eos
                trace = counts.trace(taken, find_tree(rule), lane)
                assert list(trace.tokens) == emitted
                assert all(len(r.emitted) - r.accepted in (0, 1) for r in trace.rounds)


def test_a_tree_of_more_uniforms_than_a_page_holds_is_drafted_all_the_same() -> None:
    wide = (6, 3)  # 24 nodes
    _, _, _, steps = decode_tree(DRAFTS["int4"], wide, tokens=12)
    for step in steps:
        assert len(set(step.u[0])) == step.shape.nodes
        assert len(set(step.u_draft[0])) == step.shape.nodes
