"""How a transformer reads: one text, many that begin alike, or a few long ones side by side."""

from __future__ import annotations

import torch

from pipeline.context import Ints
from pipeline.lane_texts import LaneTexts
from pipeline.many_texts import ManyTexts
from pipeline.model import CharTransformer
from pipeline.one_text import OneText

FEW_LANES, LONG = 64, 16  # so few texts that go on for more than so long share little


def open_texts(
    model: CharTransformer, prompt: Ints, capacity: int, lanes: int | None
) -> OneText | ManyTexts | LaneTexts:
    """`model` having read `prompt (T,)`, ready for texts of up to `capacity` tokens.

    `lanes=None` is one text, as it is timed; a number opens that many continuations of the prompt.
    A text that outgrows the model's context is a ValueError at the read that would do it.
    """
    capacity = min(capacity, model.cfg.context)
    if lanes is None:
        reader = model.reader if model.dtype == torch.float32 else None
        one: OneText = (reader or OneText)(model, prompt, capacity)
        return one
    if lanes <= FEW_LANES and capacity - len(prompt) > LONG:
        return LaneTexts(model, prompt, lanes, capacity)
    return ManyTexts(model, prompt, lanes, capacity)
