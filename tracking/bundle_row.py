"""A line of a bundle becomes a run, if all of it can be in a store.

Export holds what it writes to the same rules, so that no bundle is made that import would refuse.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.records import SCHEMA as RECORD_SCHEMA
from pipeline.records import JobRecord
from tracking.bundle import STATUSES, BundleRun, own_tags
from tracking.payload import Point
from tracking.printable import is_printable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")  # of a sweep or job: a folder's name too
_KEY = re.compile(r"[\w./ :-]{1,250}")  # what MLflow takes as a name
LONGEST_PARAM, LONGEST_TAG = 6000, 8000  # characters that MLflow takes
MOST_NAMES = 100  # parameters or tags of a run that MLflow takes at once
_LAST_MS = 2**53
RECORD = "record.json"
MOST_RECORD_BYTES = 2**22  # a larger one is read, or refused, when somebody asks for it
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)
_PROSE = ("mlflow.note.content", "prompt")
"""Texts of which nothing can be asked: whoever shows them makes them harmless."""


def run_of(
    row: Mapping[str, Any], points: Iterable[Mapping[str, Any]], files: Mapping[str, str]
) -> BundleRun:
    """The run of a line and of the points with its key. ValueError says what is wrong."""
    name = _text(row["run"], "the key of a run", 300)
    run = BundleRun(
        sweep_id=_named(row["sweep"], "sweep"),
        job=_named(row["job"], "job") if row["job"] else "",
        name=_line(row["name"], f"the name of run {name}", LONGEST_PARAM),
        status=_line(row["status"], f"the status of run {name}", 20),
        started_ms=_time(row["started_ms"], name),
        finished_ms=None if row["finished_ms"] is None else _time(row["finished_ms"], name),
        source_id=_named(row["source_id"], "run in its own store"),
        params=_texts(row["params"], f"a parameter of run {name}", LONGEST_PARAM),
        tags=own_tags(_texts(row["tags"], f"a tag of run {name}", LONGEST_TAG)),
        points=tuple(point_of(point, name) for point in points),
        files=dict(files),
    )
    if run.key != name:
        raise ValueError(f"run {name} is called {run.key} too")
    if run.status not in STATUSES:
        raise ValueError(f"run {name} has the unknown status {run.status}")
    if (run.tags.get("sweep.id"), run.tags.get("job.digest", "")) != (run.sweep_id, run.job):
        raise ValueError(f"run {name} has another run's tags")
    _check_shown(run)
    return run


def check_record(content: bytes, run: str) -> None:
    """ValueError where a job's `record.json` is no record."""
    try:
        JobRecord.from_json(content.decode())
    except ValueError as error:
        raise ValueError(f"{RECORD} of run {run} cannot be read: {error}") from None


def _check_shown(run: BundleRun) -> None:
    """What tables and sentences show, and what they count with."""
    for kind, texts in (("tag", run.tags), ("parameter", run.params)):
        for name, text in texts.items():
            if name in _PROSE:
                continue
            lines = [text] if name.startswith("machine.") else re.split(r"[\n\t]", text)
            for line in lines:
                _line(line, f"the {kind} {name} of run {run.key}", LONGEST_TAG)
    for name in ("k", "k_most") if run.job else ():
        told = run.params.get(name, "0")
        if not _WHOLE.fullmatch(told) and (name, told) != ("k", "auto"):
            raise ValueError(f"the parameter {name} of run {run.key} is {told[:80]!r}, no number")


def newer_record(row: Mapping[str, Any]) -> str | None:
    """The version of the record behind a line, where it is newer than this program can read."""
    tags = row.get("tags")
    told = str(tags.get("record.schema")) if isinstance(tags, dict) else ""
    newer = len(told) < 10 and told.isdecimal() and int(told) > RECORD_SCHEMA
    return told if newer else None


def _named(value: Any, what: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"{str(value)[:80]!r} is no name of a {what}")
    return value


def _text(value: Any, what: str, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest or not _is_unicode(value):
        raise ValueError(f"{what} is no text of at most {longest} characters")
    return value


def _line(value: Any, what: str, longest: int) -> str:
    """What tables show: a terminal must not obey it."""
    if not is_printable(_text(value, what, longest)):
        raise ValueError(f"{what} holds control characters: {value[:80]!r}")
    return str(value)


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


def point_of(row: Mapping[str, Any], run: str) -> Point:
    """The point of a line in `metrics.jsonl`. ValueError says what is wrong."""
    value, step = row["value"], row["step"]
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise ValueError(f"a metric of run {run} is {str(value)[:80]}, which is no number")
    if type(step) is not int or abs(step) >= _LAST_MS:
        raise ValueError(f"a metric of run {run} has the impossible step {str(step)[:80]}")
    name = sys.intern(_key(row["metric"], f"a metric of run {run}"))  # once, not once a point
    return Point(name, float(value), _time(row["time_ms"], run), step)
