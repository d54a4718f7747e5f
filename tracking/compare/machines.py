"""What each column was measured on, and how fast plain decoding was there. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.records import JobRecord
from tracking.compare.sweeps import Column


@dataclass(frozen=True)
class Range:
    """Median, smallest and largest of what the jobs of a column say."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Facts:
    """`told` holds what the machine says of itself, by the part after `machine.`; speeds are of
    plain decoding, None where no job tells them."""

    label: str
    sweep: str
    jobs: int
    told: dict[str, str]
    others_share: Range | None
    target_pass_us: Range | None
    tokens_per_s: Range | None
    noise: tuple[float, float] | None


def facts(column: Column) -> Facts:
    told = {name.removeprefix("machine."): value for name, value in column.told.items()}
    low, high = (_range(column.records, f"null/ratio_{end}") for end in ("min", "max"))
    return Facts(
        label=column.label,
        sweep=column.sweep.id,
        jobs=len(column.records),
        told=told,
        others_share=_range(column.records, "load/others_share"),
        target_pass_us=_range(column.records, "cost/target_pass_us"),
        tokens_per_s=_range(column.records, "time/baseline_tokens_per_s"),
        noise=(low.low, high.high) if low and high else None,
    )


def _range(records: Sequence[JobRecord], name: str) -> Range | None:
    values = [record.metrics[name] for record in records if name in record.metrics]
    return Range(statistics.median(values), min(values), max(values)) if values else None
