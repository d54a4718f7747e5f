"""Shortcuts of the engine give what the plain way gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.drafts.bigram import BigramDraft
from pipeline.many_texts import ManyTexts
from pipeline.prefixes import Prefixes
from pipeline.reading import open_texts
from pipeline.sampling import Sampling, draw
from tests.models import VOCAB, tiny

ONE = np.zeros(1, np.int64)


def test_a_prefix_has_one_number_however_often_and_in_which_order_it_is_asked_for() -> None:
    known: dict[tuple[int, int], int] = {}
    prefixes, generator = Prefixes(VOCAB), np.random.default_rng(0)
    for _ in range(40):
        parents = generator.integers(-1, max(len(known), 1), 30)
        tokens = generator.integers(0, VOCAB, 30)
        nodes, new = prefixes.find(parents, tokens)
        pairs = list(zip(parents.tolist(), tokens.tolist(), strict=True))
        assert nodes[new].tolist() == list(range(len(known), len(known) + len(new)))
        assert len({pairs[place] for place in new.tolist()} - set(known)) == len(new)
        known |= {pairs[place]: int(nodes[place]) for place in new.tolist()}
        assert nodes.tolist() == [known[pair] for pair in pairs]
        assert len(prefixes) == len(known)


def test_reading_many_tokens_at_once_is_reading_them_one_by_one() -> None:
    model, generator = tiny(), np.random.default_rng(1)
    prompt, lanes = np.array([2, 5]), np.arange(300)
    tokens = generator.integers(0, 2, (300, 6))  # few distinct prefixes at first, then many
    at_once, one_by_one = (open_texts(model, prompt, 8, 300) for _ in range(2))
    assert isinstance(at_once, ManyTexts)
    rows = at_once.read(lanes, tokens)
    for column in range(6):
        single = one_by_one.read(lanes, tokens[:, column : column + 1])
        np.testing.assert_allclose(rows[:, column], single[:, 0], atol=1e-12)
    whole = np.concatenate([np.tile(prompt, (300, 1)), tokens], axis=1)
    with torch.inference_mode():
        uncached = model(torch.from_numpy(whole)).numpy()[:, 2:]
    np.testing.assert_allclose(rows, uncached, atol=1e-12)


def test_texts_of_unequal_length_grow_in_one_read() -> None:
    model, lanes = tiny(), np.arange(4)
    texts = open_texts(model, np.array([1]), 12, 4)
    texts.read(lanes, np.array([[3, 1, 4], [3, 1, 5], [3, 2, 6], [0, 2, 6]]))
    texts.crop(lanes, np.array([4, 3, 2, 1]))
    tails = np.array([[2, 6], [0, 1], [5, 3], [5, 5]])
    rows = texts.read(lanes, tails)
    kept = ([1, 3, 1, 4], [1, 3, 1], [1, 3], [1])
    for lane, before in enumerate(kept):
        ids = torch.tensor([[*before, *tails[lane].tolist()]])
        with torch.inference_mode():
            expected = model(ids)[0, -2:].numpy()
        np.testing.assert_allclose(rows[lane], expected, atol=1e-12)


@pytest.mark.parametrize(
    "sampling",
    [Sampling(), Sampling(0.0), Sampling(0.7, top_k=3), Sampling(1.5, top_p=0.8)],
    ids=["plain", "greedy", "top-k", "top-p"],
)
def test_drafting_a_chain_at_once_is_drafting_token_by_token(sampling: Sampling) -> None:
    rows = np.random.default_rng(4).dirichlet(np.ones(VOCAB), VOCAB)
    draft, generator = BigramDraft(rows), np.random.default_rng(5)
    for k in (1, 2, 7):
        u = generator.random((1, k))
        chained, stepped = (draft.open(np.array([3]), 20, None, torch.float32) for _ in range(2))
        found = chained.chain(ONE, np.array([[2, 6]]), u, sampling)
        assert found is not None
        ids, q = found
        tokens = np.array([[2, 6]])
        for i in range(k):
            row = sampling.rows(stepped.read(ONE, tokens)[:, -1])
            tokens = draw(row, u[:, i])[None]
            assert ids[0, i] == tokens[0, 0]
            assert (q[0, i] == row[0]).all()
        assert chained.lengths.tolist() == stepped.lengths.tolist() == [3 + k - 1]


def test_a_models_weights_follow_it_into_another_precision() -> None:
    model = tiny().float()
    ids = torch.tensor([[1, 2, 3]])
    single = model(ids)
    double = model.double()(ids)
    assert single.dtype == torch.float32 and double.dtype == torch.float64
    np.testing.assert_allclose(single.numpy(), double.numpy(), rtol=1e-3, atol=1e-3)
