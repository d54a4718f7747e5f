"""Writes a bundle: whole, or not at all."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import secrets
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tracking import zips
from tracking.bundle import FORMAT, MANIFEST, METRICS, RUNS, SCHEMA, About, BundleRun
from tracking.bundle_manifest import BundleRefused, about, read_manifest
from tracking.bundle_row import run_of

_DATE = (1980, 1, 1, 0, 0, 0)  # a zip's own dates know no time zone: this bundle's are inside


class BundleWriter:
    """Takes runs one after the other; what they say is written when all are there."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._runs: list[BundleRun] = []
        self._members: dict[str, dict[str, Any]] = {}
        self._folders: set[str] = set()

    def add(self, run: BundleRun, files: Mapping[str, Path]) -> None:
        """A run, and where its files are now, by their path inside it.

        ValueError, and nothing of it is added, where an import would refuse it.
        """
        run_of(run.row(), run.point_rows(), run.files)
        names = {zips.safe_name(run.folder + path): file for path, file in files.items()}
        zips.check_together(names)
        if run.folder.casefold() in self._folders:
            raise ValueError(f"another run is called {run.key} too")
        self._folders.add(run.folder.casefold())
        for name, file in names.items():
            with file.open("rb") as content:
                self._write(name, content)
        self._runs.append(run)

    def close(self, told: About) -> None:
        """The tables, and the manifest last: a zip without one is not a bundle."""
        self._write_rows(RUNS, (run.row() for run in self._runs))
        self._write_rows(METRICS, (row for run in self._runs for row in run.point_rows()))
        manifest = {
            "format": FORMAT,
            "schema": SCHEMA,
            **dataclasses.asdict(told),
            "sweeps": [_sweep(run, self._runs) for run in self._runs if not run.job],
            "members": self._members,
        }
        about(manifest)
        text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
        self._archive.writestr(_info(MANIFEST), text)

    def _write_rows(self, name: str, rows: Iterable[dict[str, Any]]) -> None:
        with self._member(name) as write:
            for row in rows:
                write(json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n")

    def _write(self, name: str, content: IO[bytes]) -> None:
        with self._member(name) as write:
            while block := content.read(2**20):
                write(block)

    @contextmanager
    def _member(self, name: str) -> Iterator[Any]:
        """Writes one member, and notes what its bytes are."""
        hashed, size = hashlib.sha256(), 0
        with self._archive.open(_info(name), "w", force_zip64=True) as out:

            def write(block: bytes) -> None:
                nonlocal size
                hashed.update(block)
                size += len(block)
                out.write(block)

            yield write
        self._members[name] = {"sha256": hashed.hexdigest(), "bytes": size}


@contextmanager
def writing(file: Path) -> Iterator[BundleWriter]:
    """A bundle that takes the place of `file` when the block has ended well.

    ValueError where `file` is something else than an older bundle.
    """
    _check_place(file)
    draft = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with draft.open("wb") as out:
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
                yield BundleWriter(archive)
            out.flush()
            os.fsync(out.fileno())
        _check_readable(draft)
        draft.replace(file)
    finally:
        with suppress(OSError):
            draft.unlink()


def _check_readable(draft: Path) -> None:
    """No bundle is left that an import would refuse."""
    try:
        with zipfile.ZipFile(draft) as archive:
            zips.members(archive, draft.stat().st_size)
    except zips.BadZip as error:
        raise ValueError(f"no import would take this bundle: it {error}") from error


def _check_place(file: Path) -> None:
    if not file.parent.is_dir():
        raise ValueError(f"there is no folder {file.parent} to write {file.name} into")
    if not file.exists():
        return
    try:
        read_manifest(file)
    except BundleRefused:
        raise ValueError(f"{file} is there and is no bundle: choose another name") from None


def _info(name: str) -> zipfile.ZipInfo:
    """The same on every system."""
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3
    info.external_attr = 0o100644 << 16
    return info


def _sweep(parent: BundleRun, runs: list[BundleRun]) -> dict[str, Any]:
    jobs = sum(run.sweep_id == parent.sweep_id for run in runs) - 1
    return {
        "id": parent.sweep_id,
        "jobs": jobs,
        "machine": parent.tags.get("machine.name", ""),
        "started_ms": parent.started_ms,
        "description": parent.tags.get("sweep.description", ""),
    }
