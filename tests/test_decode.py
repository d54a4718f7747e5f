"""Plain and speculative decoding over the same target, cache and sampling code."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline import counts
from pipeline.decode import Method, Texts, speculative
from pipeline.drafts.bigram import BigramDraft
from pipeline.drafts.quantized import QuantizedDraft
from pipeline.reading import open_texts
from pipeline.sampling import Sampling, SeedBatch, Uniforms
from pipeline.verify import RULES, find
from tests.models import TINY, VOCAB, decode, drafts, tiny

MODEL = tiny()
DRAFTS = drafts(MODEL)


@pytest.mark.parametrize("name", DRAFTS)
@pytest.mark.parametrize("k", [0, 1, 3, 7])
@pytest.mark.parametrize("tokens", [1, 2, 5, 13])
def test_exactly_the_asked_number_is_emitted_and_counters_agree(
    name: str, k: int, tokens: int
) -> None:
    texts, steps, _, _ = decode(MODEL, DRAFTS[name], k, tokens=tokens)
    trace = counts.trace(steps, find("token"))
    assert len(trace.tokens) == tokens == len(texts.emitted())
    assert tuple(texts.emitted().tolist()) == trace.tokens
    assert sum(r.accepted for r in trace.rounds) + len(trace.rounds) == tokens
    assert all(r.drafted <= k and r.accepted <= r.drafted for r in trace.rounds)
    assert [r.start for r in trace.rounds] == np.cumsum(
        [0] + [len(r.emitted) for r in trace.rounds[:-1]]
    ).tolist()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", DRAFTS)
def test_rows_of_every_round_are_those_of_an_uncached_forward(rule: str, name: str) -> None:
    texts, steps, _, _ = decode(MODEL, DRAFTS[name], 4, rule=rule)
    for step in steps:
        at = texts.prompt_length + int(step.start[0])
        read = np.concatenate([texts.ids[0, :at], step.drafted[0]])
        logits = MODEL(torch.from_numpy(read[None])).numpy()[0, at - 1 :]
        np.testing.assert_allclose(step.p[0], Sampling().rows(logits), atol=1e-10)


def test_draft_rows_of_every_round_are_those_of_an_uncached_forward() -> None:
    texts, steps, _, _ = decode(MODEL, DRAFTS["same"], 4)
    _, int4_steps, _, _ = decode(MODEL, DRAFTS["int4"], 4)
    for step in steps:
        np.testing.assert_allclose(step.q, step.p[:, : step.q.shape[1]], atol=1e-10)
    int4 = DRAFTS["int4"]
    assert isinstance(int4, QuantizedDraft)
    rounded = int4._double
    texts4, _, _, _ = decode(MODEL, DRAFTS["int4"], 4)
    for step in int4_steps:
        at = texts4.prompt_length + int(step.start[0])
        read = np.concatenate([texts4.ids[0, :at], step.drafted[0]])
        logits = rounded(torch.from_numpy(read[None])).numpy()[0, at - 1 : -1]
        np.testing.assert_allclose(step.q[0], Sampling().rows(logits), atol=1e-10)


@pytest.mark.parametrize("name", DRAFTS)
def test_both_caches_are_cut_to_what_was_committed(name: str) -> None:
    ids = np.array([2, 5], np.int64)
    texts, target = Texts(ids, 25), open_texts(MODEL, ids[:-1], 27, None)
    draft = DRAFTS[name].open(ids[:-1], 27, None, MODEL.dtype)
    method = Method(3, find("token"), Sampling())
    for step in speculative(target, draft, texts, method, Uniforms(1)):
        committed = int(texts.lengths[0])
        assert target.lengths[0] == committed - 1
        drafted = step.drafted.shape[1]
        if drafted:  # a plain target step leaves the draft where it was
            full = bool(step.accepted[0] == drafted)
            assert committed - 1 - draft.lengths[0] == (1 if full else 0)


def test_an_identical_draft_accepts_everything() -> None:
    for seed in range(12):
        _, steps, _, _ = decode(MODEL, DRAFTS["same"], 5, seed=seed, tokens=43)
        assert all((s.accepted == s.drafted.shape[1]).all() for s in steps)


@pytest.mark.parametrize("k", [1, 2, 6])
@pytest.mark.parametrize("name", DRAFTS)
def test_match_emits_the_very_text_of_plain_decoding(name: str, k: int) -> None:
    plain, *_ = decode(MODEL, None, seed=3, tokens=40)
    texts, *_ = decode(MODEL, DRAFTS[name], k, rule="match", seed=3, tokens=40)
    np.testing.assert_array_equal(plain.emitted(), texts.emitted())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", DRAFTS)
def test_greedy_equals_the_targets_greedy_text(rule: str, name: str) -> None:
    greedy = Sampling(temperature=0)
    plain, *_ = decode(MODEL, None, sampling=greedy, tokens=40)
    texts, *_ = decode(MODEL, DRAFTS[name], 4, rule=rule, sampling=greedy, tokens=40)
    np.testing.assert_array_equal(plain.emitted(), texts.emitted())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["bigram", "int4"])
def test_a_lane_of_a_batch_equals_the_text_alone(rule: str, name: str) -> None:
    texts, steps, _, _ = decode(MODEL, DRAFTS[name], 3, rule=rule, lanes=8, tokens=30)
    alone, alone_steps, _, _ = decode(MODEL, DRAFTS[name], 3, rule=rule, tokens=30)
    assert counts.digest(counts.trace(steps, find(rule))) == counts.digest(
        counts.trace(alone_steps, find(rule))
    )
    assert len({tuple(row) for row in texts.ids.tolist()}) > 4
    np.testing.assert_array_equal(texts.ids[0], alone.ids[0])


def test_a_batch_of_seeds_equals_the_seeds_one_by_one() -> None:
    ids = np.array([1, 2], np.int64)
    texts = Texts(ids, 20, lanes=3)
    target = open_texts(MODEL, ids[:-1], 22, 3)
    draft = DRAFTS["int4"].open(ids[:-1], 22, 3, MODEL.dtype)
    method = Method(4, find("token"), Sampling())
    for _ in speculative(target, draft, texts, method, SeedBatch([5, 0, 2])):
        pass
    for lane, seed in enumerate((5, 0, 2)):
        alone, *_ = decode(MODEL, DRAFTS["int4"], 4, prompt=(1, 2), seed=seed)
        np.testing.assert_array_equal(texts.ids[lane], alone.ids[0])


def test_the_same_job_twice_has_the_same_digest_and_another_seed_another() -> None:
    digests = [
        counts.digest(counts.trace(decode(MODEL, DRAFTS["int4"], 3, seed=seed)[1], find("token")))
        for seed in (0, 0, 1)
    ]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("prompt_length", [1, TINY.context - 1])
def test_prompts_of_one_and_of_almost_the_context_are_read(prompt_length: int) -> None:
    prompt = tuple(i % VOCAB for i in range(prompt_length))
    tokens = TINY.context - prompt_length + 1  # the last is emitted and never read
    texts, *_ = decode(MODEL, DRAFTS["int8"], 4, prompt=prompt, tokens=tokens)
    assert len(texts.emitted()) == tokens


def test_a_text_beyond_the_context_is_an_error_and_never_a_wrong_position() -> None:
    with pytest.raises(ValueError, match="beyond the cache"):
        decode(MODEL, DRAFTS["int8"], 4, tokens=TINY.context)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", DRAFTS)
@pytest.mark.parametrize("lanes", [None, 16])
def test_nothing_follows_the_end_of_text(rule: str, name: str, lanes: int | None) -> None:
    for eos in range(VOCAB):
        texts, steps, _, _ = decode(
            MODEL, DRAFTS[name], 4, rule=rule, eos=eos, tokens=30, lanes=lanes, seed=eos
        )
        for lane in range(lanes or 1):
            emitted = texts.emitted(lane).tolist()
            assert eos not in emitted[:-1]
            assert len(emitted) == 30 or emitted[-1] == eos
            trace = counts.trace(steps, find(rule), lane)
            assert list(trace.tokens) == emitted
            for r in trace.rounds:
                assert len(r.emitted) - r.accepted in (0, 1)
                assert r.accepted <= r.drafted


def test_an_always_wrong_draft_yields_one_target_token_a_pass() -> None:
    greedy = Sampling(temperature=0)
    plain, *_ = decode(MODEL, None, sampling=greedy)
    wrong = np.full((VOCAB, VOCAB), 1e-9)
    text = [1, *plain.emitted().tolist()]
    for here, following in zip(text, text[1:], strict=False):
        wrong[here, (following + 1) % VOCAB] = 1.0
    texts, steps, _, _ = decode(MODEL, BigramDraft(wrong), 3, sampling=greedy)
    np.testing.assert_array_equal(texts.emitted(), plain.emitted())
    assert len(steps) >= len(texts.emitted()) - 5
