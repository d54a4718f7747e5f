"""What to do, in a sentence: what the formula expects, held against what was measured. Pure.

The formula may promise what the clock denies, or the other way round. Then both are told, and a
draft whose best k was measured to be slower is not recommended.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracking.advice import Found, drafts_of, name_of
from tracking.conclusion import ratio
from tracking.rows import Row


def sentence(found: Found, rows: Sequence[Row]) -> str:
    """Which draft with which k, or none; empty where nothing was timed."""
    drafts = drafts_of(found)
    if not drafts:
        return ""
    sure, hoped = _paying(drafts, rows)
    best = max((row for row in rows if row.verdict == "faster"), key=_speed, default=None)
    if sure:
        told = _recommended(sure, rows)
    elif best is not None:
        told = f"{best.name}, measured at {ratio(best)}, although the formula expects less"
    elif hoped:
        told = f"perhaps {_one(hoped[0])}{_measured(hoped[0], rows)}; {_HOW}"
    else:
        near = max(drafts, key=lambda draft: draft["expected"])
        told = f"decode plainly. No draft pays at any k; nearest is {_one(near)}"
    return f"Advice: {told}. {_hopeless(drafts)}".strip()


_HOW = "more pairs would tell (timing=adaptive)"


def _paying(drafts: Sequence[Found], rows: Sequence[Row]) -> tuple[list[Found], list[Found]]:
    """Those that pay by the formula, the best first: measured faster at some k, and not slower."""
    paying = sorted((d for d in drafts if d["pays"]), key=lambda draft: -draft["expected"])
    sure: list[Found] = []
    hoped: list[Found] = []
    for draft in paying:
        own = _rows_of(draft, rows)
        at_best = _at_best(draft, own)
        if at_best is not None and at_best.verdict == "slower":
            continue
        (sure if any(row.verdict == "faster" for row in own) else hoped).append(draft)
    return sure, hoped


def _recommended(sure: Sequence[Found], rows: Sequence[Row]) -> str:
    first, *others = sure
    told = _one(first) + _measured(first, rows)
    if others:
        names = (f"{name_of(d)} k={d['best_k']} ({d['expected']:.2f}×)" for d in others)
        told += f"; {', '.join(names)} would pay too"
    return told


def _one(draft: Found) -> str:
    return f"{name_of(draft)} with k={draft['best_k']}, expected at {draft['expected']:.2f}×"


def _measured(draft: Found, rows: Sequence[Row]) -> str:
    """What the clock says of it: at this k, else at the k that was measured fastest."""
    own = [row for row in _rows_of(draft, rows) if row.measured is not None]
    at_best = _at_best(draft, own)
    if at_best is not None:
        return f" and measured at {ratio(at_best)}"
    if not own:
        return ""
    row = max(own, key=lambda row: (row.verdict == "faster", _speed(row)))
    return f" (not measured; k={row.length} was, at {ratio(row)})"


def _rows_of(draft: Found, rows: Sequence[Row]) -> list[Row]:
    """The rows of this draft and setting, of chains of a fixed length under the token rule."""
    setting = {key: str(value) for key, value in draft["setting"].items()}
    return [
        row
        for row in rows
        if row.draft == draft["draft"]
        and not row.auto
        and row.split.get("verify", "token") == "token"
        and row.split.get("proposal", "chain") == "chain"
        and all(row.split.get(key, value) == value for key, value in setting.items())
    ]


def _at_best(draft: Found, own: Sequence[Row]) -> Row | None:
    found = [row for row in own if row.k == draft["best_k"] and row.measured is not None]
    return found[0] if len(found) == 1 else None


def _speed(row: Row) -> float:
    return row.measured or 0.0


def _hopeless(drafts: Sequence[Found]) -> str:
    """Drafts that no acceptance could save."""
    lost = [draft for draft in drafts if all(one["needs"] > 1 for one in draft["at"])]
    if not lost:
        return ""
    told = (f"{name_of(draft)} ({_least(draft):.2f})" for draft in lost)
    return f"No acceptance is enough for {', '.join(told)}: too costly."


def _least(draft: Found) -> float:
    return min(float(one["needs"]) for one in draft["at"])
