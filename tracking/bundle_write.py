"""Writes a bundle: whole, or not at all."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from tracking import zips
from tracking.bundle import FORMAT, MANIFEST, METRICS, RUNS, SCHEMA, About, BundleRun
from tracking.bundle_manifest import NOTHING, BundleRefused, about, read_manifest
from tracking.bundle_row import MOST_RECORD_BYTES, RECORD, check_record, newer_record, run_of
from tracking.bundle_tables import Table, as_line

_DATE = (1980, 1, 1, 0, 0, 0)  # a zip's own dates know no time zone: this bundle's are inside


class BundleWriter:
    """Takes runs one after the other; what they say waits on disk until all are there."""

    def __init__(self, archive: zipfile.ZipFile, replaced: Sequence[str] = ()) -> None:
        self.replaced = replaced
        """The sweeps of the bundle whose place this one takes."""
        self._archive = archive
        self._tables = {name: Table(name) for name in (RUNS, METRICS)}
        self._sweeps: dict[str, dict[str, Any]] = {}
        self._members: dict[str, dict[str, Any]] = {}
        self._folders: set[str] = set()

    def add(self, run: BundleRun, files: Mapping[str, Path]) -> None:
        """A run, and where its files are now, by their path inside it.

        ValueError, and nothing of it is added, where an import would refuse it. TableFull where no
        import would take another run.
        """
        _check(run, files)
        names = {zips.safe_name(run.folder + path): file for path, file in files.items()}
        zips.check_together(names)
        if run.folder.casefold() in self._folders:
            raise ValueError(f"another run is called {run.key} too")
        self._folders.add(run.folder.casefold())
        for name, file in names.items():
            with file.open("rb") as content:
                self._write(name, content)
        self._tables[RUNS].add(run.row())
        for row in run.point_rows():
            self._tables[METRICS].add(row)
        if run.job:
            self._sweeps[run.sweep_id]["jobs"] += 1
        else:
            self._sweeps[run.sweep_id] = _sweep(run)

    def close(self, told: About) -> None:
        """The tables, and the manifest last: a zip without one is not a bundle."""
        for name, table in self._tables.items():
            self._write(name, table.content())
        manifest = {
            "format": FORMAT,
            "schema": SCHEMA,
            **dataclasses.asdict(told),
            "sweeps": [*self._sweeps.values()],
            "members": self._members,
        }
        about(manifest)
        text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
        self._archive.writestr(_info(MANIFEST), text)

    def drop(self) -> None:
        """Lets go of what waits on disk."""
        for table in self._tables.values():
            table.close()

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
    replaced = _check_place(file)
    draft = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with draft.open("wb") as out:
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
                writer = BundleWriter(archive, replaced)
                try:
                    yield writer
                finally:
                    writer.drop()
            out.flush()
            os.fsync(out.fileno())
        _check_readable(draft)
        draft.replace(file)
    finally:
        with suppress(OSError):
            draft.unlink()


def _check(run: BundleRun, files: Mapping[str, Path]) -> None:
    """ValueError where an import would refuse the run, but for a record that is newer than this
    program: whoever wrote it can read it."""
    run_of(run.row(), run.point_rows(), run.files)
    as_line(RUNS, run.row())
    for row in run.point_rows():
        as_line(METRICS, row)
    record = files.get(RECORD) if run.job and not newer_record(run.row()) else None
    if record is not None and record.stat().st_size <= MOST_RECORD_BYTES:
        check_record(record.read_bytes(), run.key)


def _check_readable(draft: Path) -> None:
    """No bundle is left that an import would refuse."""
    try:
        read_manifest(draft)
    except BundleRefused as error:
        told = str(error).replace(f"{draft} is refused: it ", "").removesuffix(NOTHING)
        raise ValueError(f"no import would take this bundle: it {told}") from error


def _check_place(file: Path) -> list[str]:
    """The sweeps of the bundle that is there."""
    if not file.parent.is_dir():
        raise ValueError(f"there is no folder {file.parent} to write {file.name} into")
    if not file.exists():
        return []
    try:
        there = read_manifest(file).get("sweeps", [])
    except BundleRefused:
        raise ValueError(f"{file} is there and is no bundle: choose another name") from None
    sweeps = there if isinstance(there, list) else []
    return [str(one["id"])[:80] for one in sweeps if isinstance(one, dict) and "id" in one]


def _info(name: str) -> zipfile.ZipInfo:
    """The same on every system."""
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3
    info.external_attr = 0o100644 << 16
    return info


def _sweep(parent: BundleRun) -> dict[str, Any]:
    return {
        "id": parent.sweep_id,
        "jobs": 0,
        "machine": parent.tags.get("machine.name", ""),
        "started_ms": parent.started_ms,
        "description": parent.tags.get("sweep.description", ""),
    }
