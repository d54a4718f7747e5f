"""Reads a bundle, after every byte of it has been checked. Nothing is unpacked before."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tracking import bundle, zips
from tracking.bundle import FORMAT, MANIFEST, METRICS, RUNS, SCHEMA, About, BundleRun

_MOST_MANIFEST_BYTES = 2**26
_MOST_TABLE_BYTES = 2**28  # a million points; all of a table is held in memory
_BLOCK_BYTES = 2**20
_UNREADABLE = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, NotImplementedError)


class BundleRefused(ValueError):
    """A file that is not imported. One sentence says which, and why."""


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
        archive, members, manifest = _enter(file, stack)
        with _telling(file):
            hashes = _check_members(archive, members, manifest)
            runs = _runs(archive, members, hashes)
            about = _about(manifest)
            _refuse_newer_records(file, runs, about)
        yield Bundle(file, about, runs, archive, members)


def read_manifest(file: Path) -> dict[str, Any]:
    """What the bundle says of itself. BundleRefused where the file is none, or a newer one."""
    with ExitStack() as stack:
        return _enter(file, stack)[2]


def _enter(
    file: Path, stack: ExitStack
) -> tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo], dict[str, Any]]:
    if not file.is_file():
        raise BundleRefused(f"there is no file {file}")
    raw = stack.enter_context(_open(file))
    if not zipfile.is_zipfile(raw):
        raise BundleRefused(
            f"{file} is no bundle, or was cut off: write it again with `make export`"
        )
    with _telling(file):
        archive = stack.enter_context(zipfile.ZipFile(raw))
        members = zips.members(archive, file.stat().st_size)
        if MANIFEST not in members:
            raise BundleRefused(f"{file} is a zip, but no bundle of specsweep's: see `make export`")
        if members[MANIFEST].file_size > _MOST_MANIFEST_BYTES:
            raise zips.BadZip("has a manifest that is too large")
        manifest = json.loads(archive.read(members[MANIFEST]))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleRefused(f"{file} is a zip, but no bundle of specsweep's: see `make export`")
    _refuse_newer(file, manifest)
    return archive, members, manifest


def _open(file: Path) -> IO[bytes]:
    try:
        return file.open("rb")
    except OSError as error:
        raise BundleRefused(f"{file} cannot be read: {error.strerror}") from error


@contextmanager
def _telling(file: Path) -> Iterator[None]:
    """Whatever is found wrong inside becomes one sentence about the file."""
    try:
        yield
    except BundleRefused:
        raise
    except zips.BadZip as error:
        raise BundleRefused(f"{file} is refused: it {error}; nothing was imported") from error
    except (*_UNREADABLE, ValueError, KeyError, TypeError, RecursionError, OSError) as error:
        told = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise BundleRefused(
            f"{file} is damaged ({told}): copy it again, or write it again with `make export`; "
            "nothing was imported"
        ) from error


def _refuse_newer(file: Path, manifest: dict[str, Any]) -> None:
    schema = manifest.get("schema")
    if type(schema) is not int or schema < 1:
        raise BundleRefused(f"{file} is damaged: its manifest has no schema")
    if schema > SCHEMA:
        raise BundleRefused(
            f"{file} has schema {schema}, and this specsweep reads up to {SCHEMA}: update to "
            f"specsweep {manifest.get('program')} or newer, which wrote it; nothing was imported"
        )


def _refuse_newer_records(file: Path, runs: tuple[BundleRun, ...], about: About) -> None:
    newer = next((told for run in runs if (told := bundle.newer_record(run))), None)
    if newer is not None:
        raise BundleRefused(
            f"{file} holds records of schema {newer}, and this specsweep reads up to "
            f"{bundle.RECORD_SCHEMA}: update to specsweep {about.program} or newer, which wrote "
            "it; nothing was imported"
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
    points = defaultdict(list)
    for row in _rows(archive, members[METRICS]):
        points[row["run"]].append(row)
    files: dict[str, dict[str, str]] = defaultdict(dict)
    for name, sha256 in hashes.items():
        if name not in (RUNS, METRICS):
            artifacts, sweep, job, path = name.split("/", 3)
            files[f"{artifacts}/{sweep}/{job}/"][path] = sha256
    runs: dict[str, BundleRun] = {}
    for row in _rows(archive, members[RUNS]):
        folder = f"{bundle.ARTIFACTS}/{row['sweep']}/{row['job'] or 'sweep'}/"
        run = bundle.run_of(row, points.pop(row["run"], ()), files.pop(folder, {}))
        if run.key in runs:
            raise ValueError(f"run {run.key} is there twice")
        runs[run.key] = run
    for stray in [*points, *files]:
        raise ValueError(f"{stray} belongs to no run")
    for run in runs.values():
        if run.sweep_id not in runs:
            raise ValueError(f"the sweep of run {run.key} is missing")
    return tuple(sorted(runs.values(), key=lambda run: bool(run.job)))


def _rows(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[dict[str, Any]]:
    if info.file_size > _MOST_TABLE_BYTES:
        raise zips.BadZip(f"has a table of {info.file_size:,} bytes: too large")
    for line in archive.read(info).splitlines():
        row = json.loads(line)
        if not isinstance(row, dict):
            raise ValueError(f"{info.filename} has a line that is no row")
        yield row


def _about(manifest: dict[str, Any]) -> About:
    texts = [manifest["exported"], manifest["program"], *manifest["machines"]]
    if not all(isinstance(text, str) and len(text) < 200 for text in texts):
        raise ValueError("its manifest is not what `make export` writes")
    return About(texts[0], texts[1], tuple(texts[2:]))
