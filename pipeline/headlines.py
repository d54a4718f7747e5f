"""Where a sweep's acceptance rates mislead: the draft that is accepted more is the slower one.

Two drafts are compared where all else is the same: k, rule, text. Their timed rounds, all seeds
together, go through `summary.headline_misleads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from pipeline import alike
from pipeline.records import JobRecord
from pipeline.summary import headline_misleads, summarize


@dataclass(frozen=True, slots=True)
class Pair:
    """Two drafts under one setting. `accepted_more` and `faster` are drafts' names.

    `setting` holds the parameters that make it differ from the sweep's other settings; k always.
    `told_apart` is whether the ranges of their speedups have nothing in common.
    """

    setting: dict[str, str]
    accepted_more: str
    faster: str
    misleads: bool
    told_apart: bool


@dataclass(frozen=True, slots=True)
class Headlines:
    """All pairs of drafts that could be compared."""

    pairs: tuple[Pair, ...]

    @property
    def misleading(self) -> list[Pair]:
        return [pair for pair in self.pairs if pair.misleads]

    @property
    def metrics(self) -> dict[str, float]:
        """For the parent run; nothing where no two drafts were timed alike."""
        if not self.pairs:
            return {}
        return {
            "sweep/draft_pairs": float(len(self.pairs)),
            "sweep/misleading_pairs": float(len(self.misleading)),
        }

    def as_dict(self) -> dict[str, Any]:
        """For the sweep's summary."""
        told = [asdict(pair) for pair in self.misleading]
        return {"compared": len(self.pairs), "misleading": told}


def headlines(records: Iterable[JobRecord]) -> Headlines:
    """Every pair of drafts that were timed under one setting. Untimed records are left out."""
    found = alike.groups(record for record in records if record.timed_rounds)
    names = {"k", *alike.telling([setting for setting, _ in found])}
    pairs = [
        _pair(alike.told(setting, names), drafts, *two)
        for setting, drafts in found
        for two in combinations(drafts, 2)
    ]
    return Headlines(tuple(pair for pair in pairs if pair is not None))


def _pair(
    setting: dict[str, str], drafts: dict[str, list[JobRecord]], one: str, other: str
) -> Pair | None:
    """None where one of them drafted nothing, so that it has no acceptance rate."""
    a, b = ([r for record in drafts[name] for r in record.round_log()] for name in (one, other))
    in_a, in_b = summarize(a), summarize(b)
    if "acceptance_rate" not in in_a or "acceptance_rate" not in in_b:
        return None
    names = alike.shown(one, drafts), alike.shown(other, drafts)
    return Pair(
        setting,
        accepted_more=names[in_a["acceptance_rate"] < in_b["acceptance_rate"]],
        faster=names[in_a["tokens_per_second"] < in_b["tokens_per_second"]],
        misleads=headline_misleads(a, b),
        told_apart=_apart(drafts[one], drafts[other]),
    )


def _apart(a: Sequence[JobRecord], b: Sequence[JobRecord]) -> bool:
    """Whether the intervals of the speedups are disjoint, those of all seeds taken together."""
    low_a, low_b = (min(r.metrics["time/speedup_low"] for r in one) for one in (a, b))
    high_a, high_b = (max(r.metrics["time/speedup_high"] for r in one) for one in (a, b))
    return high_a < low_b or high_b < low_a
