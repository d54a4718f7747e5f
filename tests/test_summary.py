"""Logs of rounds: sums, comparison, and when a headline misleads."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from pipeline import summary

Rounds = list[dict[str, Any]]


def rounds(*triples: tuple[int, int, float]) -> Rounds:
    return [{"k": k, "accepted": accepted, "ms": ms} for k, accepted, ms in triples]


EAGER = rounds((4, 4, 40.0), (4, 3, 40.0))  # accepts more, slowly
CHEAP = rounds((4, 1, 5.0), (4, 2, 5.0))


def test_summary_is_sums_over_sums() -> None:
    assert summary.summarize(rounds((4, 3, 10.0), (2, 0, 15.0), (0, 0, 25.0))) == {
        "tokens": 6,
        "total_ms": 50.0,
        "tokens_per_second": 120.0,
        "acceptance_rate": 0.5,
        "tokens_per_round": 2.0,
    }


def test_where_nothing_was_drafted_the_acceptance_rate_is_left_out() -> None:
    assert "acceptance_rate" not in summary.summarize(rounds((0, 0, 5.0)))
    assert not summary.headline_misleads(rounds((0, 0, 5.0)), EAGER)


def test_compare_names_the_faster_or_a_tie() -> None:
    assert summary.compare(EAGER, CHEAP) == "B"
    assert summary.compare(CHEAP, EAGER) == "A"
    assert summary.compare(rounds((1, 0, 10)), rounds((1, 1, 20), (1, 0, 10))) == "tie"
    assert summary.compare(rounds((1, 0, 10.0)), rounds((1, 0, 10.0 + 1e-12))) == "tie"
    assert summary.compare(rounds((1, 0, 10.0)), rounds((1, 0, 10.0 + 1e-6))) == "A"


def test_headline_misleads_only_if_more_accepted_is_slower() -> None:
    assert summary.headline_misleads(EAGER, CHEAP)
    assert summary.headline_misleads(CHEAP, EAGER)
    assert not summary.headline_misleads(EAGER, EAGER)
    assert not summary.headline_misleads(rounds((4, 4, 1.0)), CHEAP)
    assert not summary.headline_misleads(rounds((4, 1, 9.0)), rounds((4, 1, 5.0)))  # equal rates


def test_same_distribution_looks_at_every_entry() -> None:
    assert summary.same_distribution([0.5, 0.5], [0.45, 0.55], 0.05)
    assert not summary.same_distribution([0.5, 0.5], [0.44, 0.56], 0.05)
    assert summary.same_distribution((0.1, 0.9), [0.1, 0.9], 0)
    assert summary.same_distribution([0.3, 0.7], [0.4, 0.6], 0.1)  # 0.4 - 0.3 > 0.1 by rounding


@pytest.mark.parametrize(
    ("a", "b", "tol", "told"),
    [
        ([1.0], [0.5, 0.5], 0.1, "1 and 2 entries"),
        ([], [], 0.1, "empty"),
        ([1.0], [1.0], -0.1, "tol=-0.1"),
        ([1.0], [1.0], math.nan, "tol=nan"),
        ([math.nan], [1.0], 0.1, "nan is not a frequency"),
        ([-0.5], [1.0], 0.1, "-0.5 is not a frequency"),
    ],
)
def test_frequencies_that_cannot_be_are_refused(
    a: list[float], b: list[float], tol: float, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        summary.same_distribution(a, b, tol)


BAD = [
    ([], "no rounds"),
    ([{"k": 1, "ms": 1.0}], "round 1 has no accepted"),
    ([{"k": 1}], "no accepted and no ms"),
    ([7], "round 1 is 7"),
    (rounds((4, 2, 1.0), (4, 2, -1.0)), "round 2: ms=-1.0"),
    (rounds((4, 2, math.nan)), "ms=nan"),
    (rounds((4, 2, math.inf)), "ms=inf"),
    (rounds((2, 3, 1.0)), "round 1 accepted 3 tokens but drafted only k=2"),
    (rounds((-1, 0, 1.0)), "k=-1"),
    (rounds((2, -1, 1.0)), "accepted=-1"),
    ([{"k": 2.5, "accepted": 1, "ms": 1.0}], "k=2.5"),
    ([{"k": True, "accepted": 1, "ms": 1.0}], "k=True"),
    ([{"k": 2, "accepted": "1", "ms": 1.0}], "accepted='1'"),
    (rounds((4, 2, 0.0)), "0 ms in all"),
]


@pytest.mark.parametrize(("log", "told"), BAD)
def test_a_log_that_cannot_be_is_refused_everywhere(log: Any, told: str) -> None:
    for call in (
        lambda: summary.summarize(log),
        lambda: summary.compare(CHEAP, log),
        lambda: summary.headline_misleads(log, CHEAP),
    ):
        with pytest.raises(ValueError, match=told):
            call()


def log_file(folder: Path, name: str, lines: list[str]) -> str:
    path = folder / name
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def test_command_shows_both_who_wins_and_that_the_headline_misleads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [
        log_file(tmp_path, name, [*(json.dumps(one) for one in log), ""])
        for name, log in (("a.jsonl", EAGER), ("b.jsonl", CHEAP))
    ]
    assert summary.main(paths) == 0
    told = capsys.readouterr().out
    assert "faster: B" in told and "the acceptance rate misleads" in told
    assert "0.875" in told and "500.0" in told
    assert summary.main([paths[0], paths[0]]) == 0
    told = capsys.readouterr().out
    assert "a tie" in told and "does not mislead" in told


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["{"], "bad.jsonl, line 1: not a JSON object"),
        ([], "bad.jsonl: no rounds"),
        (['{"k": 1, "accepted": 1}'], "bad.jsonl: round 1 has no ms"),
        (["[1]"], "bad.jsonl: round 1 is"),
        (None, "cannot be read"),
    ],
)
def test_command_names_the_file_at_fault_in_one_line(
    lines: list[str] | None, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = log_file(tmp_path, "good.jsonl", [json.dumps(one) for one in CHEAP])
    bad = str(tmp_path / "bad.jsonl")
    if lines is not None:
        log_file(tmp_path, "bad.jsonl", lines)
    with pytest.raises(SystemExit) as stopped:
        summary.main([good, bad])
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert told in error and len(error.splitlines()) == 1
