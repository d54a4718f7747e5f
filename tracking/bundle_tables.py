"""The tables of a bundle, line by line: no more of one is in memory than the line that is read.

What import takes and what export writes are bounded by the same figures.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator
from typing import IO, Any

from tracking import zips
from tracking.bundle import METRICS, RUNS
from tracking.bundle_json import parsed

MOST_BYTES = 2**28
MOST_LINES = {RUNS: 50_000, METRICS: 2_500_000}
LONGEST_LINE_BYTES = {RUNS: 6_000_000, METRICS: 2**12}  # all that MLflow takes, and no more


class TableFull(ValueError):
    """More runs, or points of metrics, than an import takes."""


class Table:
    """The lines of a table on their way into a bundle: on disk until all of them are there."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._file = tempfile.TemporaryFile()
        self._lines = self._bytes = 0

    def add(self, row: dict[str, Any]) -> None:
        """TableFull, or ValueError for a line that is too long."""
        line = as_line(self.name, row)
        self._lines, self._bytes = self._lines + 1, self._bytes + len(line)
        if self._lines > MOST_LINES[self.name] or self._bytes > MOST_BYTES:
            raise TableFull(
                f"these sweeps have more in {self.name} than an import takes: export them one by "
                "one, with --sweep ID"
            )
        self._file.write(line)

    def content(self) -> IO[bytes]:
        """All lines, from the first on."""
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        self._file.close()


def as_line(name: str, row: dict[str, Any]) -> bytes:
    """A row as it stands in the table. ValueError where import would find it too long."""
    line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    if len(line) > LONGEST_LINE_BYTES[name]:
        raise ValueError(f"run {row['run']} has a line of {len(line):,} bytes in {name}: too long")
    return line


def read_lines(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], name: str
) -> Iterator[dict[str, Any]]:
    """The rows of a table, each with the key of its run. BadZip, or ValueError."""
    info, longest = members[name], LONGEST_LINE_BYTES[name]
    if info.file_size > MOST_BYTES:
        raise zips.BadZip(f"has a table of {info.file_size:,} bytes: too large")
    with archive.open(info) as content:
        number = 0
        while line := content.readline(longest + 1):
            number += 1
            if len(line) > longest:
                raise zips.BadZip(f"has a line in {name} that is too long")
            if number > MOST_LINES[name]:
                raise zips.BadZip(f"has more than {MOST_LINES[name]:,} lines in {name}")
            row = parsed(line)
            if not isinstance(row, dict) or not isinstance(row.get("run"), str):
                raise ValueError(f"{name} has a line that is no row of a run")
            yield row
