"""Long texts side by side read what texts that share prefixes read, and what a forward says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.context import Context
from pipeline.lane_texts import LaneTexts
from pipeline.many_texts import ManyTexts
from pipeline.reading import FEW_LANES, LONG, open_texts
from tests.models import VOCAB, tiny

MODEL = tiny()
PROMPT = np.array([2, 5, 1])
CAPACITY = 40
LANES = 5


def both(prompt: np.ndarray = PROMPT) -> tuple[LaneTexts, ManyTexts]:
    return (
        LaneTexts(MODEL, prompt, LANES, CAPACITY),
        ManyTexts(MODEL, prompt, LANES, CAPACITY),
    )


def uncached(text: list[int]) -> np.ndarray:
    with torch.inference_mode():
        rows: np.ndarray = MODEL(torch.tensor([text]))[0].numpy()
    return rows


def test_few_long_texts_get_a_cache_each_and_others_share_prefixes() -> None:
    long, short = len(PROMPT) + LONG + 1, len(PROMPT) + LONG
    assert isinstance(open_texts(MODEL, PROMPT, long, FEW_LANES), LaneTexts)
    assert isinstance(open_texts(MODEL, PROMPT, short, FEW_LANES), ManyTexts)
    assert isinstance(open_texts(MODEL, PROMPT, long, FEW_LANES + 1), ManyTexts)


@pytest.mark.parametrize("prompt", [PROMPT, PROMPT[:0]], ids=["prompt", "no prompt"])
def test_reads_of_unequal_texts_are_those_of_an_uncached_forward(prompt: np.ndarray) -> None:
    lanes, generator = LaneTexts(MODEL, prompt, LANES, CAPACITY), np.random.default_rng(0)
    texts = [prompt.tolist() for _ in range(LANES)]
    for count in (1, 5, 2, 1, 4):
        chosen = np.sort(generator.choice(LANES, 1 + int(generator.integers(LANES)), False))
        tokens = generator.integers(0, VOCAB, (len(chosen), count))
        found = lanes.read(chosen, tokens)
        for row, lane in enumerate(chosen):
            texts[lane] += tokens[row].tolist()
            np.testing.assert_allclose(found[row], uncached(texts[lane])[-count:], atol=1e-12)
        keep = lanes.lengths[chosen] - generator.integers(0, count, len(chosen))
        lanes.crop(chosen, keep)
        for lane, length in zip(chosen, keep, strict=True):
            del texts[lane][length:]
    assert lanes.lengths.tolist() == [len(text) for text in texts]


def test_trees_chains_and_states_are_those_of_texts_that_share_prefixes() -> None:
    one, other = both()
    contexts: tuple[Context, ...] = (one, other)
    everyone, generator = np.arange(LANES), np.random.default_rng(1)
    for kept in (one, other):
        kept.keep_states()
        kept.reserve(7)
    for turn in range(4):
        tokens = generator.integers(0, VOCAB, (LANES, 6))
        above, below = (-1, -1, 0), (0, 1, 2)
        ways = [(above, tokens[:, :3]), (below, tokens[:, 3:])]
        for parents, part in ways:
            rows = [texts.read_tree(everyone, part, parents) for texts in contexts]
            np.testing.assert_allclose(rows[0], rows[1], atol=1e-12)
        path = np.tile([[0, 2, 5], [1, 4, 4]], (LANES // 2 + 1, 1))[:LANES]
        counts = np.array([(turn + lane) % (3 if lane % 2 == 0 else 2) + 1 for lane in everyone])
        counts = np.minimum(counts, np.where(everyone % 2 == 0, 3, 2))
        for texts in contexts:
            texts.gather(everyone, path, counts)
        assert one.lengths.tolist() == other.lengths.tolist()
        some = everyone[turn % 2 :: 2]
        tail = generator.integers(0, VOCAB, (len(some), 2))
        rows = [texts.read(some, tail) for texts in contexts]
        np.testing.assert_allclose(rows[0], rows[1], atol=1e-12)
        states = [kept.states(everyone, 2).numpy() for kept in (one, other)]
        np.testing.assert_allclose(states[0], states[1], atol=1e-12)


def test_no_text_outgrows_its_room_and_no_crop_lengthens_one() -> None:
    lanes = LaneTexts(MODEL, PROMPT, 2, 6)
    both_lanes = np.arange(2)
    lanes.read(both_lanes[:1], np.array([[1, 2, 3]]))
    with pytest.raises(ValueError, match="position 7 is beyond the cache's 6"):
        lanes.read(both_lanes, np.array([[1], [1]]))
    assert lanes.lengths.tolist() == [6, 3]
    for wrong in ([7, 3], [2, 3]):
        with pytest.raises(ValueError, match="a crop must keep the prompt"):
            lanes.crop(both_lanes, np.array(wrong))
    with pytest.raises(TypeError, match="memory is counted on one text"):
        lanes.cache_bytes()
