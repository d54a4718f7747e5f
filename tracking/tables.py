"""The table of a sweep: for a terminal, in markdown, and as plain rows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from tracking.headlines import MARK
from tracking.printable import printable
from tracking.rows import Row

_Cell = Callable[[Row], str]
_DATA = (
    "acceptance tokens_per_pass passes tokens draft_length c v o predicted_simple predicted "
    "measured low high verdict pairs null_low null_high keeps_bytes misleads"
).split()
_STYLE = {"faster": "green", "slower": "red", "ambiguous": "yellow"}


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _range(row: Row) -> str:
    if row.low is None or row.high is None:
        return "–"
    return f"{row.low:.2f}-{row.high:.2f}"


def _acceptance(row: Row) -> str:
    """With a mark where a draft that is accepted less is faster; figures stay in line."""
    return _number(row.acceptance, ".3f") + (MARK if row.misleads else " ")


def _predicted(row: Row, value: float | None) -> str:
    """A predicted speedup, and its error against the measured median."""
    if value is None or not row.measured:
        return _number(value, ".2f")
    return f"{value:.2f} {value / row.measured - 1:+4.0%}"


def size(count: float | None) -> str:
    """Bytes in words: "11 kB", "2.9 MB"."""
    if count is None:
        return "–"
    return f"{count / 1e3:.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


# Titles so short that 80 columns are enough.
_COLUMNS: tuple[tuple[str, _Cell], ...] = (
    ("draft", lambda row: row.draft),
    ("k", lambda row: row.length),
    ("accept", lambda row: _acceptance(row)),
    ("t/pass", lambda row: _number(row.tokens_per_pass, ".2f")),
    ("c", lambda row: _number(row.c, ".3f")),
    ("simple", lambda row: _predicted(row, row.predicted_simple)),
    ("full", lambda row: _predicted(row, row.predicted)),
    ("median", lambda row: _number(row.measured, ".2f")),
    ("range", _range),
    ("verdict", lambda row: row.verdict or "–"),
)


# Where there is room for them, after t/pass.
_MORE: tuple[tuple[str, _Cell], ...] = (
    ("passes", lambda row: _number(row.passes, ".1f")),
    ("v", lambda row: _number(row.v, ".2f")),
    ("o", lambda row: _number(row.o, ".2f")),
    ("keeps", lambda row: size(row.keeps_bytes)),
)
_NAMES_OF_MORE = ((), ("v", "o"), ("v", "o", "keeps"), ("passes", "v", "o", "keeps"))
_CLOCKS = ("v", "o", *(name for name, _ in _COLUMNS[4:]))
# The two tables of a page, after draft, k and what else names a row.
_ON_A_PAGE = (
    ("verdict", "median", "range", "accept", "lost"),
    ("t/pass", "c", "simple", "full"),
)
# Where there is not even room for the predictions' errors.
_LESS: dict[str, _Cell] = {
    "simple": lambda row: _number(row.predicted_simple, ".2f"),
    "full": lambda row: _number(row.predicted, ".2f"),
}


def columns(rows: Sequence[Row]) -> list[tuple[str, _Cell]]:
    """Titles and how each is filled; parameters that differ follow k, failures come last."""
    every = [*_COLUMNS[:4], *_MORE, *_COLUMNS[4:]]
    for name in reversed(list(rows[0].split) if rows else []):
        every.insert(2, (name, _split_cell(name)))
    if any(row.failed for row in rows):
        every.append(("lost", lambda row: f"{row.failed}/{row.jobs}" if row.failed else ""))
    return every


def _fitting(rows: Sequence[Row], width: int) -> list[tuple[str, _Cell]]:
    """The columns, without what a terminal of `width` has no room for."""
    every = columns(rows)
    for left_out in _NAMES_OF_MORE:
        fewer = [(name, cell) for name, cell in every if name not in left_out]
        if _width(rows, fewer) <= width:
            return fewer
    plain = [("simple", _LESS["simple"]) if name == "simple" else (name, c) for name, c in fewer]
    if _width(rows, plain) <= width:
        return plain
    bare = [(name, _LESS.get(name, cell)) for name, cell in fewer]
    if _width(rows, bare) <= width:
        return bare
    return [(name, cell) for name, cell in fewer if name not in _LESS]


def _width(rows: Sequence[Row], shown: Sequence[tuple[str, _Cell]]) -> int:
    return sum(max(len(name), *(len(cell(row)) for row in rows)) + 1 for name, cell in shown)


def _split_cell(name: str) -> _Cell:
    return lambda row: row.split[name]


def as_rich(rows: Sequence[Row], title: str | None = None, width: int = 80) -> Table:
    """Fits a terminal of `width` columns, from 80 on."""
    table = Table(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        padding=0,
        show_edge=False,
        pad_edge=False,
    )
    shown = _fitting(rows, width)
    for name, _ in shown:
        left = name in ("draft", "verdict", "range") or (rows and name in rows[0].split)
        table.add_column(escape(printable(name)), justify="left" if left else "right", no_wrap=True)
    for place, row in enumerate(rows):
        cells = [escape(printable(cell(row))) for _, cell in shown]
        style = _STYLE.get(row.verdict or "", "")
        verdict = [name for name, _ in shown].index("verdict")
        cells[verdict] = f"[{style}]{cells[verdict]}[/]" if style else cells[verdict]
        last = place + 1 == len(rows) or rows[place + 1].series != row.series
        table.add_row(*cells, end_section=last)
    return table


def as_markdown(rows: Sequence[Row]) -> str:
    """For a page, which may be narrow: what was measured, and below it what that comes from.

    No table has more columns than MLflow's page can show whole, and no cell is broken.
    """
    every = columns(rows)
    if all(row.measured is None for row in rows):
        return _as_markdown(rows, [(name, cell) for name, cell in every if name not in _CLOCKS])
    named = every[: 2 + len(rows[0].split)]
    cells = dict(every)
    parts = [[(name, cells[name]) for name in part if name in cells] for part in _ON_A_PAGE]
    return "\n\n".join(_as_markdown(rows, [*named, *part]) for part in parts)


def _as_markdown(rows: Sequence[Row], shown: Sequence[tuple[str, _Cell]]) -> str:
    lines = ["| " + " | ".join(name for name, _ in shown) + " |"]
    lines.append(
        "|" + "|".join("---" if name in ("draft", "verdict") else "---:" for name, _ in shown) + "|"
    )
    for row in rows:
        cells = [cell(row).strip().replace(" ", "\N{NO-BREAK SPACE}") for _, cell in shown]
        cells = [
            _unbroken(text) if name == "range" else text
            for (name, _), text in zip(shown, cells, strict=True)
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _unbroken(text: str) -> str:
    return text.replace("-", "\N{NON-BREAKING HYPHEN}")


def as_dicts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Unrounded, for JSON and data frames; parameters that differ are columns of their own."""
    return [
        {"draft": row.draft, "k": row.length if row.auto else row.k, **row.split}
        | {name: getattr(row, name) for name in _DATA}
        | {"jobs": row.jobs, "failed": row.failed}
        for row in rows
    ]
