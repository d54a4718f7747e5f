"""How a job's clocks are read: the ways there are, and which settings mean something in each."""

from __future__ import annotations

from typing import Any

ALWAYS = ("pairs", "threads")
LEAST = 6  # the range of so many ratios is a 96.9% interval for their median
ADAPTIVE = ("most_pairs", "half_width", "limit_s")
MEANT: dict[str, tuple[str, ...]] = {
    "pairs": (*ALWAYS, "piece_tokens"),
    "whole": ALWAYS,
    "adaptive": (*ALWAYS, "piece_tokens", *ADAPTIVE),
    "skip": (),
}
"""The settings that a way of timing looks at; the others are no part of its jobs."""
SETTINGS = frozenset(setting for settings in MEANT.values() for setting in settings)


def check(mode: str, given: dict[str, Any]) -> None:
    """ValueError, one sentence, for a way that is not known or a setting that it cannot use."""
    if mode not in MEANT:
        raise ValueError(f"timing={mode}: the ways are {', '.join(MEANT)}")
    for name in MEANT[mode]:
        value = given[name]
        if name == "pairs" and value < 1:
            raise ValueError(
                f"timing.pairs={value}: give 1 pair or more, or timing=skip to count only"
            )
        if name in ("threads", "piece_tokens") and value is not None and value < 1:
            null = ", or null" if name == "piece_tokens" else ""
            raise ValueError(f"timing.{name}={value}: give 1 or more{null}")
    if mode == "adaptive":
        _check_adaptive(given)


def _check_adaptive(given: dict[str, Any]) -> None:
    most_pairs, half_width, limit_s = (given[name] for name in ADAPTIVE)
    if given["pairs"] < LEAST:
        raise ValueError(
            f"timing.pairs={given['pairs']}: timing=adaptive goes on from {LEAST} pairs or more"
        )
    if most_pairs is not None and most_pairs < given["pairs"]:
        raise ValueError(
            f"timing.most_pairs={most_pairs}: give no fewer than timing.pairs={given['pairs']}, "
            "which are the least"
        )
    if half_width is not None and not 0 < half_width < 1:
        raise ValueError(f"timing.half_width={half_width}: give a share of the median such as 0.02")
    if limit_s is not None and not 0 < limit_s < float("inf"):
        raise ValueError(f"timing.limit_s={limit_s}: give a number of seconds above 0")


def odd(mode: str, given: dict[str, Any]) -> str | None:
    """The setting of a job that makes for an odd number of pairs, if one does."""
    names = ("pairs",) if mode in ("pairs", "whole") else ()
    names = ("most_pairs",) if mode == "adaptive" else names
    return next((name for name in names if (given[name] or 0) % 2), None)
