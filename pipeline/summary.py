"""Logs of rounds summed up, two of them compared, and whether their acceptance rates mislead.

A round is a mapping with `k` (tokens drafted), `accepted` and `ms` (time of the round); further
keys are ignored. Each round also yields one token of the target's own. Rates are sums over sums.

`python -m pipeline.summary A.jsonl B.jsonl` compares two logs, a round a line.
"""

from __future__ import annotations

import argparse
import json
import math
import numbers
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

TIE = 1e-9
Rounds = Sequence[Mapping[str, Any]]


def summarize(rounds: Rounds) -> dict[str, float]:
    """`tokens` (Σ accepted + rounds), `total_ms`, `tokens_per_second`, `acceptance_rate`
    (Σ accepted / Σ k; left out where nothing was drafted) and `tokens_per_round`.

    ValueError for no rounds, a missing key, a value that cannot be, or no time at all.
    """
    rounds = list(rounds)
    if not rounds:
        raise ValueError("no rounds: there is nothing to summarize")
    for number, one in enumerate(rounds, start=1):
        _check_round(number, one)
    accepted = sum(int(one["accepted"]) for one in rounds)
    drafted = sum(int(one["k"]) for one in rounds)
    total_ms = math.fsum(one["ms"] for one in rounds)
    if total_ms == 0:
        raise ValueError("the rounds took 0 ms in all, so they have no tokens per second")
    tokens = accepted + len(rounds)
    summary = {
        "tokens": tokens,
        "total_ms": total_ms,
        "tokens_per_second": tokens / total_ms * 1000,
        "tokens_per_round": tokens / len(rounds),
    }
    if drafted:
        summary["acceptance_rate"] = accepted / drafted
    return summary


def _check_round(number: int, one: Mapping[str, Any]) -> None:
    if not isinstance(one, Mapping):
        raise ValueError(f"round {number} is {one!r}; it must have the keys k, accepted and ms")
    missing = [key for key in ("k", "accepted", "ms") if key not in one]
    if missing:
        raise ValueError(f"round {number} has no {' and no '.join(missing)}")
    for key in ("k", "accepted"):
        if not _is_amount(one[key]) or one[key] != int(one[key]):
            raise ValueError(f"round {number}: {key}={one[key]!r} is not a whole number, 0 or more")
    if not _is_amount(one["ms"]):
        raise ValueError(f"round {number}: ms={one['ms']!r} is not a time, 0 or more and finite")
    if one["accepted"] > one["k"]:
        raise ValueError(
            f"round {number} accepted {one['accepted']} tokens but drafted only k={one['k']}"
        )


def _is_amount(value: Any) -> bool:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and 0 <= value < math.inf


def compare(a_rounds: Rounds, b_rounds: Rounds) -> str:
    """ "A" or "B", whichever has more tokens per second; "tie" if equal within 1e-9."""
    return _higher("tokens_per_second", summarize(a_rounds), summarize(b_rounds))


def _higher(key: str, a: Mapping[str, float], b: Mapping[str, float]) -> str:
    if abs(a[key] - b[key]) <= TIE:
        return "tie"
    return "A" if a[key] > b[key] else "B"


def same_distribution(freq_a: Iterable[float], freq_b: Iterable[float], tol: float) -> bool:
    """Whether two frequency vectors differ by at most `tol` in every entry (rounding forgiven).

    ValueError for unequal lengths, empty vectors, entries that are no frequencies, a negative tol.
    """
    a, b = [float(x) for x in freq_a], [float(x) for x in freq_b]
    if len(a) != len(b):
        raise ValueError(f"the frequency vectors have {len(a)} and {len(b)} entries; give equals")
    if not a:
        raise ValueError("the frequency vectors are empty: there is nothing to compare")
    if not 0 <= tol < math.inf:
        raise ValueError(f"tol={tol}: give a finite number, 0 or more")
    for value in (*a, *b):
        if not 0 <= value < math.inf:
            raise ValueError(f"{value} is not a frequency: give finite numbers, 0 or more")
    return all(
        abs(x - y) <= tol or math.isclose(abs(x - y), tol, rel_tol=1e-12)
        for x, y in zip(a, b, strict=True)
    )


def headline_misleads(rounds_a: Rounds, rounds_b: Rounds) -> bool:
    """Whether the one with the higher acceptance rate has the lower tokens per second.

    False where either is equal within 1e-9, or where one of the two drafted nothing.
    """
    a, b = summarize(rounds_a), summarize(rounds_b)
    if "acceptance_rate" not in a or "acceptance_rate" not in b:
        return False
    accepts, wins = _higher("acceptance_rate", a, b), _higher("tokens_per_second", a, b)
    return {accepts, wins} == {"A", "B"}


def read(path: Path) -> list[dict[str, Any]]:
    """Rounds of a JSON-lines file; ValueError naming file and line for what is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    rounds = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            rounds.append(json.loads(line))
        except ValueError:
            raise ValueError(f"{path}, line {number}: not a JSON object") from None
    return rounds


def side_by_side(a_rounds: Rounds, b_rounds: Rounds) -> str:
    """Both summaries in columns, which is faster, and whether the headline misleads."""
    a, b = summarize(a_rounds), summarize(b_rounds)
    keys = {
        "tokens": 0,
        "total_ms": 3,
        "tokens_per_second": 1,
        "acceptance_rate": 3,
        "tokens_per_round": 3,
    }
    lines = [f"{'':<18} {'A':>12} {'B':>12}"]
    for key, digits in keys.items():
        shown = [f"{one[key]:.{digits}f}" if key in one else "-" for one in (a, b)]
        lines.append(f"{key:<18} {shown[0]:>12} {shown[1]:>12}")
    winner = compare(a_rounds, b_rounds)
    lines.append("faster: neither, a tie" if winner == "tie" else f"faster: {winner}")
    if headline_misleads(a_rounds, b_rounds):
        lines.append("the acceptance rate misleads: the one that accepts more is the slower one")
    else:
        lines.append("the acceptance rate does not mislead")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.summary",
        description="Compare two logs of rounds: JSON lines with k, accepted, ms.",
    )
    parser.add_argument("a", type=Path, metavar="A.jsonl")
    parser.add_argument("b", type=Path, metavar="B.jsonl")
    given = parser.parse_args(arguments)
    try:
        logs = [_checked(path) for path in (given.a, given.b)]
    except ValueError as error:
        parser.exit(2, f"{error}\n")
    print(side_by_side(*logs))
    return 0


def _checked(path: Path) -> list[dict[str, Any]]:
    rounds = read(path)
    try:
        summarize(rounds)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return rounds


if __name__ == "__main__":
    sys.exit(main())
