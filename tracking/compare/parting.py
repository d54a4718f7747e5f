"""Where two decodes of one job part, and how near the decision there was. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.records import JobRecord

NEAR_TIE = 1e-9
"""A margin below this is within what rounding can turn, see `count/margin_min`."""
_AROUND = 18  # characters shown before the place where two texts part
_SHAPE = ("start", "k", "accepted", "emitted")


@dataclass(frozen=True)
class Parting:
    """Where two texts part: `position` counts characters from 0, `one` and `other` end with the
    first that differ, or sooner where a text is over."""

    position: int
    one: str
    other: str


@dataclass(frozen=True)
class Closest:
    """How near the closest decision came to going the other way, in both decodes.

    Of the round in which they part, which begins at character `position`; of the whole job, with
    `position` None, where the records do not tell it round by round.
    """

    margins: tuple[float | None, float | None]
    position: int | None

    @property
    def near_tie(self) -> bool:
        return any(margin is not None and margin < NEAR_TIE for margin in self.margins)


def parting(one: str, other: str) -> Parting | None:
    """None where the texts are equal or not known."""
    if not one or not other or one == other:
        return None
    shorter = min(len(one), len(other))
    position = next((i for i in range(shorter) if one[i] != other[i]), shorter)
    start = max(0, position - _AROUND)
    return Parting(position, one[start : position + 1], other[start : position + 1])


def closest(one: JobRecord, other: JobRecord) -> Closest:
    """Of the round in which accepted counts or texts first differ; the records are whole."""
    texts = parting(one.text, other.text)
    place = _round(one.rounds, other.rounds, None if texts is None else texts.position)
    if place is not None:
        a, b = one.rounds[place].get("margin"), other.rounds[place].get("margin")
        if a is not None or b is not None:
            return Closest((a, b), one.rounds[place]["start"])
    whole = (one.metrics.get("count/margin_min"), other.metrics.get("count/margin_min"))
    return Closest(whole, None)


def _round(
    one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]], position: int | None
) -> int | None:
    """The first round that is not the same in both, or that wrote the character at `position`."""
    for place, (a, b) in enumerate(zip(one, other, strict=False)):  # one may be over sooner
        if any(a.get(name) != b.get(name) for name in _SHAPE):
            return place
        if position is not None and position < a["start"] + a["emitted"]:
            return place
    return None
