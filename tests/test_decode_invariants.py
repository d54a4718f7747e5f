"""What holds after every round of any decode, on configurations that nobody chose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import counts, distribution
from pipeline.context import Context, Logits
from pipeline.decode import Method, Step, Texts, speculative
from pipeline.drafts import Draft
from pipeline.model import CharTransformer, ModelConfig
from pipeline.reading import open_texts
from pipeline.sampling import Ints, Sampling, Uniforms
from pipeline.verify import RULES, find
from tests.family import MODEL, bench, family
from tests.models import TINY, VOCAB, Same, decode

DRAFTS: dict[str, Any] = {**family(), "same": Same(MODEL)}
SAMPLINGS = [Sampling(), Sampling(0.5), Sampling(top_k=3), Sampling(1.5, 5, 0.9), Sampling(0)]
CHECKED = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@dataclass(frozen=True)
class Config:
    """One decode; `lanes=None` is a text alone."""

    draft: str
    rule: str
    k: int
    prompt: tuple[int, ...]
    tokens: int
    seed: int
    sampling: Sampling
    eos: int | None
    lanes: int | None


@st.composite
def configs(draw: st.DrawFn) -> Config:
    k = draw(st.integers(0, 7))
    longest = TINY.context - 1
    length = draw(st.sampled_from([1, 2, 3, 9, longest]))
    tokens = min(draw(st.integers(1, 2 * max(k, 1))), TINY.context - length + 1)
    return Config(
        draft=draw(st.sampled_from(sorted(DRAFTS))),
        rule=draw(st.sampled_from(sorted(RULES))),
        k=k,
        prompt=tuple(draw(st.integers(0, VOCAB - 1)) for _ in range(min(length, 9)))
        + (2,) * (length - min(length, 9)),
        tokens=tokens,
        seed=draw(st.integers(0, 2**40)),
        sampling=draw(st.sampled_from(SAMPLINGS)),
        eos=draw(st.sampled_from([None, 0, 4])),
        lanes=draw(st.sampled_from([None, 3])),
    )


@given(configs())
@CHECKED
def test_counters_add_up_and_the_text_has_its_length(config: Config) -> None:
    texts, steps, _, _ = run(config)
    for lane in range(config.lanes or 1):
        emitted = texts.emitted(lane).tolist()
        trace = counts.trace(steps, find(config.rule), lane)
        assert list(trace.tokens) == emitted
        ended = config.eos is not None and emitted[-1] == config.eos
        assert len(emitted) == config.tokens or (ended and len(emitted) < config.tokens)
        cut = sum(r.accepted == len(r.emitted) for r in trace.rounds)
        assert len(emitted) == sum(r.accepted for r in trace.rounds) + len(trace.rounds) - cut
        assert cut <= ended and all(r.accepted <= r.drafted <= config.k for r in trace.rounds)
        starts = np.cumsum([0, *(len(r.emitted) for r in trace.rounds)])
        assert [r.start for r in trace.rounds] == starts[:-1].tolist()
        figures = counts.metrics(trace)
        assert figures["count/emitted"] == len(emitted)
        assert figures["count/rounds"] == len(trace.rounds) == figures["count/target_passes"]
        joint = counts.by_position(trace)["count/accept_joint"]
        assert all(0 <= rate <= 1 for _, rate in joint)


@given(configs())
@CHECKED
def test_caches_after_every_round_equal_an_uncached_forward(config: Config) -> None:
    prompt = np.array(config.prompt, np.int64)
    texts = Texts(prompt, config.tokens, config.lanes or 1, config.eos)
    room = len(prompt) + config.tokens
    target = open_texts(MODEL, prompt[:-1], room, config.lanes)
    draft = DRAFTS[config.draft].open(prompt[:-1], room, config.lanes, MODEL.dtype)
    method = Method(config.k, find(config.rule), config.sampling)
    for step in speculative(target, draft, texts, method, Uniforms(config.seed, config.lanes or 1)):
        for lane in step.lanes.tolist():
            assert target.lengths[lane] == texts.lengths[lane] - 1
            assert draft.lengths[lane] <= texts.lengths[lane] - 1
            compare(target, MODEL, texts, lane)
            if own := own_model(config.draft):
                compare(draft, own, texts, lane)


def run(config: Config) -> tuple[Texts, list[Step], Context, Context | None]:
    return decode(
        MODEL,
        DRAFTS[config.draft],
        config.k,
        prompt=config.prompt,
        tokens=config.tokens,
        seed=config.seed,
        rule=config.rule,
        sampling=config.sampling,
        eos=config.eos,
        lanes=config.lanes,
    )


def own_model(draft: str) -> CharTransformer | None:
    """The transformer that a draft reads with, where its cache is all its own."""
    if draft == "same":
        return MODEL
    if draft == "int4":
        made: CharTransformer = DRAFTS["int4"]._double
        return made
    return None


def compare(context: Context, model: CharTransformer, texts: Texts, lane: int) -> None:
    """Read on from the cache, compare with a forward pass over the text, and take it back."""
    lanes, kept = np.array([lane]), int(context.lengths[lane])
    if texts.lengths[lane] > min(TINY.context, texts.ids.shape[1] - 1):
        return  # nothing more can be read
    tail = texts.ids[lane, kept : texts.lengths[lane]]
    cached = context.read(lanes, tail[None])[0, -1]
    context.crop(lanes, np.array([kept]))
    whole = torch.from_numpy(texts.ids[lane : lane + 1, : texts.lengths[lane]])
    np.testing.assert_allclose(cached, model(whole)[0, -1].numpy(), atol=1e-9)


def test_an_identical_draft_accepts_everything_for_500_tokens() -> None:
    torch.manual_seed(4)
    config = ModelConfig(vocab=VOCAB, context=520, layers=2, heads=2, width=16)
    model = CharTransformer(config).double().eval().requires_grad_(False)
    sampling = Sampling(0.9, 6, 0.95)
    for rule in ("token", "block"):  # two draws of `match` agree only by chance
        _, steps, _, _ = decode(
            model, Same(model), 6, tokens=500, seed=2, rule=rule, sampling=sampling
        )
        assert all((step.accepted == step.drafted.shape[1]).all() for step in steps)
        assert len(steps) == -(-500 // 7)


class Contrary(Draft):
    """Proposes what the target finds least probable."""

    keeps = "a copy of the target"

    def open(self, prompt: Ints, capacity: int, lanes: int | None, dtype: torch.dtype) -> Context:
        return Reversed(open_texts(MODEL, prompt, capacity, lanes))

    def weight_bytes(self) -> int:
        return 0


class Reversed(Context):
    """A context whose logits have the other sign."""

    def __init__(self, inner: Context) -> None:
        self._inner, self.lengths = inner, inner.lengths

    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        return -self._inner.read(lanes, tokens)

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        self._inner.crop(lanes, lengths)

    def cache_bytes(self) -> int:
        return 0


@pytest.mark.parametrize("rule", RULES)
def test_a_draft_that_is_always_wrong_yields_the_targets_law_at_one_token_a_pass(rule: str) -> None:
    job = bench(Contrary(), verify=rule, top_k=3)  # of 7: no character is allowed by both
    trace = counts.trace(job.speculative(Uniforms(0)).steps, job.rule)
    assert [len(r.emitted) for r in trace.rounds] == [1] * job.spec.tokens
    assert max(trace.alpha) == 0
    laws = distribution.exact_laws(job)
    assert not (laws.p * laws.q).any()
    drawn = distribution.first_tokens(job, 3000, distribution.PREFIX_STREAM)
    assert distribution.joint_p_value(distribution.tally(drawn, VOCAB), laws) > 1e-3
    none = np.zeros(0, np.int64)
    assert distribution.pit_p_value(job, none, distribution.TEXT_STREAM, 60) > 1e-3
