"""A recorder that keeps its runs in one file, read back by the tests. It can be made to refuse."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from pipeline.records import JobRecord


@dataclass
class Report:
    records: Sequence[JobRecord]
    sweep: Mapping[str, Any]

    def print(self, console: Console) -> None:
        console.print("the table")
        for record in self.records:
            if record.error:
                words = shlex.join(record.overrides)
                console.print(f"{record.name}: python -m pipeline.sweep {words}", soft_wrap=True)

    def markdown(self) -> str:
        return "the table"

    def figures(self) -> dict[str, Any]:
        return {}

    def summary(self) -> dict[str, Any]:
        return {"sweep": dict(self.sweep), "jobs": [_job(record) for record in self.records]}


def _job(record: JobRecord) -> dict[str, Any]:
    error = record.error
    return {
        "name": record.name,
        **{key: record.params.get(key) for key in ("draft", "k", "seed", "verify", "proposal")},
        "status": record.status,
        "error": f"{error.type}: {error.message}" if error else None,
        "metrics": record.metrics,
        "tags": record.tags,
    }


class Meter:
    def start(self) -> None:
        pass

    def stop(self) -> tuple[dict[str, float], dict[str, str]]:
        return {"load/others_share": 0.25}, {"load.state": "busy"}


class FileRecorder:
    """Runs by digest in ROOT/runs.json; while ROOT/refuse exists, nothing is taken."""

    def __init__(self, uri: str | None = None, root: str = ".", **options: Any) -> None:
        self._file, self._refuse = Path(root) / "runs.json", Path(root) / "refuse"
        self._uri = uri

    def check(self) -> None:
        if self._uri and self._uri.startswith("file:"):
            raise ValueError(f"the tracking address {self._uri!r} is a folder")

    def machine(self) -> dict[str, str]:
        name = os.environ.get("FAKE_MACHINE", "attic")
        return {"machine.id": f"id-of-{name}", "machine.name": name}

    def open_sweep(self, sweep_id: str, description: str, tags: Mapping[str, str]) -> None:
        runs = self._read()
        entry = runs.setdefault(sweep_id, {"jobs": {}, "logged": []})
        entry |= {"status": "RUNNING", "tags": dict(tags)}
        self._sweep_id = sweep_id
        self._write(runs)

    def start_job(
        self, digest: str, name: str, params: Mapping[str, Any], tags: Mapping[str, str]
    ) -> None:
        runs = self._read()
        if runs[self._sweep_id]["jobs"].get(digest, {}).get("status") != "FINISHED":
            runs[self._sweep_id]["jobs"][digest] = {"name": name, "status": "RUNNING"}
        self._write(runs)

    def log_job(self, record: JobRecord) -> None:
        runs = self._read()
        status = {"done": "FINISHED", "failed": "FAILED"}[record.status]
        known = runs[self._sweep_id]["jobs"].get(record.digest, {})
        if known.get("status") != "FINISHED":
            runs[self._sweep_id]["logged"].append(record.name)
        runs[self._sweep_id]["jobs"][record.digest] = {
            "name": record.name,
            "status": status,
            "error": record.error.message if record.error else None,
        }
        self._write(runs)

    def amend_job(self, record: JobRecord) -> None:
        runs = self._read()
        runs[self._sweep_id]["jobs"][record.digest]["amended"] = record.metrics
        self._write(runs)

    def close_sweep(
        self,
        status: str,
        metrics: Mapping[str, float],
        table_markdown: str,
        summary: Mapping[str, Any],
        figures: Mapping[str, Any],
    ) -> None:
        runs = self._read()
        runs[self._sweep_id] |= {"status": status, "metrics": dict(metrics)}
        for job in runs[self._sweep_id]["jobs"].values():
            if job["status"] == "RUNNING":
                job["status"] = "KILLED"
        self._write(runs)

    def meter(self) -> Meter:
        return Meter()

    def report(self, records: Sequence[JobRecord], sweep: Mapping[str, Any]) -> Report:
        return Report(records, sweep)

    def ui_command(self, sweep_id: str) -> str:
        return f"show {sweep_id}"

    def _read(self) -> dict[str, Any]:
        if self._refuse.exists():
            raise ConnectionError("the store is away")
        if not self._file.exists():
            return {}
        runs: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8"))
        return runs

    def _write(self, runs: dict[str, Any]) -> None:
        draft = self._file.with_suffix(".new")
        draft.write_text(json.dumps(runs), encoding="utf-8")
        draft.replace(self._file)
