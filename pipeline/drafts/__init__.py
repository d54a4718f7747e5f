"""The drafts by kind. `conf/draft/NAME.yaml` names a kind and its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from pipeline.drafts.base import Draft
from pipeline.drafts.bigram import BigramDraft
from pipeline.drafts.heads import HeadsDraft
from pipeline.drafts.layerskip import LayerskipDraft
from pipeline.drafts.ngram import NgramDraft
from pipeline.drafts.quantized import QuantizedDraft
from pipeline.drafts.small import SmallDraft
from pipeline.drafts.table import TableDraft
from pipeline.model import CharTransformer
from pipeline.text import Vocabulary
from pipeline.weights import load_heads, load_small, load_table

__all__ = ["BRANCHING", "KINDS", "Draft", "Source", "build", "parts_of"]


@dataclass(frozen=True)
class Source:
    """What drafts are made from: the target, its characters, and its weights folder."""

    target: CharTransformer
    vocabulary: Vocabulary
    where: str


def _bigram(source: Source) -> Draft:
    return BigramDraft(load_table(source.where, "bigram", source.vocabulary).rows())


def _heads(source: Source) -> Draft:
    return HeadsDraft(source.target, load_heads(source.where))


def _layerskip(source: Source, skip: Sequence[int]) -> Draft:
    return LayerskipDraft(source.target, skip)


def _ngram(source: Source, shortest: int, longest: int) -> Draft:
    return NgramDraft(len(source.vocabulary), shortest, longest)


def _quantized(source: Source, bits: int, per_channel: bool = False) -> Draft:
    if not isinstance(per_channel, bool):
        raise ValueError(f"draft.per_channel={per_channel}: give true or false")
    return QuantizedDraft(source.target, bits, per_channel)


def _small(source: Source) -> Draft:
    return SmallDraft(load_small(source.where, source.vocabulary)[0], source.target)


def _trigram(source: Source) -> Draft:
    return TableDraft(load_table(source.where, "trigram", source.vocabulary))


KINDS: Mapping[str, Callable[..., Draft]] = {
    "bigram": _bigram,
    "heads": _heads,
    "layerskip": _layerskip,
    "ngram": _ngram,
    "quantized": _quantized,
    "small": _small,
    "trigram": _trigram,
}


BRANCHING = "bigram, trigram, int8, int4, small, layerskip, heads"
"""The drafts that a tree can be made of: those whose rows hold several tokens."""


PARTS: Mapping[str, tuple[str, ...]] = {
    kind: (kind,) if kind in ("bigram", "heads", "small", "trigram") else () for kind in KINDS
}
"""What a kind reads from the weights folder beside the target."""


def parts_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts of the weights folder that such a draft is made from."""
    return PARTS.get(str(options.get("kind")), ())


def build(source: Source, options: Mapping[str, Any]) -> Draft:
    """The draft of a composed config's `draft` group. ValueError names a kind that is not known."""
    kind = str(options.get("kind"))
    if kind not in KINDS:
        raise ValueError(f"draft.kind={kind}: the kinds are {', '.join(KINDS)}")
    given = {name: value for name, value in options.items() if name not in ("name", "kind")}
    try:
        signature(KINDS[kind]).bind(source, **given)
    except TypeError as error:
        raise ValueError(f"draft options {given} do not fit kind {kind}: {error}") from None
    try:
        return KINDS[kind](source, **given)
    except TypeError as error:
        told = ", ".join(f"draft.{name}={value}" for name, value in given.items())
        raise ValueError(f"{told} does not fit a draft of kind {kind} ({error})") from None
