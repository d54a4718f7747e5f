"""All that a sweep has to show: table, conclusion, what failed, figures."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich.console import Console

from pipeline.records import JobRecord
from tracking import advice, gap, headlines, recommend, reference, tables
from tracking.conclusion import conclusion
from tracking.notes import command
from tracking.printable import printable
from tracking.rows import Row, noise, rows
from tracking.verdict import ENOUGH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHARE = "load/others_share"
_DRIFT = 0.05  # a null whose whole range is farther from 1 than this is no accident


@dataclass(frozen=True)
class Report:
    """Made from a sweep's records; `sweep` says of it what it likes: `id`, `description`, …"""

    records: Sequence[JobRecord]
    sweep: Mapping[str, Any]

    @cached_property
    def rows(self) -> list[Row]:
        found = rows(self.records)
        misleading = headlines.marked(found, self.sweep.get("headlines") or {})
        return [replace(row, misleads=row.name in misleading) for row in found]

    @property
    def sentence(self) -> str:
        """The conclusion, computed."""
        return conclusion(self.rows)

    @property
    def findings(self) -> list[reference.Finding]:
        return reference.findings(self.rows)

    @property
    def reference(self) -> str:
        """What holds of the published table, and what differs."""
        return reference.sentence(self.findings)

    @property
    def headlines(self) -> str:
        """The pairs of drafts of which the one that is accepted more is slower."""
        return headlines.sentence(self.sweep.get("headlines") or {})

    @property
    def prediction(self) -> str:
        """How good the predictions are, and what the simple one lacks."""
        return gap.sentence(self.rows)

    @property
    def advice(self) -> Mapping[str, Any]:
        """Best k and break-evens of each draft, as the pipeline computed them."""
        return self.sweep.get("advice") or {}

    @property
    def advises(self) -> str:
        """What to do, in words; empty where nothing was timed."""
        return recommend.sentence(self.advice, self.rows)

    @property
    def noise(self) -> str:
        """What plain decoding gives against itself; empty where nothing was timed."""
        if all(row.measured is None for row in self.rows):
            return ""
        null = self.sweep.get("null") or {}
        ends = [null[f"null/ratio_{end}"] for end in ("min", "max") if f"null/ratio_{end}" in null]
        bounds = noise(self.rows) or ((min(ends), max(ends)) if ends else None)
        if bounds is None:
            return ""
        told = f"Noise: plain decoding against itself {bounds[0]:.2f}-{bounds[1]:.2f}"
        off = max(bounds[0] - 1, 1 - bounds[1])
        if off > _DRIFT:
            return f"{told}: the machine's speed changed meanwhile; rely on no verdict, run again."
        told += "; a verdict has to clear it" + (", and 1." if off > 0 else ".")
        return told + self._few

    @property
    def _few(self) -> str:
        """That ranges of few pairs are luck, where they are; else empty."""
        few = [row.pairs for row in self.rows if 0 < row.pairs < ENOUGH]
        if not few:
            return ""
        least = min(few)
        pairs, lie = ("1 pair", "lies") if least == 1 else (f"{least} pairs", "lie")
        return (
            f" Of noise alone {pairs} {lie} on one side of 1 in {2 * 0.5**least:.0%} of cases: "
            f"a range of fewer than {ENOUGH} is no verdict to rely on (timing.pairs={ENOUGH})."
        )

    @property
    def load(self) -> str:
        """A warning where other programs used the machine meanwhile; else empty."""
        known = [record for record in self.records if "load.state" in record.tags]
        busy = [record for record in known if record.tags["load.state"] == "busy"]
        if not busy:
            return ""
        shares = [r.metrics[_SHARE] for r in busy if _SHARE in r.metrics]
        most = f" (other programs took up to {max(shares):.0%} of it)" if shares else ""
        of = f"{len(busy)} of {len(known)} jobs {'was' if len(busy) == 1 else 'were'}"
        return (
            f"{of} timed on a busy machine{most}: the ranges say so; "
            "run again idle for narrower ones."
        )

    @property
    def exactness(self) -> str:
        """The Holm-corrected statement on the distribution checks, and who is near a tie."""
        told = str(self.sweep.get("exactness") or "")
        near = [r.name for r in self.records if r.tags.get("exactness") == "near-tie"]
        if near:
            told += f"{'; ' if told else ''}near-tie: {', '.join(near)}"
        return told

    @property
    def failures(self) -> list[JobRecord]:
        return [record for record in self.records if record.status in ("failed", "killed")]

    def figures(self) -> dict[str, Figure]:
        """By name; loads matplotlib."""
        from tracking.figures import figures
        from tracking.maps import break_even, shares

        more = {"shares": shares(self.rows), "break_even": break_even(self.advice)}
        return figures(self.rows) | {name: drawn for name, drawn in more.items() if drawn}

    def print(self, console: Console) -> None:
        """Table, conclusion, exactness, and each failure with the command that runs it again."""
        if any(row.tokens_per_pass is not None for row in self.rows):
            console.print(tables.as_rich(self.rows, width=console.width))
        for text in (self.noise, self.load, self.sentence, self.headlines, self.prediction):
            _print(console, text)
        if self.advice:
            console.print()
            console.print(advice.as_rich(self.advice))
            _print(console, f"({advice.LEGEND})")
        for text in (self.advises, self.reference):
            _print(console, text)
        wrong = any(r.tags.get("exactness") == "REJECTED" for r in self.records)
        _print(console, self.exactness, style="bold red" if wrong else None)
        for told, commands in self._failures_by_cause().items():
            _print(console, f"\n{told}", style="red")
            for line in commands:
                _print(console, f"  {line}", soft_wrap=True)

    def markdown(self) -> str:
        """For MLflow's description of the sweep, and for a file."""
        parts = [f"**{self.sentence}**", self.advises, self.headlines]
        parts += [self.reference, self.exactness, tables.as_markdown(self.rows)]
        parts += [self.noise, self.load, _LEGEND, self.prediction]
        if self.advice:
            parts += [advice.as_markdown(self.advice), advice.LEGEND]
        for told, commands in self._failures_by_cause().items():
            parts.append("\n".join([f"{told}", "", *(f"- `{line}`" for line in commands)]))
        about = [str(self.sweep[key]) for key in ("id", "description") if self.sweep.get(key)]
        if about:
            parts.append(f"Sweep {': '.join(about)}")
        return "\n\n".join(part for part in parts if part) + "\n"

    def _failures_by_cause(self) -> dict[str, list[str]]:
        """What happened, in a line, and the commands that run those jobs again."""
        causes: dict[str, list[JobRecord]] = {}
        for record in self.failures:
            causes.setdefault(cause(record), []).append(record)
        return {
            f"{group[0].name if len(group) == 1 else f'{len(group)} jobs'} {told}": [
                command(record) for record in group
            ]
            for told, group in causes.items()
        }

    def summary(self) -> dict[str, Any]:
        """What `summary.json` holds: {"sweep", "jobs", "rows", "conclusion", "reference"}."""
        return {
            "sweep": dict(self.sweep),
            "conclusion": self.sentence,
            "reference": [
                {"claim": f.claim, "holds": f.holds, "detail": f.detail} for f in self.findings
            ],
            "rows": tables.as_dicts(self.rows),
            "jobs": [_job(record) for record in self.records],
        }


def _print(console: Console, text: str, **how: Any) -> None:
    """Text that may have come with a bundle: a terminal shows it, and obeys nothing in it."""
    if text:
        shown = "\n".join(map(printable, text.split("\n")))
        console.print(shown, markup=False, highlight=False, **how)


def cause(record: JobRecord) -> str:
    """Why a job has no figures, in one line."""
    if record.error is None:
        return "stopped"
    first = next(iter(record.error.message.splitlines()), "")
    return f"failed: {record.error.type}: {first}"


def _job(record: JobRecord) -> dict[str, Any]:
    error = record.error
    keys = ("draft", "k", "seed", "verify", "proposal")
    params = {name: record.params.get(name) for name in keys}
    started = datetime.datetime.fromtimestamp(record.started_s, datetime.UTC)
    return {"name": record.name, **params} | {
        "status": record.status,
        "error": f"{error.type}: {error.message}" if error else None,
        "command": command(record),
        "digest": record.digest,
        "started": started.isoformat(timespec="seconds"),
        "metrics": dict(record.metrics),
        "tags": dict(record.tags),
    }


_LEGEND = """\
*accept* (acceptance) and *t/pass* (tokens per pass) are exact counts. *c* is the time of a drafted
token in target passes; that of the verify pass is *v*, that of the rest of a round *o*: both are in
`summary.csv`. Two predicted speedups: *simple* is t/pass / (1 + k c), *full*, with verification and
loop counted in, t/pass / (v + k c + o). Measured: *median* of plain time over speculative time over
all pairs of all seeds, *range* the smallest and the largest. The verdict is *ambiguous* where the
range overlaps 1 or what plain decoding gives against itself. An acceptance with *!* misleads: a
draft that is accepted less is faster at that k."""
