"""What trees emit is distributed as the target says: the real decoder, many texts at once."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest

from pipeline.decode import Texts
from pipeline.exactness import g_test, smaller_of_two
from pipeline.leak import leak_test
from pipeline.reading import open_texts
from pipeline.sampling import Sampling, Uniforms
from pipeline.tree_decode import TreeMethod, speculative_tree
from pipeline.verify import TREE_RULES, TreeRule
from tests.models import VOCAB, drafts, tiny
from tests.tree_mutants import TREE_MUTANTS, TreeMutant

MODEL = tiny(sharpness=4.0)
DRAFTS: dict[str, Any] = drafts(MODEL)
PROMPT = (0, 3, 1)
FIRST = 3  # tokens of the joint law
SAMPLINGS = {
    "plain": Sampling(),
    "cool top-k": Sampling(0.7, top_k=3),
    "warm nucleus": Sampling(1.3, top_p=0.8),
    "greedy": Sampling(temperature=0),
}


def first_tokens(
    rule: TreeRule, name: str, sampling: Sampling, draws: int, widths: tuple[int, ...]
) -> np.ndarray:
    """How often each beginning of `FIRST` tokens was decoded, `(V,) * FIRST`."""
    ids = np.array(PROMPT)
    tokens = FIRST + len(widths)  # no round that counts is cut short
    texts = Texts(ids, tokens, lanes=draws)
    target = open_texts(MODEL, ids[:-1], len(ids) + tokens, draws)
    draft = DRAFTS[name].open(ids[:-1], len(ids) + tokens, draws, MODEL.dtype)
    method = TreeMethod(widths, rule, sampling)
    for step in speculative_tree(target, draft, texts, method, Uniforms(0, draws)):
        texts.stop(step.lanes[texts.lengths[step.lanes] >= len(ids) + FIRST])
    found = texts.ids[:, len(ids) : len(ids) + FIRST]
    cells = np.ravel_multi_index(tuple(found.T), (VOCAB,) * FIRST)
    return np.bincount(cells, minlength=VOCAB**FIRST).reshape((VOCAB,) * FIRST)


@cache
def law(name: str, sampling: Sampling) -> np.ndarray:
    """Joint law of the first tokens under the target, or under a draft, `(V,) * FIRST`."""
    lanes = VOCAB ** (FIRST - 1)
    texts = np.array(list(itertools.product(range(VOCAB), repeat=FIRST - 1)))
    prompt = np.array(PROMPT)
    model = DRAFTS["same" if name == "target" else name]
    reader = model.open(prompt[:-1], 20, lanes, MODEL.dtype)
    read = np.concatenate([np.repeat(prompt[None, -1:], lanes, axis=0), texts], axis=1)
    rows = sampling.rows(reader.read(np.arange(lanes), read))  # (V^2, 3, V)
    first, second, third = (rows[:, place].reshape((VOCAB,) * FIRST) for place in range(FIRST))
    return first[0, 0][:, None, None] * second[:, 0][:, :, None] * third


def p_value(
    rule: TreeRule, name: str, sampling: Sampling, draws: int, widths: tuple[int, ...]
) -> float:
    counts = first_tokens(rule, name, sampling, draws, widths)
    p, q = law("target", sampling), law(name, sampling)
    by_leak = leak_test(counts.sum(axis=2), p.sum(axis=2), q.sum(axis=2))
    return smaller_of_two(g_test(counts, p, q), by_leak)


def test_the_law_is_a_law() -> None:
    for sampling in SAMPLINGS.values():
        for name in ("target", *DRAFTS):
            assert law(name, sampling).sum() == pytest.approx(1)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("name", ["bigram", "int4", "same"])
@pytest.mark.parametrize("rule", TREE_RULES)
def test_the_first_three_tokens_follow_the_target(rule: str, name: str, sampling: str) -> None:
    assert p_value(TREE_RULES[rule], name, SAMPLINGS[sampling], 2000, (2, 2, 1)) > 0.001


@pytest.mark.parametrize(
    "mutant", [one for one in TREE_MUTANTS if not one.only_on_a_tie], ids=lambda one: one.name
)
def test_a_broken_rule_is_seen_in_the_same_way(mutant: TreeMutant) -> None:
    assert p_value(mutant.rule, "bigram", SAMPLINGS["plain"], 12_000, (3, 2)) < 0.001
