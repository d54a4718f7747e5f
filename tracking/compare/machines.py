"""What each column was measured on, and how fast plain decoding was there. Pure."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.records import JobRecord
from tracking.compare.sweeps import Column, Sweep

_NUMBER = re.compile("[0-9]{1,20}")
HEADINGS = {
    "processor": "cpu",
    "cores": "cores",
    "memory": "memory_bytes",
    "system": "os",
    "virtual machine": "virtual",
    "Python": "python",
    "torch": "torch",
    "power": "power",
    "governor": "governor",
    "MHz": "frequency_mhz",
}
"""What is shown of a machine, and by which tag it is told."""


@dataclass(frozen=True)
class Range:
    """Median, smallest and largest of what the jobs of a column say."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Facts:
    """`told` holds what the machine says of itself, by the part after `machine.`; speeds are of
    plain decoding, None where no job tells them. `jobs` were timed; of a sweep without timings
    `jobs` is 0, and `counted` says how many were counted."""

    label: str
    sweep: str
    jobs: int
    told: dict[str, str]
    others_share: Range | None
    target_pass_us: Range | None
    tokens_per_s: Range | None
    noise: tuple[float, float] | None
    counted: int = 0

    @property
    def about(self) -> dict[str, str]:
        """What the machine says of itself, for a reader: by a heading, without what is not known.

        That a machine is not virtual is what a reader takes for granted.
        """
        told = {heading: self.told.get(name, "") for heading, name in HEADINGS.items()}
        told |= {"memory": _memory(self.told.get("memory_bytes", ""))}
        if told["virtual machine"] == "no":
            del told["virtual machine"]
        return {heading: text for heading, text in told.items() if text}

    @property
    def jobs_told(self) -> str:
        """ "1 timed job", "12 jobs counted, none timed"."""
        if not self.jobs:
            return f"{_jobs(self.counted, '')} counted, none timed"
        return _jobs(self.jobs, "timed ")


def _jobs(many: int, kind: str) -> str:
    return f"1 {kind}job" if many == 1 else f"{many} {kind}jobs"


def _memory(told_bytes: str) -> str:
    return f"{int(told_bytes) / 2**30:.1f} GiB" if _NUMBER.fullmatch(told_bytes) else ""


def facts(column: Column) -> Facts:
    low, high = (_range(column.records, f"null/ratio_{end}") for end in ("min", "max"))
    return Facts(
        label=column.label,
        sweep=column.sweep.id,
        jobs=len(column.records),
        told=_told(column.told),
        others_share=_range(column.records, "load/others_share"),
        target_pass_us=_range(column.records, "cost/target_pass_us"),
        tokens_per_s=_range(column.records, "time/baseline_tokens_per_s"),
        noise=(low.low, high.high) if low and high else None,
    )


def untimed(sweep: Sweep) -> Facts:
    """Of a sweep that only counted."""
    told: dict[str, str] = {}
    for record in sweep.records:
        told |= sweep.told_of(record)
    counted = sum("counts.digest" in record.tags for record in sweep.records)
    return Facts(sweep.label, sweep.id, 0, _told(told), None, None, None, None, counted)


def _told(tags: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix("machine."): value for name, value in tags.items()}


def _range(records: Sequence[JobRecord], name: str) -> Range | None:
    values = [record.metrics[name] for record in records if name in record.metrics]
    return Range(statistics.median(values), min(values), max(values)) if values else None
