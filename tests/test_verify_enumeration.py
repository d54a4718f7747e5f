"""The rules are exact: every outcome of the shipped code, in fractions (V = 3, k = 1, 2, 3)."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from pipeline.verify import RULES
from tests.enumeration import (
    Case,
    emitted_law,
    expected_accepted,
    extend,
    one_hot,
    outcomes,
    random_case,
    rows_of,
    target_law,
)

CASES = {1: 40, 2: 40, 3: 30}  # per rule
LEFT, INSIDE = Fraction(0), Fraction(1, 2)


@pytest.mark.parametrize("k", CASES)
@pytest.mark.parametrize("name", RULES)
def test_joint_law_of_k_plus_one_tokens_is_the_targets(name: str, k: int) -> None:
    for seed in range(CASES[k]):
        case = random_case(np.random.default_rng([k, seed]), k)
        for place in (LEFT, INSIDE):
            found = outcomes(RULES[name], case, place=place)
            assert extend(case, emitted_law(found)) == target_law(case), f"seed {seed}"


@pytest.mark.parametrize("name", RULES)
def test_given_how_far_the_round_has_come_the_next_token_follows_its_target_row(name: str) -> None:
    """What lets the PIT test order by the round's own q rows, for `block` as well."""
    for seed in range(20):
        case = random_case(np.random.default_rng([2, seed]), 2)
        reached: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for one in outcomes(RULES[name], case):
            for length in range(len(one.emitted) + 1):
                reached[one.emitted[:length]] += one.probability
        still_in_round = [
            (prefix, [reached[(*prefix, token)] for token in range(3)])
            for prefix in list(reached)
            if any((*prefix, token) in reached for token in range(3))
        ]
        for prefix, following in still_in_round:
            mass = sum(following)
            assert tuple(x / mass for x in following) == case.target[prefix], f"seed {seed}"


@pytest.mark.parametrize("k", CASES)
def test_the_cases_hold_zeros_ties_and_deterministic_drafts(k: int) -> None:
    cases = [random_case(np.random.default_rng([k, seed]), k) for seed in range(CASES[k])]
    rows = [row for case in cases for row in (*case.target.values(), *case.draft.values())]
    assert any(0 in row for row in rows)
    assert any(len(set(row)) < len(row) for row in rows)
    assert any(all(1 in row for row in case.draft.values()) for case in cases)
    assert any(all(case.draft[x] == case.target[x] for x in case.draft) for case in cases)
    assert any(case.target[()] != case.target[(0,)] for case in cases)


@pytest.mark.parametrize("name", RULES)
def test_any_draft_even_an_impossible_one_leaves_the_law_alone(name: str) -> None:
    target = {x: row_of(x) for n in range(3) for x in itertools.product(range(3), repeat=n)}
    for proposed in range(3):
        draft = {x: one_hot(proposed, 3) for x in target if len(x) < 2}
        case = Case(2, 3, target, draft)
        assert extend(case, emitted_law(outcomes(RULES[name], case))) == target_law(case)


def row_of(prefix: tuple[int, ...]) -> tuple[Fraction, ...]:
    """(0, 1/3, 2/3), turned by the last token."""
    turn = sum(prefix) % 3
    row = (Fraction(0), Fraction(1, 3), Fraction(2, 3))
    return row[turn:] + row[:turn]


def test_block_never_accepts_fewer_than_token_and_somewhere_more() -> None:
    gains = []
    for k, seeds in CASES.items():
        for seed in range(seeds):
            case = random_case(np.random.default_rng([k, seed]), k)
            token, block = (
                expected_accepted(outcomes(RULES[name], case)) for name in ("token", "block")
            )
            gains.append(block - token)
    assert min(gains) == 0
    assert max(gains) > 0


@pytest.mark.parametrize(
    ("name", "expected"), [("token", Fraction(10, 9)), ("block", Fraction(11, 9))]
)
def test_published_example_of_block_verification(name: str, expected: Fraction) -> None:
    p, q = (Fraction(1, 3), Fraction(2, 3)), (Fraction(2, 3), Fraction(1, 3))
    texts = [x for n in range(3) for x in itertools.product(range(2), repeat=n)]
    case = Case(2, 2, dict.fromkeys(texts, p), {x: q for x in texts if len(x) < 2})
    assert expected_accepted(outcomes(RULES[name], case)) == expected


@pytest.mark.parametrize("name", ["token", "match"])
def test_acceptance_of_one_token_is_what_its_paper_says(name: str) -> None:
    case = random_case(np.random.default_rng(5), 1, least=1)
    p, q = case.target[()], case.draft[()]
    pairs = list(zip(p, q, strict=True))
    published = {"token": sum(min(a, b) for a, b in pairs), "match": sum(a * b for a, b in pairs)}
    assert expected_accepted(outcomes(RULES[name], case)) == published[name]


@pytest.mark.parametrize("name", RULES)
def test_float64_decides_as_fractions_do_and_its_margin_says_when(name: str) -> None:
    rule, generator, checked = RULES[name], np.random.default_rng(7), 0
    for seed in range(30):
        k = 1 + seed % 3
        case = random_case(generator, k)
        drafts = [x for x in itertools.product(range(3), repeat=k) if _possible(case, x)]
        p, q, drafted = rows_of(case, drafts)
        u, u_next = (_fractions(generator, shape) for shape in ((len(drafts), k), (len(drafts),)))
        exact = rule.verify(p, q, drafted, u, u_next)
        exact_margin = rule.margin(p, q, drafted, u, u_next, exact[0]).astype(float)
        p, q, u, u_next = (x.astype(float) for x in (p, q, u, u_next))
        accepted, token = rule.verify(p, q, drafted, u, u_next)
        margin = rule.margin(p, q, drafted, u, u_next, accepted)
        safe = margin > 1e-12
        assert (accepted == exact[0])[safe].all() and (token == exact[1])[safe].all()
        assert np.allclose(margin[safe], exact_margin[safe], atol=1e-12)
        checked += int(safe.sum())
    assert checked > 200


def _possible(case: Case, ids: tuple[int, ...]) -> bool:
    return all(case.draft[ids[:i]][token] > 0 for i, token in enumerate(ids))


def _fractions(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    values = [Fraction(int(n), 997) for n in generator.integers(0, 997, int(np.prod(shape)))]
    return np.array(values, object).reshape(shape)
