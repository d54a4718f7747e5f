"""The comparison in a terminal: the table, in as many parts as its columns need, and sentences."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tracking.compare.comparison import Comparison
from tracking.compare.machines import Facts
from tracking.compare.table import MISSING, Entry, entries
from tracking.compare.words import FIRST, SPEEDUP, footnotes, sections
from tracking.printable import printable

_NAMED = {"virtual machine", "Python", "torch", "power", "governor", "MHz"}
"""Facts that need their heading to be understood."""
_STYLE = {"faster": "green", "slower": "red", "ambiguous": "yellow"}
_MARK = {"faster": " >", "slower": " <", "ambiguous": " ~"}  # read without colour, in any encoding
_FLIPS = {"whole": " **", "half": " *", "": ""}
_MARKED = "> faster than plain decoding there, < slower, ~ not told apart from it or from noise."
_GAP = 2  # beside each column
_CELL, _AHEAD = 18 + _GAP, 14 + _GAP  # characters that a column needs


def show(comparison: Comparison, console: Console) -> None:
    """In the order in which it is read: what is compared, counts, flips, timings, order."""
    for facts in (*comparison.facts, *comparison.untimed):
        _say(console, _about(facts))
    told = dict(sections(comparison))
    for heading in FIRST:
        _section(console, heading, told.pop(heading, []))
    rows = entries(comparison)
    if rows:
        _head(console, SPEEDUP)
        for part in _parts(comparison, rows, console.width):
            known = [row for row in rows if any(row.cells[at] != MISSING for at in part)]
            console.print(_table(comparison, known, part))
            _say(console, "")
        for note in (_MARKED, *footnotes(comparison, "**", "*")):
            _say(console, note)
    for heading, sentences in told.items():
        _section(console, heading, sentences)


def _section(console: Console, heading: str, sentences: Sequence[str]) -> None:
    if sentences:
        _head(console, heading)
    for sentence in sentences:
        _say(console, sentence)


def _head(console: Console, heading: str) -> None:
    console.print(f"\n{printable(heading)}", style="bold", markup=False, highlight=False)


def _say(console: Console, text: str) -> None:
    console.print(printable(text), markup=False, highlight=False)


def _about(facts: Facts) -> str:
    about = facts.about
    parts = [f"{name} {about[name]}" if name in _NAMED else about[name] for name in about]
    if facts.others_share is not None:
        share = facts.others_share
        parts.append(f"other programs took {share.low:.0%}-{share.high:.0%} of the CPU")
    if facts.noise is not None:
        parts.append(f"noise {facts.noise[0]:.2f}-{facts.noise[1]:.2f}")
    told = f"{facts.label}: sweep {facts.sweep}, {facts.jobs_told}"
    return f"{told}; {', '.join(parts)}" if parts else told


def _parts(comparison: Comparison, rows: Sequence[Entry], width: int) -> list[range]:
    """The columns side by side, as many at a time as the terminal is wide enough for."""
    room = width - max(len(_name(row)) for row in rows) - _GAP - _AHEAD
    wide = max(1, room // _CELL)
    every = len(comparison.columns)
    return [range(start, min(start + wide, every)) for start in range(0, every, wide)]


def _table(comparison: Comparison, rows: Sequence[Entry], part: range) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("draft", no_wrap=True)
    for place in part:
        table.add_column(Text(printable(comparison.columns[place].label)), min_width=_CELL - _GAP)
    table.add_column("gains most on", min_width=_AHEAD - _GAP)
    for row in rows:
        name = Text(_name(row), "bold" if row.flips else "")
        table.add_row(name, *(_cell(row, at) for at in part), Text(printable(row.ahead)))
    return table


def _name(row: Entry) -> str:
    return printable(row.name) + _FLIPS[row.flips]


def _cell(row: Entry, at: int) -> Text:
    verdict = row.verdicts[at]
    cell = row.cells[at] if row.cells[at] != MISSING else "-"  # which every encoding has
    return Text(cell + _MARK.get(verdict, ""), _STYLE.get(verdict, ""))
