"""Costs of the parts of a round, on a machine whose clock only moves where work is done."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline import costs, pairs
from pipeline.clocks import Decode, Timed
from pipeline.context import Context, Drafted, Ints
from pipeline.costs import CostPlan, Costs
from pipeline.decode import Method
from pipeline.reading import open_texts
from pipeline.records import Round
from pipeline.sampling import Floats, Sampling, Uniforms
from pipeline.verify import find
from tests.fake_machine import CostlySampling, Machine, Reader
from tests.models import VOCAB, drafts, tiny

TOKENS, PROMPT = 60, np.array([0, 3, 1])


def job(machine: Machine, k: int, *, place_ns: int = 0, tokens: int = TOKENS) -> Timed:
    """A target of 90 us and 10 us a token, a draft of 20 us and 4 us a token, 3 us a row call."""
    sampling = CostlySampling(machine=machine, rows_ns=3_000)
    return Timed(
        open_target=lambda read: Reader(machine, read, 90_000, 10_000, place_ns, sharpness=1.2),
        open_draft=lambda read: Reader(machine, read, 20_000, 4_000),
        prompt=PROMPT,
        tokens=tokens,
        method=Method(k, find("token"), sampling),
        uniforms=Uniforms(3),
    )


def decoded(timed: Timed) -> tuple[Ints, list[Round]]:
    side: Decode = timed.speculative()
    rounds: list[Round] = []
    start = 0
    while start < timed.tokens:
        _, count = side.advance(start + 1)
        if not count:
            break
        emitted = tuple(side.emitted()[start : start + count].tolist())
        drafted = min(timed.method.k, timed.tokens - start - 1)
        rounds.append(Round(start, drafted, side.accepted[-1], emitted))
        start += count
    return side.emitted(), rounds


def measured(machine: Machine, timed: Timed) -> Costs:
    return costs.measure(timed, *decoded(timed), clock=machine.clock().wall)


@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_on_a_machine_without_noise_the_full_formula_is_exact(k: int) -> None:
    machine = Machine()
    timed = job(machine, k)
    plan = pairs.PairPlan(TOKENS, 2, piece_tokens=10, round_tokens=k + 1)
    found = pairs.measure(timed.baseline, timed.speculative, plan, machine.clock())
    _, rounds = decoded(timed)
    got = measured(machine, timed)
    predicted = got.predicted(TOKENS / len(rounds))
    assert predicted == pytest.approx(pairs.statistics(found.pairs).median, rel=1e-3)


def test_each_cost_is_that_of_its_own_part() -> None:
    machine = Machine()
    timed = job(machine, 4)
    _, rounds = decoded(timed)
    got = measured(machine, timed)
    assert got.target_pass_us == pytest.approx(90 + 10 + 3)
    assert got.verify_pass_us == pytest.approx(90 + 50 + 3)
    twos = sum(r.accepted == r.drafted and r.drafted > 0 for r in rounds[:-1])
    assert twos
    mean = sum(r.drafted for r in rounds) / len(rounds)
    assert got.drafted_mean == mean
    assert got.draft_token_us == pytest.approx(
        20 + 4 + 3 + 4 * twos / (mean * len(rounds)), rel=0.01
    )
    assert got.c == pytest.approx((got.draft_token_us or 0) / got.target_pass_us)
    assert got.loop_us == pytest.approx(0, abs=0.8)


def test_costs_are_taken_at_context_lengths_the_decode_visits() -> None:
    machine = Machine()
    opened: list[Reader] = []

    def watched(read: Ints) -> Context:
        opened.append(Reader(machine, read, 90_000, 10_000, place_ns=1_000))
        return opened[-1]

    timed = replace(job(machine, 4, place_ns=1_000), open_target=watched)
    emitted, rounds = decoded(timed)
    opened.clear()
    got = costs.measure(timed, emitted, rounds, CostPlan(lengths=4), machine.clock().wall)
    places = set(opened[0].places)
    measured_at = [place for place in places if place + 1 not in places]  # below: a read before
    assert len(measured_at) == 4
    assert len(PROMPT) - 1 <= min(measured_at) and max(places) + 5 <= len(PROMPT) + TOKENS
    middle = len(PROMPT) - 1 + TOKENS / 2
    assert got.target_pass_us == pytest.approx(103 + middle, rel=0.01)


def test_a_load_that_comes_and_goes_leaves_the_ratios_alone() -> None:
    quiet, loaded = Machine(), Machine(load=lambda now: 3.0 if now // 7_000_000 % 2 else 1.0)
    calm, rough = (measured(machine, job(machine, 4)) for machine in (quiet, loaded))
    assert rough.c == pytest.approx(calm.c, rel=0.02)
    assert rough.v == pytest.approx(calm.v, rel=0.02)


def test_with_nothing_drafted_there_is_no_c_and_a_round_costs_a_pass() -> None:
    machine = Machine()
    got = measured(machine, job(machine, 0))
    assert got.draft_token_us is None and got.c is None
    assert got.drafted_mean == 0
    assert got.predicted(1.0) == pytest.approx(1.0)
    assert got.predicted_simple(1.0, 0) == 1.0
    assert got.shares() == pytest.approx({"draft": 0, "verify": 1, "loop": 0})


@pytest.mark.parametrize(("k", "tokens"), [(8, 1), (8, 3), (2, 2), (0, 1)])
def test_short_texts_have_costs_too(k: int, tokens: int) -> None:
    machine = Machine()
    got = measured(machine, job(machine, k, tokens=tokens))
    assert got.target_pass_us == pytest.approx(103)
    assert got.predicted(1.0) > 0


def test_shares_of_a_round_sum_to_one_and_follow_the_formula() -> None:
    got = Costs(100.0, 120.0, 50.0, 30.0, drafted_mean=3.0)
    assert got.shares() == pytest.approx({"draft": 0.5, "verify": 0.4, "loop": 0.1})
    assert got.predicted(3.0) == pytest.approx(1.0)
    assert got.predicted_simple(3.0, 4) == pytest.approx(1.0)


def test_a_decode_without_rounds_has_no_costs() -> None:
    with pytest.raises(ValueError, match="there is no round"):
        costs.measure(job(Machine(), 2), np.empty(0, np.int64), [])


@pytest.mark.parametrize("name", ["bigram", "int8"])
@pytest.mark.parametrize(("tokens", "prompt"), [(30, PROMPT), (30, PROMPT[:1]), (1, PROMPT[:1])])
def test_real_models_and_steppers_agree_with_a_decode_in_one_go(
    name: str, tokens: int, prompt: Ints
) -> None:
    model = tiny()
    draft, room = drafts(model)[name], len(prompt) + tokens

    def open_draft(read: Ints) -> Context:
        opened: Context = draft.open(read, room, None, model.dtype)
        return opened

    timed = Timed(
        open_target=lambda read: open_texts(model, read, room, None),
        open_draft=open_draft,
        prompt=prompt,
        tokens=tokens,
        method=Method(3, find("token"), Sampling()),
        uniforms=Uniforms(0),
    )
    emitted, rounds = decoded(timed)
    whole = timed.speculative()
    assert whole.advance(tokens) == (len(rounds), tokens)
    assert whole.emitted().tolist() == emitted.tolist() and emitted.max() < VOCAB
    got = costs.measure(timed, emitted, rounds, CostPlan(lengths=2, repeats=2))
    assert got.predicted(tokens / len(rounds)) > 0
    assert sum(got.shares().values()) == pytest.approx(1)


def test_rounds_that_draft_fewer_have_a_verify_pass_of_their_own() -> None:
    machine = Machine()
    timed = job(machine, 8)
    emitted, _ = decoded(timed)
    rounds = [Round(4 * i, (8, 2, 0)[i % 3], 0, (0,)) for i in range(12)]
    got = costs.measure(timed, emitted, rounds, clock=machine.clock().wall)
    assert got.drafted_mean == pytest.approx(10 / 3)
    assert got.verify_pass_us == pytest.approx(90 + 10 * (9 + 3 + 1) / 3 + 3)
    assert got.draft_token_us == pytest.approx(20 + 4 + 3)


class AtOnce(Reader):
    """All tokens of a round for the price of one, as a table drafts them."""

    def chain(self, lanes: Ints, tokens: Ints, u: Floats, sampling: Sampling) -> Drafted | None:
        self.read(lanes, tokens)
        self.lengths[lanes] += u.shape[1] - 1
        drafted = np.zeros(u.shape, np.int64)
        return drafted, np.full((*u.shape, self.table.shape[0]), 1 / self.table.shape[0])


def test_what_is_drafted_at_once_is_shared_among_its_tokens() -> None:
    machine = Machine()
    timed = replace(
        job(machine, 4), open_draft=lambda read: AtOnce(machine, read, 20_000, 0, sharpness=0)
    )
    plan = pairs.PairPlan(TOKENS, 2, piece_tokens=10, round_tokens=5)
    found = pairs.measure(timed.baseline, timed.speculative, plan, machine.clock())
    emitted, rounds = decoded(timed)
    got = costs.measure(timed, emitted, rounds, clock=machine.clock().wall)
    assert got.draft_token_us == pytest.approx(20 / 4)
    predicted = got.predicted(TOKENS / len(rounds))
    assert predicted == pytest.approx(pairs.statistics(found.pairs).median, rel=0.01)
