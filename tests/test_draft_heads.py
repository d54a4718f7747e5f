"""heads: rows from the target's newest state, known before drafting. And small's one condition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from pipeline.drafts.heads import HeadsDraft
from pipeline.drafts.small import SmallDraft
from pipeline.model import CharTransformer
from pipeline.sampling import Sampling
from tests.family import HEADS, MODEL, family, heads
from tests.models import TINY, decode


@pytest.mark.parametrize("prompt", [(4,), (0, 3, 1)])
def test_rows_of_heads_are_those_of_the_targets_state_and_the_last_character(
    prompt: tuple[int, ...],
) -> None:
    made = heads()
    texts, steps, _, _ = decode(MODEL, HeadsDraft(MODEL, made), HEADS, prompt=prompt, tokens=30)
    embedding = MODEL.transformer.wte.weight
    for step in steps:
        at = texts.prompt_length + int(step.start[0])
        ids = torch.from_numpy(texts.ids[:1, : at - 1])
        state = MODEL.hidden(ids)[0, -1:] if at > 1 else torch.zeros(1, TINY.width).double()
        logits = made(state, embedding[texts.ids[0, at - 1]][None], embedding)[0].numpy()
        expected = Sampling().rows(logits[: step.q.shape[1]])
        np.testing.assert_allclose(step.q[0], expected, atol=1e-10)


def test_heads_rows_do_not_look_at_drafted_tokens() -> None:
    _, steps, _, _ = decode(MODEL, family()["heads"], 4, lanes=32)
    first = steps[0]
    assert len({tuple(row) for row in first.drafted.tolist()}) > 8
    assert (first.q == first.q[:1]).all()


def test_more_tokens_than_heads_are_an_error_and_no_row() -> None:
    with pytest.raises(ValueError, match="8 heads"):
        decode(MODEL, family()["heads"], HEADS + 1)


def test_a_small_draft_that_reads_less_than_the_target_is_named() -> None:
    short = CharTransformer(replace(TINY, context=TINY.context - 1))
    with pytest.raises(ValueError, match=f"reads {TINY.context - 1}"):
        SmallDraft(short, MODEL)
