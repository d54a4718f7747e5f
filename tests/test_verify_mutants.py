"""Rules broken on purpose are rejected, by enumeration and by the statistics of a job."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from pipeline.exactness import g_test, smaller_of_two
from pipeline.leak import leak_test
from tests.enumeration import emitted_law, extend, outcomes, random_case, target_law
from tests.mutants import MUTANTS, Mutant, draws_needed, table
from tests.simulation import joint, write

LEFT, INSIDE = Fraction(0), Fraction(1, 2)
BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
SEEN_BY_DRAWS = [mutant.name for mutant in MUTANTS if not mutant.only_on_a_tie]


def is_exact(mutant: Mutant, seed: int, place: Fraction) -> bool:
    case = random_case(np.random.default_rng(seed), 2)
    found = outcomes(mutant.rule, case, mutant.sampled, place)
    return extend(case, emitted_law(found)) == target_law(case)


@pytest.mark.parametrize("name", BY_NAME)
def test_enumeration_rejects(name: str) -> None:
    assert not all(is_exact(BY_NAME[name], seed, LEFT) for seed in range(20))


@pytest.mark.parametrize("name", BY_NAME)
def test_only_the_mutant_that_errs_on_a_tie_passes_inside_the_cells(name: str) -> None:
    mutant = BY_NAME[name]
    assert all(is_exact(mutant, seed, INSIDE) for seed in range(20)) == mutant.only_on_a_tie


@pytest.mark.parametrize("name", SEEN_BY_DRAWS)
def test_the_statistics_of_a_job_reject_with_the_draws_that_the_table_says(name: str) -> None:
    mutant, generator = BY_NAME[name], np.random.default_rng(11)
    case = next(
        case
        for case in (random_case(np.random.default_rng(seed), 2, least=1) for seed in range(20))
        if draws_needed(mutant, case) < 60_000
    )
    p, q = joint(case.target, 3), joint(case.draft, 2)
    draws = math.ceil(1.3 * draws_needed(mutant, case))
    rejected = 0
    for _ in range(5):
        counts = write(mutant.rule, case, draws, generator, mutant.sampled).counts()
        by_g = g_test(counts, p)
        by_leak = leak_test(counts.sum(axis=2), p.sum(axis=2), q)
        rejected += smaller_of_two(by_g, by_leak) < 0.05
    assert rejected >= 4


@pytest.mark.parametrize("name", BY_NAME)
def test_a_mutant_can_stand_in_a_real_decode_whose_last_round_drafts_nothing(name: str) -> None:
    p, u_next = np.array([[[0.25, 0.75]]] * 3), np.array([0.1, 0.3, 0.9])
    none = p[:, :0], np.zeros((3, 0), np.int64), np.zeros((3, 0))
    accepted, token = BY_NAME[name].rule.verify(p, *none, u_next)
    assert accepted.tolist() == [0, 0, 0] and token.tolist() == [0, 1, 1]


def test_the_table_has_a_line_a_mutant(capsys: pytest.CaptureFixture[str]) -> None:
    told = table(cases=1)
    assert all(f"| {mutant.name} |" in told for mutant in MUTANTS)
    with capsys.disabled():
        print(f"\n{told}")
