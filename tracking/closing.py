"""What a sweep's own run shows in the end: its files, its description, its state of load. Pure."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracking.load import main_load
from tracking.notes import LONGEST_NOTE, for_page
from tracking.page import sweep_page
from tracking.payload import as_csv
from tracking.runs import NOTE_TAG

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def files(
    sweep_id: str,
    table_markdown: str,
    summary: Mapping[str, Any],
    figures: Mapping[str, Figure | Path],
) -> dict[str, str | bytes]:
    """Artifacts by path. ValueError for a summary with a number that is not finite."""
    found: dict[str, str | bytes] = {
        "summary.md": table_markdown,
        "summary.json": json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False),
    }
    if summary.get("rows"):
        found["summary.csv"] = as_csv(summary["rows"])
    images = {name: _image(figure) for name, figure in figures.items()}
    found |= {f"figures/{name}{suffix}": image for name, (suffix, image) in images.items()}
    pngs = {name: image for name, (suffix, image) in images.items() if suffix == ".png"}
    found["report.html"] = sweep_page(sweep_id, table_markdown, pngs)
    return found


def tags(table_markdown: str, summary: Mapping[str, Any]) -> dict[str, str]:
    """The description, and the state of load of most jobs: what a comparison picks sweeps by."""
    jobs = summary.get("jobs") or []
    state = main_load((job.get("tags") or {}).get("load.state") for job in jobs)
    note = {NOTE_TAG: for_page(table_markdown)[:LONGEST_NOTE]}
    return note | {"load.state": state} if state else note


def _image(figure: Figure | Path) -> tuple[str, bytes]:
    """A file's ending and what is in it."""
    if isinstance(figure, Path):
        return figure.suffix, figure.read_bytes()
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return ".png", out.getvalue()
