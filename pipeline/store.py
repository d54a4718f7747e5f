"""outputs/SWEEP: what a sweep found, on disk, written whole or not at all.

    plan.json               the jobs, and what it takes to run them again
    jobs/NAME-DIGEST/record.json     what one job found
    jobs/NAME-DIGEST/rounds.jsonl    its timed rounds, for `python -m pipeline.summary A B`
    summary.json            all of them, for scripts
    nulls.json              each kind of baseline timed against itself
outputs/latest leads to the newest sweep: a link, or where there are none a file with its name.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import filelock

from pipeline.records import JobRecord

LATEST = "latest"


def write_whole(path: Path, text: str) -> None:
    """Replace `path` by `text` so that a reader, or a crash, meets the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


class Store:
    """The folder of one sweep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def sweep_id(self) -> str:
        return self.folder.name

    @classmethod
    def create(cls, outputs: Path) -> Store:
        """A new folder, named by the time of day and four random digits."""
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        folder = outputs / name
        folder.mkdir(parents=True)
        return cls(folder)

    @classmethod
    def find(cls, outputs: Path, sweep: str | None = None) -> Store:
        """The sweep of that name or path, or the newest. ValueError where there is none."""
        if sweep is not None:
            for folder in (outputs / sweep, Path(sweep)):
                if (folder / "plan.json").is_file():
                    return cls(folder.resolve())
            known = sorted(_every(outputs))
            there = f"there are {', '.join(known[-5:])}" if known else "there are none yet"
            raise ValueError(f"no sweep {sweep} in {outputs}: {there}")
        latest = _latest(outputs)
        if latest is None:
            raise ValueError(f"there is no sweep in {outputs} yet: `make sweep` starts one")
        return cls(latest)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Only one process works on a sweep. ValueError where another one does."""
        lock = filelock.FileLock(self.folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            raise ValueError(
                f"sweep {self.sweep_id} is being run by another process: wait for it, or end it"
            ) from None
        for draft in self.folder.rglob(".*.json*.*"):  # left by one that was killed while writing
            draft.unlink()
        try:
            yield
        finally:
            lock.release()

    def write_plan(self, plan: Mapping[str, Any]) -> None:
        self._write("plan.json", plan)

    def read_plan(self) -> dict[str, Any]:
        """ValueError for a plan that cannot be read."""
        return self._read("plan.json")

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        self._write("summary.json", summary)

    def write_nulls(self, nulls: Mapping[str, Mapping[str, float]]) -> None:
        self._write("nulls.json", nulls)

    def read_nulls(self) -> dict[str, dict[str, float]]:
        return self._read("nulls.json") if (self.folder / "nulls.json").is_file() else {}

    def write_record(self, record: JobRecord) -> None:
        slug = re.sub(r"[^A-Za-z0-9.=-]+", "-", record.name).strip("-.")[:80]
        folder = self.folder / "jobs" / f"{slug}-{record.digest[:12]}"
        if lines := record.round_lines():
            write_whole(folder / "rounds.jsonl", lines)
        write_whole(folder / "record.json", record.to_json())

    def records(self) -> dict[str, JobRecord]:
        """Every record by its digest. ValueError names the file of one that cannot be read."""
        found = {}
        for path in sorted(self.folder.glob("jobs/*/record.json")):
            try:
                record = JobRecord.from_json(path.read_text(encoding="utf-8"))
            except (ValueError, KeyError, TypeError) as error:
                told = f"{path} cannot be read ({error}): delete it to run the job again"
                raise ValueError(told) from error
            found[record.digest] = record
        return found

    def make_latest(self) -> None:
        """Point outputs/latest here."""
        link = self.folder.parent / LATEST
        draft = link.with_name(f".{LATEST}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            draft.symlink_to(self.folder.name, target_is_directory=True)
            draft.replace(link)
        except OSError:  # a system, or a user of one, that may not make links
            with suppress(OSError):
                draft.unlink()
            write_whole(link, self.folder.name)

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
        write_whole(self.folder / name, text)

    def _read(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from error
        if not isinstance(value, dict):
            raise ValueError(f"{path} is not what a sweep wrote")
        return value


def _every(outputs: Path) -> list[str]:
    """The names of its sweeps; `latest` is only another name of one."""
    folders = [plan.parent for plan in outputs.glob("*/plan.json")]
    return [folder.name for folder in folders if folder.name != LATEST]


def _latest(outputs: Path) -> Path | None:
    link = outputs / LATEST
    folder = link.resolve()
    if link.is_file():
        folder = outputs / link.read_text(encoding="utf-8").strip()
    return folder if (folder / "plan.json").is_file() else None
