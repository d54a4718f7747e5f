"""What a bundle is: the runs of some sweeps, on their way from one store to another.

A bundle is a zip. `manifest.json` says who wrote it, in which form, and the size and SHA-256 of
every other member; `runs.jsonl` has a line for each run, `metrics.jsonl` one for each point of a
metric; `artifacts/SWEEP/JOB/` holds a run's files, `artifacts/SWEEP/sweep/` the sweep's own. All
times are Unix times in milliseconds, so no time zone is in them. Pure; does not load MLflow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracking.payload import Point

FORMAT = "specsweep bundle"
SCHEMA = 1
"""Version of the bundle's form. A reader refuses a newer one by name."""
MANIFEST, RUNS, METRICS, ARTIFACTS = "manifest.json", "runs.jsonl", "metrics.jsonl", "artifacts"

STATUSES = ("RUNNING", "FINISHED", "FAILED", "KILLED")
PARENT_TAG = "mlflow.parentRunId"
DIGEST_TAG, SOURCE_TAG, EXPORTED_TAG = "bundle.digest", "bundle.run_id", "bundle.exported"
SCHEMA_TAG = "bundle.schema"
_OF_A_STORE = (PARENT_TAG, "mlflow.runName", DIGEST_TAG, SOURCE_TAG, EXPORTED_TAG, SCHEMA_TAG)
"""Tags that say where a run stands in one store; each store has its own."""


@dataclass(frozen=True, slots=True)
class BundleRun:
    """A run as it is in any store. `files` maps a path inside the run to its SHA-256.

    `job` is the job's digest, empty for the sweep's own run; `source_id` the run's id in the store
    that recorded it.
    """

    sweep_id: str
    job: str
    name: str
    status: str
    started_ms: int
    finished_ms: int | None
    source_id: str
    params: dict[str, str]
    tags: dict[str, str]
    points: tuple[Point, ...] = ()
    files: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Names the run in every store."""
        return f"{self.sweep_id}/{self.job}" if self.job else self.sweep_id

    @property
    def folder(self) -> str:
        """Where its files are in the bundle."""
        return f"{ARTIFACTS}/{self.sweep_id}/{self.job or 'sweep'}/"

    def digest(self) -> str:
        """SHA-256 over what the run says, the same whichever store it is read from."""
        told = [
            [self.key, self.name, self.status, self.started_ms, self.finished_ms],
            self.params,
            self.tags,
            sorted([p.name, p.step, p.time_ms, p.value] for p in self.points),
            self.files,
        ]
        text = json.dumps(told, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def row(self) -> dict[str, Any]:
        """The run's line in `runs.jsonl`."""
        return {
            "run": self.key,
            "sweep": self.sweep_id,
            "job": self.job,
            "parent": self.sweep_id if self.job else None,
            "name": self.name,
            "status": self.status,
            "started_ms": self.started_ms,
            "finished_ms": self.finished_ms,
            "source_id": self.source_id,
            "params": self.params,
            "tags": self.tags,
        }

    def point_rows(self) -> Iterable[dict[str, Any]]:
        """The run's lines in `metrics.jsonl`."""
        for point in self.points:
            yield {
                "run": self.key,
                "metric": point.name,
                "step": point.step,
                "time_ms": point.time_ms,
                "value": point.value,
            }


@dataclass(frozen=True, slots=True)
class About:
    """What a manifest says of its bundle. `exported` is UTC, and sorts by time."""

    exported: str
    program: str
    machines: tuple[str, ...] = ()


def own_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """A run's tags without those that are about the store it is in."""
    return {name: value for name, value in tags.items() if name not in _OF_A_STORE}
