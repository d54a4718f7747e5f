"""Where a sweep's acceptance rates mislead: the draft that is accepted more is the slower one.

Two drafts are compared where all else is the same: k, rule, text. Their timed rounds, all seeds
together, go through `summary.headline_misleads`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from pipeline.records import JobRecord
from pipeline.summary import headline_misleads, summarize

_APART = ("draft", "seed", "piece_tokens")


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
    timed = [record for record in records if record.timed_rounds]
    settings: dict[str, dict[str, list[JobRecord]]] = {}
    for record in timed:
        drafts = settings.setdefault(json.dumps(_setting(record), sort_keys=True), {})
        drafts.setdefault(_draft(record), []).append(record)
    told = _telling([json.loads(key) for key in settings])
    pairs = []
    for key, drafts in settings.items():
        setting = {name: str(value) for name, value in json.loads(key).items() if name in told}
        pairs += [_pair(setting, drafts, *two) for two in combinations(drafts, 2)]
    return Headlines(tuple(pair for pair in pairs if pair is not None))


def _setting(record: JobRecord) -> dict[str, Any]:
    """What two drafts must have in common to be compared."""
    params = record.params.items()
    return {k: v for k, v in params if k not in _APART and not k.startswith("draft.")}


def _draft(record: JobRecord) -> str:
    """The draft's name, with its options."""
    options = {k: v for k, v in record.params.items() if k.startswith("draft.")}
    return json.dumps([record.params["draft"], options], sort_keys=True)


def _telling(settings: Sequence[dict[str, Any]]) -> set[str]:
    """The parameters that differ between settings, and k."""
    names = {name for setting in settings for name in setting}
    return {"k"} | {n for n in names if len({str(s.get(n)) for s in settings}) > 1}


def _pair(
    setting: dict[str, str], drafts: dict[str, list[JobRecord]], one: str, other: str
) -> Pair | None:
    """None where one of them drafted nothing, so that it has no acceptance rate."""
    a, b = ([r for record in drafts[name] for r in record.round_log()] for name in (one, other))
    in_a, in_b = summarize(a), summarize(b)
    if "acceptance_rate" not in in_a or "acceptance_rate" not in in_b:
        return None
    names = _shown(one, drafts), _shown(other, drafts)
    return Pair(
        setting,
        accepted_more=names[in_a["acceptance_rate"] < in_b["acceptance_rate"]],
        faster=names[in_a["tokens_per_second"] < in_b["tokens_per_second"]],
        misleads=headline_misleads(a, b),
        told_apart=_apart(drafts[one], drafts[other]),
    )


def _shown(key: str, drafts: Iterable[str]) -> str:
    """A draft's name, and its options where another has the same name."""
    name, options = json.loads(key)
    if sum(json.loads(other)[0] == name for other in drafts) == 1:
        return str(name)
    return " ".join([name, *(f"{option}={value}" for option, value in options.items())])


def _apart(a: Iterable[JobRecord], b: Iterable[JobRecord]) -> bool:
    """Whether the ranges of the pairs' ratios are disjoint."""
    ratios = ([v for r in one for _, v in r.series.get("time/pair_ratio", [])] for one in (a, b))
    in_a, in_b = ratios
    return bool(in_a and in_b) and (max(in_a) < min(in_b) or max(in_b) < min(in_a))
