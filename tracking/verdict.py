"""Faster, slower, or not told apart from noise."""

from __future__ import annotations

from typing import Literal

from pipeline.records import JobRecord

Verdict = Literal["faster", "slower", "ambiguous"]
ENOUGH = 6  # pairs: the range of six ratios holds their median in 96.9% of cases, of two in 50%


def verdict(low: float, high: float, null_low: float = 1.0, null_high: float = 1.0) -> Verdict:
    """The word for a range of ratios: ambiguous where it overlaps 1 or the null's own range.

    The null is the baseline against itself: ratios that it also gives mean nothing.
    """
    if low > max(1.0, null_high):
        return "faster"
    if high < min(1.0, null_low):
        return "slower"
    return "ambiguous"


def record_verdict(record: JobRecord) -> Verdict | None:
    """Of the interval for the median, else of the range; None where the record was not timed."""
    m = record.metrics
    low = m.get("time/speedup_low", m.get("time/speedup_min"))
    high = m.get("time/speedup_high", m.get("time/speedup_max"))
    if low is None or high is None:
        return None
    null = (m.get(f"null/ratio_{end}", 1.0) for end in ("min", "max"))
    return verdict(low, high, *null)
