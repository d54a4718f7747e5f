"""Two stores and a bundle between them, and what a store holds, read by MLflow's own API."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mlflow import MlflowClient

from pipeline.records import JobRecord
from tests.records_factory import make_failed, make_record
from tests.tracking_store import project
from tracking.__main__ import main
from tracking.recorder import Recorder

OF_A_STORE = {"mlflow.parentRunId", "mlflow.runName"}


def laptop(folder: Path, *sweep_ids: str, machine: str = "attic") -> Path:
    """A project's folder whose store holds sweeps of three jobs, one of which failed."""
    folder.mkdir(parents=True, exist_ok=True)
    project(folder)
    for sweep_id in sweep_ids:
        recorder = sweep_of(folder, sweep_id, machine)
        records = jobs(sweep_id)
        for record in records:
            recorder.log_job(record, {"load.state": "idle"})
        end(recorder, records)
    return folder


def sweep_of(folder: Path, sweep_id: str, machine: str = "attic") -> Recorder:
    recorder = Recorder(root=folder)
    tags = {"machine.id": machine * 2, "machine.name": machine}
    recorder.open_sweep(sweep_id, f"sweep {sweep_id} — 3 jobs, übrigens", tags)
    return recorder


def jobs(sweep_id: str) -> list[JobRecord]:
    failed = dataclasses.replace(make_failed(), started_s=1_760_000_001.0)
    made = [make_record(seed=0), make_record("bigram", 2), failed]
    return [dataclasses.replace(r, digest=f"{r.digest}-{sweep_id}") for r in made]


def end(recorder: Recorder, records: list[JobRecord], status: Any = "FINISHED") -> None:
    report = recorder.report(records, {"id": "x", "command": "python -m pipeline.sweep"})
    metrics = {"sweep/jobs": float(len(records)), "null/ratio_max": 1.05}
    recorder.close_sweep(status, metrics, report.markdown(), report.summary(), report.figures())


def tell(folder: Path, *arguments: str | Path) -> int:
    """`python -m tracking` in that project's folder; the exit code."""
    return main(["--root", str(folder), *map(str, arguments)])


def bundle_of(folder: Path, *arguments: str) -> Path:
    """All of the folder's store, or what is asked for, as a bundle beside it."""
    file = folder.parent / f"{folder.name}.zip"
    assert tell(folder, "export", file, *(arguments or ("--all",))) == 0
    return file


def held(folder: Path, every_tag: bool = False) -> dict[str, dict[str, Any]]:
    """What the store of a folder holds, by sweep and job; fails where a run is there twice.

    Comparisons, which are no sweep's, are left out.
    """
    store = Recorder(root=folder).open()
    api, found = store.client, {}
    runs = list(api.search_runs([store.experiment_id], max_results=5000))
    runs = [run for run in runs if run.data.tags.get("run.kind") != "compare"]
    names = {run.info.run_id: run.info.run_name for run in runs}
    for run in runs:
        tags, info = dict(run.data.tags), run.info
        parent = tags.get("mlflow.parentRunId")
        key = f"{tags['sweep.id']}/{tags.get('job.digest', '')}"
        assert key not in found, f"{key} is there twice"
        if not every_tag:
            tags = {k: v for k, v in tags.items() if k not in OF_A_STORE and "bundle." not in k}
        found[key] = {
            "name": info.run_name,
            "status": info.status,
            "times": (info.start_time, info.end_time),
            "parent": parent and names[parent],
            "params": dict(run.data.params),
            "tags": tags,
            "history": {
                name: sorted(
                    (point.step, point.timestamp, point.value)
                    for point in api.get_metric_history(info.run_id, name)
                )
                for name in run.data.metrics
            },
            "files": _hashes(api, info.run_id),
        }
    return found


def _hashes(api: MlflowClient, run_id: str) -> dict[str, str]:
    if not api.list_artifacts(run_id):
        return {}
    folder = Path(api.download_artifacts(run_id, ""))
    files = (file for file in folder.rglob("*") if file.is_file())
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


def rewritten(
    file: Path,
    change: Callable[[dict[str, bytes]], None] = lambda members: None,
    manifest: Callable[[dict[str, Any]], None] = lambda told: None,
    name: Callable[[str], str] = lambda name: name,
) -> Path:
    """A copy of a bundle with other members or another manifest, its hashes true again."""
    with zipfile.ZipFile(file) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    told = json.loads(members.pop("manifest.json"))
    change(members)
    told["members"] = listed(members)
    manifest(told)
    members["manifest.json"] = json.dumps(told).encode()
    copy = file.with_name(f"rewritten-{file.name}")
    with zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            info = zipfile.ZipInfo(member)
            info.filename = info.orig_filename = name(member)  # also what `zipfile` would mend
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return copy


def listed(members: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    return {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in members.items()
    }


def lines(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
