"""What a bundle is: the runs of some sweeps, on their way from one store to another.

A bundle is a zip. `manifest.json` says who wrote it, in which form, and the size and SHA-256 of
every other member; `runs.jsonl` has a line for each run, `metrics.jsonl` one for each point of a
metric; `artifacts/SWEEP/JOB/` holds a run's files, `artifacts/SWEEP/sweep/` the sweep's own. All
times are Unix times in milliseconds, so no time zone is in them. Pure; does not load MLflow.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.records import SCHEMA as RECORD_SCHEMA
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
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")  # of a sweep or job: a folder's name too
_KEY = re.compile(r"[\w./ :-]{1,250}")  # what MLflow takes as a name
LONGEST_PARAM, LONGEST_TAG = 6000, 8000  # characters that MLflow takes
MOST_NAMES = 100  # parameters or tags of a run that MLflow takes at once
_LAST_MS = 2**53


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


def run_of(
    row: Mapping[str, Any], points: Iterable[Mapping[str, Any]], files: Mapping[str, str]
) -> BundleRun:
    """The run of a line and of the points with its key. ValueError says what is wrong."""
    name = row["run"]
    run = BundleRun(
        sweep_id=_named(row["sweep"], "sweep"),
        job=_named(row["job"], "job") if row["job"] else "",
        name=_text(row["name"], f"the name of run {name}", LONGEST_PARAM),
        status=str(row["status"]),
        started_ms=_time(row["started_ms"], name),
        finished_ms=None if row["finished_ms"] is None else _time(row["finished_ms"], name),
        source_id=_text(row["source_id"], f"the id of run {name}", 64),
        params=_texts(row["params"], f"a parameter of run {name}", LONGEST_PARAM),
        tags=own_tags(_texts(row["tags"], f"a tag of run {name}", LONGEST_TAG)),
        points=tuple(_point(point, name) for point in points),
        files=dict(files),
    )
    if run.key != name:
        raise ValueError(f"run {name} is called {run.key} too")
    if run.status not in STATUSES:
        raise ValueError(f"run {name} has the unknown status {run.status}")
    if (run.tags.get("sweep.id"), run.tags.get("job.digest", "")) != (run.sweep_id, run.job):
        raise ValueError(f"run {name} has another run's tags")
    return run


def newer_record(run: BundleRun) -> str | None:
    """The version of the run's record where it is newer than this program can read."""
    told = run.tags.get("record.schema", "")
    return told if told.isdecimal() and int(told) > RECORD_SCHEMA else None


def _named(value: Any, what: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"{str(value)[:80]!r} is no name of a {what}")
    return value


def _text(value: Any, what: str, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest or not _is_unicode(value):
        raise ValueError(f"{what} is no text of at most {longest} characters")
    return value


def _is_unicode(text: str) -> bool:
    """Whether a file or a database takes it: no halves of characters, no NUL."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _texts(value: Any, what: str, longest: int) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > MOST_NAMES:
        raise ValueError(f"{what}: there should be at most {MOST_NAMES}, by name")
    return {_key(name, what): _text(text, what, longest) for name, text in value.items()}


def _key(name: Any, what: str) -> str:
    if (
        not isinstance(name, str)
        or not _KEY.fullmatch(name)
        or posixpath.normpath(name) != name  # as MLflow wants it
        or name[0] in "./"
    ):
        raise ValueError(f"{what} has the impossible name {str(name)[:80]!r}")
    return name


def _time(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < _LAST_MS:
        raise ValueError(f"run {what} has the impossible time {str(value)[:80]}")
    return value


def _point(row: Mapping[str, Any], run: str) -> Point:
    value, step = row["value"], row["step"]
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise ValueError(f"a metric of run {run} is {str(value)[:80]}, which is no number")
    if type(step) is not int or abs(step) >= _LAST_MS:
        raise ValueError(f"a metric of run {run} has the impossible step {str(step)[:80]}")
    name = _key(row["metric"], f"a metric of run {run}")
    return Point(name, float(value), _time(row["time_ms"], run), step)
