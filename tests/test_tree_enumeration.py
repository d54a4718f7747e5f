"""The tree rules are exact: every outcome of the shipped code, in fractions (V = 3), and rules
broken on purpose are not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pipeline.verify import RULES, TREE_RULES
from tests.enumeration import (
    Case,
    emitted_law,
    expected_accepted,
    extend,
    one_hot,
    outcomes,
    random_case,
    target_law,
)
from tests.tree_enumeration import tree_outcomes, unread_uniforms_do_not_matter
from tests.tree_mutants import TREE_MUTANTS, TreeMutant

LEFT, INSIDE = Fraction(0), Fraction(1, 2)
CASES = {(2, 1): 36, (3, 1): 8, (2, 2): 6, (2,): 10, (3,): 6, (1, 2): 6}  # per rule
BY_NAME = {mutant.name: mutant for mutant in TREE_MUTANTS}


def case_of(widths: tuple[int, ...], seed: int, least: int = 0) -> Case:
    return random_case(np.random.default_rng([*widths, seed]), len(widths), least=least)


@pytest.mark.parametrize("widths", CASES, ids=str)
@pytest.mark.parametrize("name", TREE_RULES)
def test_joint_law_of_what_a_tree_emits_is_the_targets(name: str, widths: tuple[int, ...]) -> None:
    for seed in range(CASES[widths]):
        case = case_of(widths, seed)
        found = tree_outcomes(TREE_RULES[name], case, widths, INSIDE if seed % 4 == 3 else LEFT)
        assert extend(case, emitted_law(found)) == target_law(case), f"seed {seed}"


@pytest.mark.parametrize("name", TREE_RULES)
def test_a_uniform_that_the_rule_says_it_did_not_compare_does_not_matter(name: str) -> None:
    for seed in range(4):
        assert unread_uniforms_do_not_matter(TREE_RULES[name], case_of((2, 1), seed), (2, 1))


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("name", TREE_RULES)
def test_fewer_possible_ids_than_siblings_leave_the_law_alone(name: str, width: int) -> None:
    """Greedy and top-k drafts: the siblings that cannot be drawn stand for no token."""
    case = case_of((width, 1), 0, least=1)
    half = Fraction(1, 2)
    for rows in (one_hot(1, 3), (half, Fraction(0), half)):
        some = Case(2, 3, case.target, dict.fromkeys(case.draft, rows))
        found = tree_outcomes(TREE_RULES[name], some, (width, 1))
        assert extend(some, emitted_law(found)) == target_law(some)


@pytest.mark.parametrize("name", TREE_RULES)
def test_greedy_on_both_sides_follows_the_target(name: str) -> None:
    case = case_of((2, 1), 1)
    for seed in range(6):
        generator = np.random.default_rng(seed)
        greedy = Case(
            2,
            3,
            {x: one_hot(int(generator.integers(3)), 3) for x in case.target},
            {x: one_hot(int(generator.integers(3)), 3) for x in case.draft},
        )
        law = extend(greedy, emitted_law(tree_outcomes(TREE_RULES[name], greedy, (2, 1))))
        assert law == target_law(greedy) and list(law.values()) == [1]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_on_a_chain_traversal_does_what_block_does(k: int) -> None:

    for seed in range(12):
        case = case_of((1,) * k, seed)
        by_tree = tree_outcomes(TREE_RULES["traversal"], case, (1,) * k)
        by_chain = outcomes(RULES["block"], case)
        assert emitted_law(by_tree) == emitted_law(by_chain)
        assert expected_accepted(by_tree) == expected_accepted(by_chain)


@pytest.mark.parametrize("name", ["specinfer", "sequoia"])
def test_on_a_chain_the_descents_do_what_token_does(name: str) -> None:

    for seed in range(12):
        case = case_of((1, 1), seed)
        by_tree = tree_outcomes(TREE_RULES[name], case, (1, 1))
        assert emitted_law(by_tree) == emitted_law(outcomes(RULES["token"], case))


def test_traversal_accepts_no_less_than_sequoia_and_sequoia_no_less_than_specinfer() -> None:
    gains = []
    for widths, seeds in {(2, 1): 16, (2, 2): 2, (3, 1): 2}.items():
        for seed in range(seeds):
            case = case_of(widths, 100 + seed, least=seed % 2)
            low, middle, high = (
                expected_accepted(tree_outcomes(TREE_RULES[name], case, widths))
                for name in ("specinfer", "sequoia", "traversal")
            )
            gains.append((middle - low, high - middle))
    assert all(min(gain) >= 0 for gain in gains)
    assert all(max(gain) > 0 for gain in zip(*gains, strict=True))


def is_exact(mutant: TreeMutant, seed: int, place: Fraction) -> bool:
    case = case_of((2, 1), seed)
    found = tree_outcomes(mutant.rule, case, (2, 1), place)
    return extend(case, emitted_law(found)) == target_law(case)


@pytest.mark.parametrize("name", BY_NAME)
def test_enumeration_rejects(name: str) -> None:
    assert not all(is_exact(BY_NAME[name], seed, LEFT) for seed in range(12))


@pytest.mark.parametrize("name", BY_NAME)
def test_only_the_mutant_that_errs_on_a_tie_passes_inside_the_cells(name: str) -> None:
    mutant = BY_NAME[name]
    assert all(is_exact(mutant, seed, INSIDE) for seed in range(12)) == mutant.only_on_a_tie


def test_repeats_among_siblings_are_refused_where_they_must_be_distinct() -> None:
    case = case_of((2, 1), 2, least=1)
    for name in ("sequoia", "traversal"):
        with pytest.raises(ValueError, match="less the siblings drawn before"):
            tree_outcomes(TREE_RULES[name], case, (2, 1), with_replacement=True)
