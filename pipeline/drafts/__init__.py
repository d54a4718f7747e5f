"""The drafts by kind. `conf/draft/NAME.yaml` names a kind and its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.drafts.base import Draft
from pipeline.drafts.bigram import BigramDraft
from pipeline.drafts.quantized import QuantizedDraft
from pipeline.model import CharTransformer
from pipeline.text import Vocabulary
from pipeline.weights import load_table

__all__ = ["KINDS", "Draft", "Source", "build", "parts_of"]


@dataclass(frozen=True)
class Source:
    """What drafts are made from: the target, its characters, and its weights folder."""

    target: CharTransformer
    vocabulary: Vocabulary
    where: str


def _bigram(source: Source) -> Draft:
    return BigramDraft(load_table(source.where, "bigram", source.vocabulary).rows())


def _quantized(source: Source, bits: int, per_channel: bool = False) -> Draft:
    return QuantizedDraft(source.target, bits, per_channel)


KINDS: Mapping[str, Callable[..., Draft]] = {"bigram": _bigram, "quantized": _quantized}


PARTS: Mapping[str, tuple[str, ...]] = {"bigram": ("bigram",), "quantized": ()}
"""What a kind reads from the weights folder beside the target."""


def parts_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts of the weights folder that such a draft is made from."""
    return PARTS.get(str(options.get("kind")), ())


def build(source: Source, options: Mapping[str, Any]) -> Draft:
    """The draft of a composed config's `draft` group. ValueError names a kind that is not known."""
    kind = options.get("kind")
    if kind not in KINDS:
        raise ValueError(f"draft.kind={kind}: the kinds are {', '.join(KINDS)}")
    given = {name: value for name, value in options.items() if name not in ("name", "kind")}
    return KINDS[kind](source, **given)
