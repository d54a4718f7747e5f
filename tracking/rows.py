"""One row a draft and k: what the seeds of a sweep say together. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.records import JobRecord
from tracking.verdict import Verdict, verdict
from tracking.weights import Weights

_AUTO = "auto"
_MAY_SPLIT = (
    "k_auto k_most verify proposal tree temperature top_k top_p tokens prompt eos dtype "
    "threads timing pairs piece_tokens most_pairs half_width limit_s compile"
).split()
"""Parameters that, where they differ within a sweep, make rows of their own."""


@dataclass(frozen=True, slots=True)
class Row:
    """Figures are None where they are not known: nothing drafted, not timed, nothing finished.

    Acceptance and tokens per pass are totals over totals, `passes` and `tokens` means over the
    seeds; `measured`, `low` and `high` are median and range over all pairs of all seeds.
    """

    draft: str
    k: int  # the most that a round drafts
    split: dict[str, str]  # parameters other than draft, k and seed that differ in the sweep
    jobs: int
    failed: int
    acceptance: float | None = None
    tokens_per_pass: float | None = None
    passes: float | None = None
    tokens: float | None = None
    c: float | None = None
    v: float | None = None
    o: float | None = None
    predicted_simple: float | None = None
    predicted: float | None = None
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    null_low: float | None = None  # range of the baseline against itself
    null_high: float | None = None
    pairs: int = 0
    verdict: Verdict | None = None
    auto: bool = False  # the draft's own sureness decides how much a round drafts
    draft_length: float | None = None  # tokens drafted a round, on average where k had room
    keeps_bytes: float | None = None  # by the draft at its most: weights, cache, other state
    misleads: bool = False  # a draft that is accepted less is faster
    seeds_acceptance: tuple[float, ...] = ()  # of the single seeds
    seeds_tokens_per_pass: tuple[float, ...] = ()
    targets: frozenset[str] = frozenset()  # where its jobs' weights were: the parameter `target`

    @property
    def name(self) -> str:
        """ "int8 k=8", with what else sets the row apart."""
        others = "".join(f" {key}={value}" for key, value in self._told())
        return f"{self.draft} k={self.length}{others}"

    @property
    def length(self) -> str:
        """k as it was asked for: "8", "auto"."""
        return "auto" if self.auto else str(self.k)

    @property
    def series(self) -> str:
        """The row's draft, with what else sets it apart: what one line of a figure shows."""
        others = ", ".join(f"{key} {value}" for key, value in self._told())
        return f"{self.draft} ({others})" if others else self.draft

    def _told(self) -> list[tuple[str, str]]:
        """What sets the row apart, without what it has none of."""
        return [(key, value) for key, value in self.split.items() if value != "none"]


def rows(records: Iterable[JobRecord], among: Iterable[JobRecord] | None = None) -> list[Row]:
    """By draft in the order of first occurrence, then k. Raises nothing on failed records.

    What differs `among` records, by default these, makes rows of their own: so that the rows of
    several sweeps are named alike.
    """
    records = list(records)
    among = records if among is None else list(among)
    known = [record for record in among if _is_good(record)] or records
    weights = Weights(known)
    varying = [name for name in _MAY_SPLIT if len(_values_of(name, known)) > 1]
    varying += _options_that_vary(known)
    groups: dict[tuple[str, ...], list[JobRecord]] = {}
    for record in records:
        key = (_param(record, "draft"), *(_param(record, name) for name in varying))
        key = (*key, weights.name(record)) if weights.vary else key
        groups.setdefault((*key, _param(record, "k")), []).append(record)
    varying += ["target"] if weights.vary else []
    order = {key[:-1]: place for place, key in reversed(list(enumerate(groups)))}
    return [
        _row(group, dict(zip(varying, key[1:-1], strict=True)))
        for key, group in sorted(groups.items(), key=lambda g: (order[g[0][:-1]], _by_k(g[0][-1])))
    ]


def _by_k(k: str) -> float:
    """auto comes last."""
    return int(k) if k.isdecimal() else math.inf


def _values_of(name: str, records: list[JobRecord]) -> set[str]:
    """What a parameter is in these records; one of k=auto's own only where k is auto."""
    if name in ("k_auto", "k_most"):
        records = [record for record in records if _param(record, "k") == _AUTO]
    return {_param(record, name) for record in records}


def noise(rows: Iterable[Row]) -> tuple[float, float] | None:
    """The smallest and the largest ratio of the baseline against itself; None where none is known.

    A verdict has to clear it, and 1 in any case.
    """
    ends = [end for row in rows for end in (row.null_low, row.null_high) if end is not None]
    return (min(ends), max(ends)) if ends else None


def _options_that_vary(records: list[JobRecord]) -> list[str]:
    """A draft's own options, `draft.bits`, that differ between jobs of one draft."""
    seen: dict[tuple[str, str], set[str]] = {}
    for record in records:
        for name in record.params:
            if name.startswith("draft."):
                seen.setdefault((_param(record, "draft"), name), set()).add(_param(record, name))
    return sorted({name for (_, name), values in seen.items() if len(values) > 1})


def _is_good(record: JobRecord) -> bool:
    """A record that failed has no figures, and knows little more than its draft, k and seed."""
    return record.status in ("counted", "done")


def _param(record: JobRecord, name: str) -> str:
    value = record.params.get(name)
    return "none" if value is None else str(value)


def _row(group: list[JobRecord], split: dict[str, str]) -> Row:
    good = [record for record in group if _is_good(record)]
    auto = _param(group[0], "k") == _AUTO
    lengths = [_param(record, "k_most" if auto else "k") for record in group]
    k = max(int(length) if length.isdecimal() else 0 for length in lengths)
    length = _mean(good, "count/draft_length")
    drafts = float(k) if length is None else length
    drafted, accepted = _total(good, "count/drafted"), _total(good, "count/accepted")
    emitted, passes = _total(good, "count/emitted"), _total(good, "count/target_passes")
    tokens_per_pass = _ratio(emitted, passes)
    c, v, o = (_middle(good, f"cost/{term}") for term in "cvo")
    ratios = [ratio for record in good for _, ratio in record.series.get("time/pair_ratio", [])]
    low, high = _range(good, ratios)
    null_low = min(_values(good, "null/ratio_min"), default=None)
    null_high = max(_values(good, "null/ratio_max"), default=None)
    return Row(
        draft=_param(group[0], "draft"),
        k=k,
        auto=auto,
        draft_length=length,
        keeps_bytes=max(map(_keeps, good), default=None),
        split=split,
        targets=frozenset(_param(record, "target") for record in group),
        jobs=len(group),
        failed=len(group) - len(good),
        acceptance=_ratio(accepted, drafted),
        tokens_per_pass=tokens_per_pass,
        passes=_mean(good, "count/target_passes"),
        tokens=_mean(good, "count/emitted"),
        c=c,
        v=v,
        o=o,
        predicted_simple=_predict(tokens_per_pass, drafts, c, 1.0, 0.0),
        predicted=_predict(tokens_per_pass, drafts, c, v, o),
        measured=statistics.median(ratios) if ratios else None,
        low=low,
        high=high,
        null_low=null_low,
        null_high=null_high,
        pairs=len(ratios),
        verdict=_verdict(low, high, null_low, null_high),
        seeds_acceptance=tuple(_values(good, "count/acceptance_rate")),
        seeds_tokens_per_pass=tuple(_values(good, "count/tokens_per_pass")),
    )


def _range(records: list[JobRecord], ratios: list[float]) -> tuple[float | None, float | None]:
    """The jobs' intervals taken together: smallest and largest ratio, or narrower from 7 pairs on.

    The range of the ratios grows with their number, and would punish the jobs that took more.
    """
    lows, highs = (_values(records, f"time/speedup_{end}") for end in ("low", "high"))
    if ratios and len(lows) == len(highs) == len(records):
        return min(lows), max(highs)
    return min(ratios, default=None), max(ratios, default=None)


def _keeps(record: JobRecord) -> float:
    kept = ("draft_weight", "draft_cache", "extra_state")
    return sum(record.metrics.get(f"memory/{part}_bytes", 0.0) for part in kept)


def _values(records: list[JobRecord], name: str) -> list[float]:
    return [record.metrics[name] for record in records if name in record.metrics]


def _total(records: list[JobRecord], name: str) -> float:
    return sum(_values(records, name))


def _mean(records: list[JobRecord], name: str) -> float | None:
    values = _values(records, name)
    return statistics.fmean(values) if values else None


def _middle(records: list[JobRecord], name: str) -> float | None:
    values = _values(records, name)
    return statistics.median(values) if values else None


def _ratio(above: float, below: float) -> float | None:
    return above / below if below else None


def _predict(
    tokens_per_pass: float | None, k: float, c: float | None, v: float | None, o: float | None
) -> float | None:
    """Tokens per pass / (v + k c + o), where all of them are known."""
    if tokens_per_pass is None or c is None or v is None or o is None:
        return None
    return tokens_per_pass / (v + k * c + o)


def _verdict(
    low: float | None, high: float | None, null_low: float | None, null_high: float | None
) -> Verdict | None:
    if low is None or high is None:
        return None
    return verdict(low, high, 1.0 if null_low is None else null_low, null_high or 1.0)
