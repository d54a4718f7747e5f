"""One draft of each kind over a tiny random target, for the tests that all of them must pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pipeline.drafts import Draft
from pipeline.drafts.bigram import BigramDraft
from pipeline.drafts.heads import HeadsDraft
from pipeline.drafts.layerskip import LayerskipDraft
from pipeline.drafts.ngram import NgramDraft
from pipeline.drafts.quantized import QuantizedDraft
from pipeline.drafts.small import SmallDraft
from pipeline.drafts.table import TableDraft
from pipeline.heads import Heads
from pipeline.model import CharTransformer
from pipeline.spec import JobSpec
from pipeline.text import Vocabulary
from pipeline.verify import find
from pipeline.weights import NgramTable
from pipeline.workbench import Workbench
from tests.models import TINY, VOCAB, tiny

MODEL = tiny()
HEADS = 8


def heads(width: int = TINY.width) -> Heads:
    """Random float64 heads whose rows differ from place to place."""
    torch.manual_seed(3)
    made = Heads(HEADS, width).double().eval().requires_grad_(False)
    torch.nn.init.normal_(made.projection.weight)
    return made


def table(order: int = 3) -> NgramTable:
    """Counts of a random text, with pairs that never occur among them."""
    return NgramTable.of(np.random.default_rng(0).integers(0, VOCAB, 90), VOCAB, order, 2.0)


def family(model: CharTransformer = MODEL) -> dict[str, Draft]:
    return {
        "bigram": BigramDraft(table(2).rows()),
        "trigram": TableDraft(table()),
        "ngram": NgramDraft(VOCAB, 1, 4),
        "small": SmallDraft(tiny(5), model),
        "layerskip": LayerskipDraft(model, [1]),
        "layerskip first": LayerskipDraft(model, [0]),
        "heads": HeadsDraft(model, heads(model.cfg.width)),
        "int4": QuantizedDraft(model, 4),
    }


def bench(draft: Draft, **values: Any) -> Workbench:
    """A job's workbench over the tiny target, whose characters are a, b, c, ..."""
    usual: dict[str, Any] = {"k": 3, "seed": 0, "tokens": 12, "draws": 2000, "prompt": "adb"}
    spec = JobSpec("some", {}, **{**usual, **values})
    letters = Vocabulary("abcdefghijklmnopqrstuvwxyz"[:VOCAB])
    prompt = letters.encode(spec.prompt)
    return Workbench(spec, letters, MODEL, draft, find(spec.verify), prompt, None)
