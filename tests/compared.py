"""Sweeps of made-up machines, for the tests of `tracking.compare`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pipeline.records import JobRecord
from tests.records_factory import make_sweep
from tracking.compare import Comparison, Sweep, compare

SHARED = {"weights.digest": "feed" * 16, "code.digest": "c0de" * 16}


def on_machine(
    name: str,
    records: Iterable[JobRecord] | None = None,
    load: str | None = "idle",
    sweep_id: str | None = None,
    **tags: str,
) -> Sweep:
    """A sweep of a machine called `name`; `tags` replace or add tags of all its jobs."""
    jobs = make_sweep(seeds=(0,)) if records is None else list(records)
    own = SHARED | ({"load.state": load} if load else {}) | tags
    tagged = [replace(record, tags=own | record.tags | tags) for record in jobs]
    machine = {"machine.id": hashlib.sha256(name.encode()).hexdigest()[:12], "machine.name": name}
    return Sweep(sweep_id or f"sweep-{name}", machine, tagged)


def timed(record: JobRecord, ratios: Iterable[float], **costs: float) -> JobRecord:
    """The record with these ratios of its pairs, and `c=0.4` or the like as its costs."""
    ratios = list(ratios)
    metrics = record.metrics | {f"cost/{term}": value for term, value in costs.items()}
    for low, high in (("min", "max"), ("low", "high")):
        ends = {f"time/speedup_{low}": min(ratios), f"time/speedup_{high}": max(ratios)}
        metrics = metrics | ends
    series = record.series | {"time/pair_ratio": list(enumerate(ratios))}
    return replace(record, metrics=metrics, series=series)


def without(record: JobRecord, *names: str) -> JobRecord:
    """The record without these metrics."""
    kept = {name: value for name, value in record.metrics.items() if name not in names}
    return replace(record, metrics=kept)


def nudged(record: JobRecord, text: str = "First Citizen:\nBefore he", **changes: Any) -> JobRecord:
    """The record as other weights would have made it."""
    metrics = record.metrics | {"count/accepted": record.metrics["count/accepted"] - 3}
    tags = record.tags | {"counts.digest": "dead" * 16, "weights.digest": "beef" * 16}
    given: dict[str, Any] = {"metrics": metrics, "tags": tags, "text": text}
    given["digest"] = record.digest[::-1]
    return replace(record, **(given | changes))


def side_by_side(*sweeps: Sweep) -> Comparison:
    """Compared; the records are whole, so nothing is fetched."""
    return compare(sweeps, lambda sweep, record: record)


def assert_alone(page: str) -> None:
    """An HTML page that asks for nothing from elsewhere: what it shows is in it."""
    addresses = re.findall(r"""\b(?:src|href|srcset|action|data)\s*=\s*["']?([^"'\s>]*)""", page)
    assert all(address.startswith(("data:", "#")) for address in addresses), addresses
    without_images = re.sub(r'"data:[^"]*"', "", page)  # their letters may spell anything
    for word in ("<script", "<link", "<iframe", "@import", "url("):
        assert word not in without_images
