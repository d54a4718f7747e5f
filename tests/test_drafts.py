"""What every draft promises, whatever it is made of."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline import counts, distribution
from pipeline.sampling import Sampling
from pipeline.verify import RULES, find
from tests.family import MODEL, bench, family
from tests.models import VOCAB, decode

DRAFTS = family()
PROMPTS = [(2,), (0, 3, 1)]
TEXT_ONLY = [name for name in DRAFTS if name != "heads"]
"""Drafts whose rows depend on the text before them alone, not also on where the round began."""


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("name", TEXT_ONLY)
def test_rows_of_every_round_are_those_of_one_fresh_read(name: str, prompt: tuple[int]) -> None:
    texts, steps, _, _ = decode(MODEL, DRAFTS[name], 5, prompt=prompt, tokens=25)
    for step in steps:
        at = texts.prompt_length + int(step.start[0])
        read = np.concatenate([texts.ids[0, :at], step.drafted[0]])
        fresh = DRAFTS[name].open(read[:0], len(read), None, MODEL.dtype)
        rows = Sampling().rows(fresh.read(np.zeros(1, np.int64), read[None]))[0, at - 1 : -1]
        np.testing.assert_allclose(step.q[0], rows, atol=1e-10)


@pytest.mark.parametrize("name", DRAFTS)
def test_rows_are_probabilities_and_the_drafted_token_has_some(name: str) -> None:
    _, steps, _, _ = decode(MODEL, DRAFTS[name], 5, tokens=25, lanes=8)
    drafted = 0
    for step in steps:
        assert (step.q >= 0).all()
        np.testing.assert_allclose(step.q.sum(axis=-1), 1, atol=1e-12)
        assert (np.take_along_axis(step.q, step.drafted[..., None], axis=-1) > 0).all()
        drafted += step.drafted.size
    assert drafted > 0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", DRAFTS)
@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_lane_of_many_equals_the_text_alone(name: str, rule: str, prompt: tuple[int]) -> None:
    texts, steps, _, _ = decode(MODEL, DRAFTS[name], 4, rule=rule, lanes=6, prompt=prompt)
    alone, alone_steps, _, _ = decode(MODEL, DRAFTS[name], 4, rule=rule, prompt=prompt)
    one, other = (counts.trace(each, find(rule)) for each in (steps, alone_steps))
    assert [r.drafted for r in one.rounds] == [r.drafted for r in other.rounds]
    assert counts.digest(one) == counts.digest(other)
    np.testing.assert_array_equal(texts.ids[0], alone.ids[0])


@pytest.mark.parametrize("name", DRAFTS)
def test_match_emits_the_very_text_of_plain_decoding(name: str) -> None:
    plain, *_ = decode(MODEL, None, seed=3, tokens=30)
    texts, *_ = decode(MODEL, DRAFTS[name], 4, rule="match", seed=3, tokens=30)
    np.testing.assert_array_equal(plain.emitted(), texts.emitted())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", DRAFTS)
def test_greedy_equals_the_targets_greedy_text(name: str, rule: str) -> None:
    greedy = Sampling(temperature=0)
    plain, *_ = decode(MODEL, None, sampling=greedy, tokens=30)
    texts, *_ = decode(MODEL, DRAFTS[name], 4, rule=rule, sampling=greedy, tokens=30)
    np.testing.assert_array_equal(plain.emitted(), texts.emitted())


@pytest.mark.parametrize("name", DRAFTS)
@pytest.mark.parametrize("eos", range(0, VOCAB, 3))
def test_nothing_follows_the_end_of_text(name: str, eos: int) -> None:
    for lanes in (None, 5):
        texts, steps, _, _ = decode(MODEL, DRAFTS[name], 4, eos=eos, tokens=25, lanes=lanes)
        for lane in range(lanes or 1):
            emitted = texts.emitted(lane).tolist()
            assert eos not in emitted[:-1] and (len(emitted) == 25 or emitted[-1] == eos)
            assert list(counts.trace(steps, find("token"), lane).tokens) == emitted


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", DRAFTS)
def test_the_first_two_characters_have_the_targets_law(name: str, rule: str) -> None:
    job = bench(DRAFTS[name], verify=rule)
    laws = distribution.exact_laws(job)
    drawn = distribution.first_tokens(job, 2000, distribution.PREFIX_STREAM)
    assert distribution.joint_p_value(distribution.tally(drawn, VOCAB), laws) > 1e-3
    none = np.zeros(0, np.int64)
    assert distribution.pit_p_value(job, none, distribution.TEXT_STREAM, 8) > 1e-3


@pytest.mark.parametrize("name", DRAFTS)
def test_memory_is_the_same_in_every_run(name: str) -> None:
    found = []
    for _ in range(2):
        _, _, target, draft = decode(MODEL, DRAFTS[name], 4, tokens=25)
        assert draft is not None
        found.append((target.cache_bytes(), draft.cache_bytes(), draft.extra_bytes()))
        assert all(isinstance(value, int) and value >= 0 for value in found[-1])
    assert found[0] == found[1]
    assert DRAFTS[name].weight_bytes() >= 0
    assert DRAFTS[name].keeps
