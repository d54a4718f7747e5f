"""Reads a bundle, after every byte of it has been checked. Nothing is unpacked before."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from pipeline.records import SCHEMA as RECORD_SCHEMA
from tracking import bundle
from tracking.bundle import MANIFEST, METRICS, RUNS, About, BundleRun
from tracking.bundle_manifest import BundleRefused, about, enter, telling, writer_of
from tracking.bundle_row import (
    MOST_RECORD_BYTES,
    RECORD,
    check_record,
    newer_record,
    point_of,
    run_of,
)
from tracking.bundle_tables import read_lines
from tracking.payload import Point

_BLOCK_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that has been found whole. `runs` are the sweeps' own first, then the jobs'."""

    file: Path
    about: About
    runs: tuple[BundleRun, ...]
    _archive: zipfile.ZipFile
    _members: dict[str, zipfile.ZipInfo]

    def open(self, run: BundleRun, path: str) -> IO[bytes]:
        """One of the run's files."""
        return self._archive.open(self._members[run.folder + path])


@contextmanager
def opened(file: Path) -> Iterator[Bundle]:
    """The bundle in `file`, whole and harmless. BundleRefused otherwise."""
    with ExitStack() as stack:
        archive, members, manifest = enter(file, stack)
        with telling(file):
            hashes = _check_members(archive, members, manifest)
            _refuse_newer_records(file, read_lines(archive, members, RUNS), manifest)
            runs = _runs(archive, members, hashes)
            _check_records(archive, members, runs)
            told = about(manifest)
        try:
            yield Bundle(file, told, runs, archive, members)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise BundleRefused(
                f"{file} was whole, and was changed while it was read ({error}): import it again"
            ) from error


def _refuse_newer_records(
    file: Path, rows: Iterator[dict[str, Any]], manifest: dict[str, Any]
) -> None:
    newer = next((told for row in rows if (told := newer_record(row))), None)
    if newer is not None:
        raise BundleRefused(
            f"{file} holds records of schema {newer}, and this specsweep reads up to "
            f"{RECORD_SCHEMA}: update to {writer_of(manifest)}; nothing was imported"
        )


def _check_members(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], manifest: dict[str, Any]
) -> dict[str, str]:
    """The SHA-256 of every member, all of them as the manifest says."""
    listed: dict[str, Any] = manifest["members"]
    for name in [*listed, RUNS, METRICS]:
        if name not in members or name not in listed:
            raise ValueError(f"{name} is missing")
    for name, info in members.items():
        if name == MANIFEST:
            continue
        if name not in listed:
            raise ValueError(f"{name} is not in its manifest")
        if listed[name]["bytes"] != info.file_size:
            raise ValueError(f"{name} has another size than when it was written")
        if _sha256(archive, info) != listed[name]["sha256"]:
            raise ValueError(f"{name} is not as it was written")
    return {name: str(told["sha256"]) for name, told in listed.items()}


def _sha256(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    hashed = hashlib.sha256()
    with archive.open(info) as content:
        while block := content.read(_BLOCK_BYTES):
            hashed.update(block)
    return hashed.hexdigest()


def _runs(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], hashes: dict[str, str]
) -> tuple[BundleRun, ...]:
    files = _files(hashes)
    points: dict[str, list[Point]] = {}
    runs: dict[str, BundleRun] = {}
    for row in read_lines(archive, members, RUNS):
        folder = f"{bundle.ARTIFACTS}/{row['sweep']}/{row['job'] or 'sweep'}/"
        run = run_of(row, (), files.pop(folder, {}))
        if run.key in runs:
            raise ValueError(f"run {run.key} is there twice")
        runs[run.key], points[run.key] = run, []
    for row in read_lines(archive, members, METRICS):
        if row["run"] not in points:
            raise ValueError(f"a metric of {row['run'][:80]} belongs to no run")
        points[row["run"]].append(point_of(row, row["run"]))
    for stray in files:
        raise ValueError(f"{stray} belongs to no run")
    for run in runs.values():
        if run.sweep_id not in runs:
            raise ValueError(f"the sweep of run {run.key} is missing")
    whole = [replace(run, points=tuple(points.pop(run.key))) for run in runs.values()]
    return tuple(sorted(whole, key=lambda run: bool(run.job)))


def _check_records(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], runs: Iterable[BundleRun]
) -> None:
    """ValueError where a job's record is none."""
    for run in runs:
        info = members.get(run.folder + RECORD)
        if run.job and info is not None and info.file_size <= MOST_RECORD_BYTES:
            check_record(archive.read(info), run.key)


def _files(hashes: dict[str, str]) -> dict[str, dict[str, str]]:
    """The hashes of a run's files by their path inside it, by the run's folder."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for name, sha256 in hashes.items():
        if name in (RUNS, METRICS):
            continue
        parts = name.split("/", 3)
        if len(parts) < 4:
            raise ValueError(f"{name} belongs to no run")
        found["/".join(parts[:3]) + "/"][parts[3]] = sha256
    return found
