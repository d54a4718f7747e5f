"""A comparison as a run of its own in MLflow, so that it is found where people browse."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tracking import names
from tracking.compare.comparison import Comparison
from tracking.compare.data import as_data
from tracking.compare.page import as_html, draw
from tracking.compare.table import as_markdown, tidy
from tracking.compare.words import FIRST, SPEEDUP, footnotes, sections
from tracking.notes import LONGEST_NOTE, for_page
from tracking.payload import Point, as_csv, shorten
from tracking.runs import KIND_TAG, NOTE_TAG, SweepRuns, search
from tracking.store import Store

_KIND = "compare"


@dataclass(frozen=True)
class Output:
    """What there is of a comparison beside its run; made once."""

    html: str
    data: str
    files: Mapping[str, str | bytes]

    @property
    def ascii_data(self) -> str:
        """The same data for a stream of any encoding."""
        return json.dumps(json.loads(self.data), indent=1)

    @classmethod
    def of(cls, comparison: Comparison) -> Output:
        drawn = draw(comparison)
        html = as_html(comparison, drawn)
        data = json.dumps(as_data(comparison), indent=1, ensure_ascii=False, allow_nan=False)
        files: dict[str, str | bytes] = {"compare.html": html, "compare.json": data}
        if rows := tidy(comparison):
            files["compare.csv"] = as_csv(rows)
        files |= {f"figures/{name}.png": png for name, png in drawn.items()}
        return cls(html, data, files)


def log(store: Store, comparison: Comparison, output: Output) -> str:
    """The run's id. The same comparison again is the same run. Raises what MLflow raises."""
    found = list(search(store, f"tags.`compare.digest` = '{comparison.digest}'"))
    tags = {
        KIND_TAG: _KIND,
        "compare.digest": comparison.digest,
        "compare.sweeps": shorten(", ".join(sweep.id for sweep in comparison.sweeps)),
        NOTE_TAG: for_page(as_note(comparison))[:LONGEST_NOTE],
        "mlflow.source.name": "tracking compare",
    }
    if found:
        run = found[-1]
    else:
        run = store.client.create_run(store.experiment_id, None, tags, comparison.name)
    run_id = str(run.info.run_id)
    metrics = {
        "compare/matched": len(comparison.counts.matches),
        "compare/agreeing": comparison.counts.agreeing,
        "compare/flips": sum(flip.whole for flip in comparison.flips),
    }
    names.check_metrics(metrics)
    started_ms = int(run.info.start_time)
    runs = SweepRuns(store, run, {})
    points = [Point(name, float(value), started_ms, 0) for name, value in metrics.items()]
    runs.log(run_id, points, tags=tags)
    runs.log_files(run_id, output.files)
    runs.finish("FINISHED", int(time.time() * 1000))
    return run_id


def as_note(comparison: Comparison) -> str:
    """Markdown for the run's description: what flips and agrees, the table, the rest."""
    parts = []
    for heading, sentences in sections(comparison):
        parts.append(f"**{heading}**")
        parts.append("\n".join(f"- {_plain(sentence)}" for sentence in sentences))
    if comparison.columns:
        table = [f"**{SPEEDUP}**", as_markdown(comparison)]
        notes = footnotes(comparison, "Bold lines flip", "Slanted lines flip by half")
        above = 2 * sum(heading in FIRST[:2] for heading, _ in sections(comparison))
        parts[above:above] = [*table, " ".join(map(_plain, notes))]
    return "\n\n".join(parts)


def _plain(text: str) -> str:
    """Without what markdown would take for its own."""
    return text.replace("~", "≈").replace("*", "\\*").replace("_", "\\_")
