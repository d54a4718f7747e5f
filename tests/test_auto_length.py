"""k=auto is exact: a draft that stops by what it drew, and still proposes the token it stopped at.

Every outcome of the shipped rules in fractions, as in `test_verify_enumeration`: a proposal of m
tokens happens where the path to its last token stops there and not before, and the rule is given
those m. Dropping the last token instead is caught.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from pipeline import counts
from pipeline.context import Context, Ints, Logits
from pipeline.proposal import propose
from pipeline.sampling import Sampling
from pipeline.verify import RULES, Rule, find
from tests.enumeration import (
    Case,
    Law,
    Outcome,
    Prefix,
    emitted_law,
    expected_accepted,
    extend,
    outcomes,
    random_case,
    target_law,
)
from tests.models import decode, drafts, tiny

Stop = Callable[[Case, Prefix], bool]
CASES = {1: 12, 2: 12, 3: 6}  # per rule


def unsure(case: Case, path: Prefix) -> bool:
    """k=auto: the last token had less than 2/5 in the draft's row."""
    return case.draft[path[:-1]][path[-1]] < Fraction(2, 5)


def odd_sum(case: Case, path: Prefix) -> bool:
    """Any other rule that looks at the path."""
    return sum(path) % 2 == 1


def never(case: Case, path: Prefix) -> bool:
    return False


def stopped_at(case: Case, stop: Stop, drafted: Prefix) -> int:
    """Length of the proposal that a path leads to."""
    for length in range(1, len(drafted) + 1):
        if length == case.k or stop(case, drafted[:length]):
            return length
    return case.k


def cut(case: Case, k: int) -> Case:
    """The same rows for rounds of k tokens."""
    return Case(k, case.vocab, case.target, case.draft)


def auto(rule: Rule, case: Case, stop: Stop) -> list[Outcome]:
    """Everything a round can do: its proposals of each length, judged as drafts of that length."""
    return [
        one
        for k in range(1, case.k + 1)
        for one in outcomes(rule, cut(case, k))
        if stopped_at(case, stop, one.drafted) == k
        and all(not stop(case, one.drafted[:i]) for i in range(1, k))
    ]


def dropping(rule: Rule, case: Case, stop: Stop) -> Law:
    """The wrong variant: the token that fell below the threshold is not proposed."""
    law: Law = defaultdict(Fraction)
    for k in range(case.k + 1):
        for one in outcomes(rule, cut(case, k)) if k else _plain(case):
            if any(stop(case, one.drafted[:i]) for i in range(1, k + 1)):
                continue
            row = case.draft[one.drafted] if k < case.k else None
            then = 1 if row is None else _mass(case, stop, one.drafted, row)
            law[one.emitted] += one.probability * then
    return extend(case, {text: chance for text, chance in law.items() if chance})


def _plain(case: Case) -> list[Outcome]:
    return [Outcome((), 0, token, chance) for token, chance in enumerate(case.target[()])]


def _mass(case: Case, stop: Stop, path: Prefix, row: tuple[Fraction, ...]) -> Fraction:
    """Probability that the draft stops at the token after `path`."""
    stopping = (chance for x, chance in enumerate(row) if stop(case, (*path, x)))
    return sum(stopping, Fraction(0))


@pytest.mark.parametrize("stop", [unsure, odd_sum])
@pytest.mark.parametrize("k", CASES)
@pytest.mark.parametrize("name", RULES)
def test_a_stop_that_depends_on_the_path_leaves_the_targets_law(
    name: str, k: int, stop: Stop
) -> None:
    for seed in range(CASES[k]):
        case = random_case(np.random.default_rng([k, seed]), k)
        found = auto(RULES[name], case, stop)
        assert sum(one.probability for one in found) == 1
        assert extend(case, emitted_law(found)) == target_law(case), f"seed {seed}"


def test_the_cases_stop_at_every_length() -> None:
    for k in CASES:
        lengths = set()
        for seed in range(CASES[k]):
            case = random_case(np.random.default_rng([k, seed]), k)
            lengths |= {len(one.drafted) for one in auto(find("token"), case, unsure)}
        assert lengths == set(range(1, k + 1))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", ["token", "block"])
def test_dropping_the_token_below_the_threshold_is_caught(name: str, k: int) -> None:
    cases = [random_case(np.random.default_rng([k, seed]), k, least=1) for seed in range(10)]
    wrong = [dropping(RULES[name], case, unsure) != target_law(case) for case in cases]
    assert any(wrong)
    assert all(dropping(RULES[name], case, never) == target_law(case) for case in cases)


def test_block_accepts_no_less_than_token_when_lengths_vary() -> None:
    for seed in range(10):
        case = random_case(np.random.default_rng([3, seed]), 3)
        token, block = (
            expected_accepted(auto(RULES[name], case, unsure)) for name in ("token", "block")
        )
        assert block >= token


class Rows(Context):
    """A draft with given rows after every prefix, behind one token that does not matter."""

    def __init__(self, case: Case, lanes: int) -> None:
        self._case = case
        self._paths: list[Prefix] = [()] * lanes
        self.lengths = np.zeros(lanes, np.int64)

    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        rows = []
        for lane, (token,) in zip(lanes.tolist(), tokens.tolist(), strict=True):
            path = () if self.lengths[lane] == 0 else (*self._paths[lane], token)
            self._paths[lane] = path
            self.lengths[lane] += 1
            rows.append([float(x) for x in self._case.draft[path]])
        with np.errstate(divide="ignore"):
            return np.log(np.array(rows))[:, None]

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        self.lengths[lanes] = lengths

    def cache_bytes(self) -> int:
        return 0


class OneTokenTexts:
    def __init__(self, lanes: int) -> None:
        self.lengths = np.ones(lanes, np.int64)

    def tail(self, lane: int, count: int) -> Ints:
        return np.zeros(count, np.int64)


@pytest.mark.parametrize("lanes", [1, 400])
def test_what_is_drafted_stops_where_the_enumeration_says(lanes: int) -> None:
    generator, lengths = np.random.default_rng(1), set()
    for seed in range(40 if lanes == 1 else 4):
        case = random_case(np.random.default_rng([3, seed]), 3)
        u = generator.random((lanes, 3))
        proposals = propose(
            Rows(case, lanes), OneTokenTexts(lanes), np.arange(lanes), u, Sampling(), 0.4 - 1e-9
        )
        assert sorted(np.concatenate([one.lanes for one in proposals])) == list(range(lanes))
        for proposal in proposals:
            assert proposal.q is not None
            np.testing.assert_array_equal(proposal.u, u[proposal.lanes, : proposal.u.shape[1]])
            for path, rows in zip(proposal.drafted.tolist(), proposal.q, strict=True):
                assert stopped_at(case, unsure, tuple(path)) == len(path)
                expected = [case.draft[tuple(path[:i])] for i in range(len(path))]
                np.testing.assert_allclose(rows, np.array(expected, float), atol=1e-12)
                lengths.add(len(path))
    assert lengths == {1, 2, 3}


MODEL = tiny()
DRAFTS = drafts(MODEL)


@pytest.mark.parametrize("rule", RULES)
def test_drafted_tokens_are_what_was_drafted_alone_and_in_lanes(rule: str) -> None:
    (texts, steps, _, _), (alone, alone_steps, _, _) = (
        decode(MODEL, DRAFTS["int4"], 6, rule=rule, tokens=30, threshold=0.6, lanes=lanes)
        for lanes in (6, None)
    )
    one, other = counts.trace(steps, find(rule)), counts.trace(alone_steps, find(rule))
    assert counts.digest(one) == counts.digest(other)
    drafted = [r.drafted for r in other.rounds]
    assert [r.drafted for r in one.rounds] == drafted
    assert counts.metrics(other)["count/drafted"] == sum(drafted) < 6 * len(drafted)
    for step in alone_steps:
        chosen = np.take_along_axis(step.q[0], step.drafted[0][:, None], axis=1)[:, 0]
        ended = step.start[0] + len(chosen) + 1 == 30
        assert (chosen[:-1] >= 0.6).all() and (len(chosen) == 6 or ended or chosen[-1] < 0.6)
    plain, *_ = decode(MODEL, None, tokens=30)
    if rule == "match":
        np.testing.assert_array_equal(plain.emitted(), texts.emitted())
    assert len(alone.emitted()) == 30
