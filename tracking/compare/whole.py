"""What a job's own file adds to its run: the text and the rounds. Pure.

The file may have come from anywhere: what is not as it should be is left out, and the run's own
figures stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.records import JobRecord


def with_file(light: JobRecord, text: str) -> JobRecord:
    """`light` with the text and rounds that `text`, a record.json, tells. ValueError where it is
    no record."""
    told = JobRecord.from_json(text)
    return replace(
        light,
        text=told.text if isinstance(told.text, str) else "",
        rounds=told.rounds if all(map(_is_round, told.rounds)) else [],
    )


def _is_round(row: Any) -> bool:
    return (
        isinstance(row, Mapping)
        and all(isinstance(row.get(name), int) for name in ("start", "emitted"))
        and isinstance(row.get("margin", 0.0), int | float | None)
    )
