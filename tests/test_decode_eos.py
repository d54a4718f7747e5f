"""The end of a text: wherever in a round it comes, nothing follows, and the law is the target's."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from pipeline import counts, distribution
from pipeline.decode import Step
from pipeline.exactness import Counts, Floats, g_test
from pipeline.sampling import Uniforms
from pipeline.verify import RULES
from pipeline.workbench import Run, Workbench
from tests.family import MODEL, bench, family
from tests.models import VOCAB

DRAFTS = {name: draft for name, draft in family().items() if name in ("bigram", "int4", "heads")}
LANES, TOKENS, K = 3000, 5, 3
EOS = 6
"""An id that the tiny target often writes, and its drafts often propose."""


def job(draft: str, rule: str) -> Workbench:
    return replace(bench(DRAFTS[draft], verify=rule, k=K, tokens=TOKENS), eos=EOS)


def decoded(found: Workbench, lanes: int = LANES) -> tuple[Run, list[Step]]:
    run = found.speculative(Uniforms(found.spec.seed, lanes, stream=7), lanes)
    steps = [step for step in run.steps if isinstance(step, Step)]  # a chain has no others
    return run, steps


def law(prompt: tuple[int, ...]) -> Floats:
    """Joint law of the next `TOKENS` characters, `(V,) * TOKENS`; after the end it repeats."""
    texts, found = np.zeros((1, 0), np.int64), np.ones(1)
    for _ in range(TOKENS):
        read = np.concatenate([np.tile(prompt, (len(texts), 1)), texts], axis=1)
        rows = torch.softmax(MODEL(torch.from_numpy(read))[:, -1], dim=-1).numpy()
        if texts.shape[1]:
            rows[texts[:, -1] == EOS] = np.eye(VOCAB)[EOS]
        found = (found[:, None] * rows).reshape(-1)
        following = np.tile(np.arange(VOCAB), len(texts))[:, None]
        texts = np.concatenate([np.repeat(texts, VOCAB, axis=0), following], axis=1)
    return found.reshape((VOCAB,) * TOKENS)


def tally(run: Run) -> Counts:
    ids = run.texts.ids[:, run.texts.prompt_length :].copy()
    for lane in range(LANES):
        ids[lane, len(run.texts.emitted(lane)) :] = EOS
    flat = np.ravel_multi_index(tuple(ids.T), (VOCAB,) * TOKENS)
    return np.bincount(flat, minlength=VOCAB**TOKENS).reshape((VOCAB,) * TOKENS)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("draft", DRAFTS)
def test_whole_texts_have_the_law_of_plain_decoding(draft: str, rule: str) -> None:
    found = job(draft, rule)
    run, steps = decoded(found)
    assert g_test(tally(run), law(tuple(found.prompt.tolist()))) > 1e-3
    for lane in range(0, LANES, 50):
        emitted = run.texts.emitted(lane).tolist()
        assert EOS not in emitted[:-1] and (len(emitted) == TOKENS or emitted[-1] == EOS)
        assert list(counts.trace(steps, found.rule, lane).tokens) == emitted
        assert not run.texts.ids[lane, run.texts.lengths[lane] :].any()  # nor written


@pytest.mark.parametrize("rule", RULES)
def test_the_end_was_met_at_every_place_of_a_round_and_in_every_way(rule: str) -> None:
    _, steps = decoded(job("bigram", rule), 20_000)
    ways = Counter(way for step in steps if step.drafted.shape[1] == K for way in ends(step))
    wanted = {("accepted", place) for place in range(K)} | {("drawn", K)}
    wanted |= {("rejected", place) for place in range(K)}
    wanted |= {("drawn after a rejection", place) for place in range(K)}
    assert wanted <= set(ways), wanted - set(ways)


def ends(step: Step) -> list[tuple[str, int]]:
    """How and at which place each lane's round met the end of text."""
    found = []
    for drafted, block, accepted, emitted in zip(
        step.drafted, step.block, step.accepted, step.emitted, strict=True
    ):
        assert emitted - accepted in (0, 1)
        last = int(emitted) - 1
        if block[last] == EOS:
            way = "drawn" if last == K else "drawn after a rejection"
            found.append(("accepted" if accepted == emitted else way, last))
        if accepted < emitted <= K and drafted[last] == EOS:
            found.append(("rejected", last))
    return found


@pytest.mark.parametrize("rule", RULES)
def test_the_checks_of_a_job_know_that_texts_end(rule: str) -> None:
    found = job("bigram", rule)
    laws = distribution.exact_laws(found)
    assert laws.p.sum() == pytest.approx(1) and laws.p[EOS, EOS] == pytest.approx(laws.p_first[EOS])
    drawn = distribution.first_tokens(found, 3000, distribution.PREFIX_STREAM)
    assert (drawn[drawn[:, 0] == EOS, 1] == EOS).all()
    assert distribution.joint_p_value(distribution.tally(drawn, VOCAB), laws) > 1e-3
    none = np.zeros(0, np.int64)
    assert distribution.pit_p_value(found, none, distribution.TEXT_STREAM, 100) > 1e-3
