"""What one record becomes in MLflow: strings, points and files. Pure; does not load MLflow."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.records import JobRecord
from tracking import names
from tracking.notes import command, run_note
from tracking.verdict import record_verdict

RunStatus = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]

STATUS: dict[str, RunStatus] = {
    "counted": "RUNNING",
    "done": "FINISHED",
    "failed": "FAILED",
    "killed": "KILLED",
}
LONGEST = 500
"""Characters of a parameter or tag. MLflow would cut at 6000 without a word."""


@dataclass(frozen=True, slots=True)
class Point:
    name: str
    value: float
    time_ms: int
    step: int


@dataclass(frozen=True, slots=True)
class Payload:
    """`files` maps a name to its text; `started_ms` and `finished_ms` are Unix times."""

    status: RunStatus
    started_ms: int
    finished_ms: int
    params: dict[str, str]
    points: list[Point]
    tags: dict[str, str]
    files: dict[str, str]


def payload(record: JobRecord, tags: dict[str, str]) -> Payload:
    """`tags` are added to the record's own, which win. ValueError for a name that is unknown."""
    names.check_record(record)
    names.check_tags(tags)
    merged = tags | record.tags
    merged |= {"job.digest": record.digest, "job.command": command(record)}
    merged["record.schema"] = str(record.schema)
    text = record.to_json()
    merged["record.digest"] = hashlib.sha256(text.encode()).hexdigest()
    verdict = record_verdict(record)
    if verdict is not None:
        merged.setdefault("verdict", verdict)
    merged = {name: shorten(value) for name, value in merged.items() if value is not None}
    merged["mlflow.note.content"] = run_note(record, merged.get("verdict"))
    return Payload(
        status=STATUS[record.status],
        started_ms=int(record.started_s * 1000),
        finished_ms=int(record.finished_s * 1000),
        params={name: shorten(as_text(value)) for name, value in record.params.items()},
        points=_points(record),
        tags=merged,
        files=_files(record, text),
    )


def _points(record: JobRecord) -> list[Point]:
    """Counts bear the time of the start, clocks that of the end.

    So a record that is logged with its counts, and later again with both, gives the same points
    twice, which MLflow keeps once.
    """
    every = [(name, 0, value) for name, value in record.metrics.items()]
    every += [
        (name, step, value) for name, points in record.series.items() for step, value in points
    ]
    sections = list(names.SECTIONS)
    return [
        Point(
            name,
            float(value),
            int(1000 * (record.started_s if _is_count(name) else record.finished_s)),
            step,
        )
        for name, step, value in sorted(every, key=lambda p: sections.index(p[0].partition("/")[0]))
    ]


def _is_count(name: str) -> bool:
    return names.METRICS[name].side == "counts"


def _files(record: JobRecord, text: str) -> dict[str, str]:
    files = {"record.json": text}
    if record.rounds:
        files["rounds.csv"] = as_csv(record.rounds)
    if lines := record.round_lines():
        files["rounds.jsonl"] = lines
    if record.pieces:
        files["pieces.csv"] = as_csv(record.pieces)
    if record.text:
        files["text.txt"] = record.text
    if record.error is not None:
        files["error.txt"] = f"{record.error.type}: {record.error.message}\n\n"
        files["error.txt"] += record.error.traceback
    return files


def sweep_params(summary: Mapping[str, Any]) -> dict[str, str]:
    """The parent run's parameters, as far as a sweep's summary tells them."""
    sweep, jobs = summary.get("sweep") or {}, summary.get("jobs") or []
    told: dict[str, Any] = {key: sweep.get(key) for key in ("command", "jobs", "workers")}
    for name, key in (("drafts", "draft"), ("k", "k"), ("seeds", "seed")):
        values = dict.fromkeys(job[key] for job in jobs if job.get(key) is not None)
        told[name] = ", ".join(str(value) for value in values)
    params = {name: shorten(as_text(value)) for name, value in told.items() if value}
    names.check_names("parameter", params, names.SWEEP_PARAMS)
    return params


def as_csv(rows: list[dict[str, Any]]) -> str:
    """One line a row, columns in the order in which they first occur, lists as JSON."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return out.getvalue()


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | tuple | dict) else value


def as_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def shorten(text: str, longest: int = LONGEST) -> str:
    """`text`, or its beginning with a sign of how much was cut and a hash of the whole."""
    if len(text) <= longest:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    end = f"… ({len(text)} characters, sha256 {digest})"
    return text[: longest - len(end)] + end
