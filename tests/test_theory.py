"""Predictions: the reference's worked figures, limits, break-evens, and the command."""

from __future__ import annotations

import math
from typing import cast

import pytest

from pipeline import theory


def test_worked_example_of_the_reference() -> None:
    assert theory.expected_tokens(0.8, 4) == pytest.approx(3.3616)
    assert theory.tokens_per_second(0.8, 4, draft_ms=1, verify_ms=12) == pytest.approx(210.1)
    assert theory.tokens_per_second(0.6, 4, draft_ms=0.2, verify_ms=12) == pytest.approx(
        180.1, 1e-3
    )
    assert theory.speedup(3.3616, 4, c=0.1, v=1.2) == pytest.approx(2.101)


def test_figures_of_the_measured_table() -> None:
    assert round(theory.speedup(5.88, 8, 1.059), 2) == 0.62
    assert round(theory.speedup(3.77, 8, 1.034), 2) == 0.41
    assert round(theory.speedup(1.39, 4, 0.004), 2) == 1.37


@pytest.mark.parametrize("k", [0, 1, 4, 1000])
def test_expected_tokens_is_exact_at_both_ends(k: int) -> None:
    assert theory.expected_tokens(1, k) == k + 1
    assert theory.expected_tokens(0, k) == 1


@pytest.mark.parametrize(("a", "k"), [(0.3, 2), (0.999999999, 8), (0.7, 20)])
def test_expected_tokens_is_the_finite_sum(a: float, k: int) -> None:
    assert theory.expected_tokens(a, k) == pytest.approx(math.fsum(a**i for i in range(k + 1)))


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("c", [0.004, 0.1, 0.5])
def test_at_the_break_even_acceptance_the_speedup_is_one(k: int, c: float) -> None:
    a = theory.break_even_acceptance(k, c, v=1.1, o=0.05)
    assert theory.speedup(theory.expected_tokens(a, k), k, c, 1.1, 0.05) == pytest.approx(1)


def test_break_even_acceptance_above_one_says_no_draft_is_good_enough() -> None:
    assert theory.break_even_acceptance(1, 1.059) == pytest.approx(1.059)
    assert theory.break_even_acceptance(1, 0.0) == 0
    assert theory.break_even_acceptance(0, 0.5, v=1.5) == math.inf
    assert "would need 1.06" in theory.break_even_sentence(1, 1.059)
    assert "whatever" in theory.break_even_sentence(2, 0.0)
    assert "0.500" in theory.break_even_sentence(1, 0.5)


def test_at_the_break_even_c_the_speedup_is_one() -> None:
    c = theory.break_even_c(3.0, 4, v=1.2, o=0.1)
    assert theory.speedup(3.0, 4, c, 1.2, 0.1) == pytest.approx(1)
    assert theory.break_even_c(1.1, 4, v=1.2) < 0
    with pytest.raises(ValueError, match="k=0"):
        theory.break_even_c(1.0, 0)


def test_best_k_weighs_longer_drafts_against_their_cost() -> None:
    k, predicted = theory.best_k(0.8, 0.1)
    rivals = [theory.speedup(theory.expected_tokens(0.8, n), n, 0.1) for n in range(1, 33)]
    assert predicted == max(rivals) and rivals[k - 1] == predicted
    assert theory.best_k(0.9, 1.059) == (0, 1.0)
    assert theory.best_k(0.8, 0.1, v=lambda n: 1 + n)[0] < k


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: theory.expected_tokens(1.1, 4), "acceptance 1.1"),
        (lambda: theory.expected_tokens(math.nan, 4), "acceptance nan"),
        (lambda: theory.expected_tokens(0.5, -1), "k=-1"),
        (lambda: theory.expected_tokens(0.5, cast(int, 1.5)), "k=1.5"),
        (lambda: theory.speedup(0, 4, 0.1), "tokens per pass 0"),
        (lambda: theory.speedup(2, 4, -0.1), "draft cost c is -0.1"),
        (lambda: theory.speedup(2, 0, 0.1, 0.0), "costs nothing"),
        (lambda: theory.tokens_per_second(0.5, 4, 0, 0), "no time at all"),
        (lambda: theory.tokens_per_second(0.5, 4, 1, math.inf), "verify time in ms is inf"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call: object, told: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=told):
        call()


def command(alpha: str = "0.8", k: str = "4", target: str = "10", draft: str = "1") -> list[str]:
    times = ["--draft-ms", draft, "--verify-ms", "12", "--target-ms", target]
    return ["--alpha", alpha, "--k", k, *times]


def test_command_prints_the_worked_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert theory.main(command()) == 0
    told = capsys.readouterr().out
    for figure in ("3.3616", "210.1", "2.101", "100.0", "0.380"):
        assert figure in told
    assert sum(line.split()[0].isdigit() for line in told.splitlines() if line) >= 5


def test_command_says_when_nothing_pays(capsys: pytest.CaptureFixture[str]) -> None:
    assert theory.main(command(alpha="0.9", draft="20")) == 0
    told = capsys.readouterr().out
    assert "it would need" in told and "none: decode plainly" in told
    assert theory.main(command(k="0")) == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (command(alpha="2"), "acceptance 2.0"),
        (command(k="-1"), "k=-1"),
        (command(target="0"), "--target-ms 0"),
        (command(draft="-1"), "draft time in ms is -1"),
    ],
)
def test_command_refuses_in_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        theory.main(arguments)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert told in error and len(error.splitlines()) == 1
