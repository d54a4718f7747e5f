"""The pairs of drafts of which the one that is accepted more is slower: told, and marked. Pure.

What is told comes from a sweep's summary, `{"compared": 12, "misleading": [{"setting",
"accepted_more", "faster", "told_apart"}, …]}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracking.rows import Row

MARK = "!"


def marked(rows: Sequence[Row], found: Mapping[str, Any]) -> set[str]:
    """Names of the rows whose acceptance misleads: a draft that is accepted less is faster."""
    return {row.name for row in rows for pair in _pairs(found) if _is_of(row, pair)}


def sentence(found: Mapping[str, Any]) -> str:
    """How many pairs mislead, and which; empty where no two drafts were timed alike."""
    compared, pairs = found.get("compared", 0), _pairs(found)
    if not compared:
        return ""
    if not pairs:
        return f"Acceptance misleads in none of {compared} pairs of drafts."
    close = sum(not pair["told_apart"] for pair in pairs)
    least = f", {close} of them by less than their ranges" if close else ""
    slower: dict[str, dict[str, list[str]]] = {}
    for pair in pairs:
        of = slower.setdefault(pair["accepted_more"], {}).setdefault(pair["faster"], [])
        of.append(pair["setting"].get("k", ""))
    told = "; ".join(f"{more} than {_ranked(less)}" for more, less in slower.items())
    return (
        f"Acceptance misleads ({MARK}) in {len(pairs)} of {compared} pairs of drafts{least}: "
        f"accepted more and yet slower is {told}."
    )


def _ranked(less: Mapping[str, Sequence[str]]) -> str:
    """ "bigram, int4 (k=1,2,4,8), small (k=2)"; drafts that share their k stand together."""
    by_ks: dict[str, list[str]] = {}
    for name, ks in less.items():
        by_ks.setdefault(",".join(dict.fromkeys(ks)), []).append(name)
    return ", ".join(f"{', '.join(names)} (k={ks})" for ks, names in by_ks.items())


def _pairs(found: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return list(found.get("misleading") or [])


def _is_of(row: Row, pair: Mapping[str, Any]) -> bool:
    setting = dict(pair["setting"])
    draft, *options = str(pair["accepted_more"]).split(" draft.")  # a value may have blanks
    options = [f"draft.{option}" for option in options]
    if draft != row.draft or setting.pop("k") != row.length:
        return False
    own = {f"{name}={value}" for name, value in row.split.items()}
    if any(option.partition("=")[0] in row.split and option not in own for option in options):
        return False
    if setting.pop("target", None) not in {None, *row.targets}:
        return False
    return all(row.split.get(name, value) == value for name, value in setting.items())
