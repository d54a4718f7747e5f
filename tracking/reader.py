"""Reads a sweep back: from its folder of outputs, or from MLflow."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.records import JobRecord
from tracking.report import Report
from tracking.runs import KIND_TAG, quote, search
from tracking.store import Store
from tracking.trouble import unavailable

if TYPE_CHECKING:
    from mlflow.entities import Run

OUTPUTS = "outputs"


def from_outputs(root: Path, sweep_id: str | None = None) -> Report | None:
    """A sweep's report from `root`/outputs, the newest without an id; None where there is none.

    ValueError for a record that cannot be read.
    """
    folder = _folder(root / OUTPUTS, sweep_id)
    if folder is None:
        return None
    records = [_record(file) for file in sorted(folder.rglob("record.json"))]
    if not records:
        return None
    sweep: dict[str, Any] = {"id": folder.resolve().name}
    summary = folder / "summary.json"
    if summary.is_file():
        sweep |= json.loads(summary.read_text(encoding="utf-8")).get("sweep", {})
    return Report(in_order(records), sweep)


def _folder(outputs: Path, sweep_id: str | None) -> Path | None:
    if sweep_id is not None:
        for folder in (outputs / sweep_id, Path(sweep_id)):  # by name, or by its path
            if folder.is_dir() and folder.resolve().parent == outputs.resolve():
                return folder.resolve()
        return None
    latest = outputs / "latest"  # a link, or where a system has none, a file with the name
    if latest.is_file():
        latest = outputs / latest.read_text(encoding="utf-8").strip()
    return latest.resolve() if latest.is_dir() else None


def _record(file: Path) -> JobRecord:
    try:
        return JobRecord.from_json(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def from_store(store: Store, sweep_id: str | None = None) -> Report | None:
    """A sweep's report from MLflow, the newest without an id; None where there is none.

    Runs without a `record.json`, those still going on, are left out. StoreUnavailable; ValueError
    for a record that cannot be read.
    """
    with unavailable(store.location):
        parent = find_parent(store, sweep_id)
        if parent is None:
            return None
        own = parent.data.tags["sweep.id"]
        runs = search(store, f"tags.`sweep.id` = '{quote(own)}' AND tags.`{KIND_TAG}` = 'job'")
        records = [record for run in runs if (record := _download(store, run)) is not None]
    description = parent.data.tags.get("sweep.description", "")
    return Report(in_order(records), {"id": own, "description": description})


def find_parent(store: Store, sweep_id: str | None = None) -> Run | None:
    """The sweep's own run, the newest without an id."""
    found = None
    for run in search(store, f"tags.`{KIND_TAG}` = 'sweep'"):
        if sweep_id is None or run.data.tags.get("sweep.id") == sweep_id:
            found = run
    return found


def _download(store: Store, run: Run) -> JobRecord | None:
    names = {item.path for item in store.client.list_artifacts(run.info.run_id)}
    if "record.json" not in names:
        return None
    with tempfile.TemporaryDirectory(prefix="specsweep-") as folder:
        file = Path(store.client.download_artifacts(run.info.run_id, "record.json", folder))
        try:
            return JobRecord.from_json(file.read_text(encoding="utf-8"))
        except ValueError as error:
            own = run.data.tags.get("sweep.id", "")
            raise ValueError(
                f"the file record.json of run {run.info.run_name!r} of sweep {own}: {error}"
            ) from None


def in_order(records: Iterable[JobRecord]) -> list[JobRecord]:
    """As they were begun, whatever order the files or runs came in."""
    return sorted(records, key=lambda record: (record.started_s, record.name))
