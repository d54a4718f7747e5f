"""What a sweep advises: for each draft the best k, and what would make it pay. Pure.

It comes from a sweep's summary: {"drafts": [{"draft", "setting", "alpha", "best_k", "expected",
"pays", "memory_bytes", "at": [{"k", "needs", "c_limit", …}]}], "map": {"k", "c", "needs"}}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from tracking.tables import size

Found = Mapping[str, Any]
_Cell = Callable[[Found], str]


def columns(found: Found) -> list[tuple[str, _Cell]]:
    """Titles and cells of a table with a line a draft."""
    lengths = sorted({one["k"] for draft in drafts_of(found) for one in draft["at"]})
    needs = [(f"k={k}", _needs(k)) for k in lengths]
    return [
        ("draft", name_of),
        ("keeps", lambda draft: size(draft["memory_bytes"])),
        ("alpha", lambda draft: f"{draft['alpha']:.3f}"),
        ("best k", lambda draft: str(draft["best_k"]) if draft["pays"] else "none"),
        ("expected", _expected),
        *needs,
        ("c up to", _c_limit),
    ]


def as_rich(found: Found) -> Table:
    """ "needs" spans the columns k=…: the acceptance from which that k pays."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
    shown = columns(found)
    for name, _ in shown:
        table.add_column(name, justify="left" if name == "draft" else "right", no_wrap=True)
    for draft in drafts_of(found):
        style = "green" if draft["pays"] else None
        table.add_row(*(cell(draft) for _, cell in shown), style=style)
    return table


def as_markdown(found: Found) -> str:
    shown = columns(found)
    lines = ["| " + " | ".join(name for name, _ in shown) + " |", "|---" * len(shown) + "|"]
    lines += [
        "| " + " | ".join(_unbroken(cell(draft)) for _, cell in shown) + " |"
        for draft in drafts_of(found)
    ]
    return "\n".join(lines)


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


LEGEND = (
    "best k and the speedup expected there, from alpha, c, v and o; under k=… the acceptance from "
    "which that k would pay (above 1: none is enough); c up to: the draft cost at which its "
    "longest k would break even (below 0: not even a free draft would)."
)


def drafts_of(found: Found) -> Sequence[Found]:
    """One entry a draft and setting."""
    return list(found.get("drafts") or [])


def name_of(draft: Found) -> str:
    """The draft, with what sets it apart."""
    return " ".join([draft["draft"], *(f"{k}={v}" for k, v in draft["setting"].items())])


def _expected(draft: Found) -> str:
    at = "" if draft["pays"] else f" at {draft['best_k']}"
    return f"{draft['expected']:.2f}×{at}"


def _needs(k: int) -> _Cell:
    def cell(draft: Found) -> str:
        return next((f"{one['needs']:.2f}" for one in draft["at"] if one["k"] == k), "–")

    return cell


def _c_limit(draft: Found) -> str:
    limit = max(draft["at"], key=lambda one: one["k"])["c_limit"]
    return "<0" if limit < 0 else f"{limit:.2f}"
