"""Is a job's output distributed as the target's? Drawn through its own decoder, many times over.

Two samples: the first two characters after the prompt, drawn `draws` times (total variation,
G-test, directed leak test), and whole texts (PIT). Their uniforms come from streams of their own,
so they are neither the job's text nor each other's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pipeline import exactness, leak
from pipeline.context import Ints, open_texts
from pipeline.sampling import Floats, Uniforms
from pipeline.workbench import Workbench

PREFIX_STREAM, TEXT_STREAM, AGAIN_STREAM = 1, 2, 3
LANES = 4000  # draws decoded side by side: bounds the memory of their shared prefixes
PIT_TEXTS, PIT_TOKENS = 32, 64
EMITTED = 2  # characters of the joint law


@dataclass(frozen=True)
class Laws:
    """Exact laws of the first two characters: one `(V,)` and joint `(V, V)`, of target and draft.

    After an end of text comes nothing; the law says so by repeating it with probability 1.
    """

    p_first: Floats
    p: Floats
    q: Floats


def metrics(bench: Workbench, own_text: Ints) -> dict[str, float]:
    """The `dist/` figures of a job whose decode emitted `own_text (T,)`."""
    draws, laws = bench.spec.draws, exact_laws(bench)
    counts = tally(first_tokens(bench, draws, PREFIX_STREAM), len(laws.p_first))
    generator = np.random.Generator(np.random.Philox(key=bench.spec.seed))
    median, high = exactness.tv_null(laws.p_first, draws, generator)
    return {
        "dist/draws": draws,
        "dist/tv": exactness.total_variation(counts.sum(axis=1), laws.p_first),
        "dist/tv_null_median": median,
        "dist/tv_null_p95": high,
        "dist/p_value": joint_p_value(counts, laws),
        # half the level each: the p-value is the smaller of two, doubled
        "dist/detectable_leak": leak.detectable_leak(laws.p, laws.q, draws, level=0.025),
        "dist/pit_p_value": pit_p_value(bench, own_text, TEXT_STREAM, PIT_TEXTS),
    }


def joint_p_value(counts: Ints, laws: Laws) -> float:
    """One p-value from the G-test over all cells and the test that looks along the draft's law."""
    return exactness.smaller_of_two(
        exactness.g_test(counts, laws.p, laws.q), leak.leak_test(counts, laws.p, laws.q)
    )


def recheck(bench: Workbench, times: int = 10) -> float:
    """A p-value from `times` as many draws and texts, on a stream nothing else reads."""
    laws = exact_laws(bench)
    pairs = first_tokens(bench, times * bench.spec.draws, AGAIN_STREAM)
    joint = joint_p_value(tally(pairs, len(laws.p_first)), laws)
    none = np.zeros(0, np.int64)
    return exactness.smaller_of_two(
        joint, pit_p_value(bench, none, AGAIN_STREAM, times * PIT_TEXTS)
    )


def first_tokens(bench: Workbench, draws: int, stream: int) -> Ints:
    """The first two characters after the prompt, `(draws, 2)`, each decoded with the job's k.

    Every text is long enough for two whole rounds, so no round is shortened; a text that has its
    two characters is not decoded further.
    """
    tokens = bench.spec.k + EMITTED
    prompt = bench.prompt[-(bench.target.cfg.context - tokens + 1) :]
    out = np.empty((draws, EMITTED), np.int64)
    for first in range(0, draws, LANES):
        lanes = min(LANES, draws - first)
        uniforms = Uniforms(bench.spec.seed, lanes, first, stream)
        run = bench.speculative(uniforms, lanes, prompt, tokens)
        for step in run.steps:
            done = run.texts.lengths[step.lanes] - len(prompt) >= EMITTED
            run.texts.stop(step.lanes[done])
        out[first : first + lanes] = run.texts.ids[:, len(prompt) : len(prompt) + EMITTED]
        if bench.eos is not None:
            ended = out[first : first + lanes, 0] == bench.eos
            out[first : first + lanes][ended, 1] = bench.eos
    return out


def tally(pairs: Ints, vocab: int) -> Ints:
    """How often each pair of characters was drawn, `(V, V)`."""
    return np.bincount(pairs[:, 0] * vocab + pairs[:, 1], minlength=vocab**2).reshape(vocab, vocab)


def exact_laws(bench: Workbench) -> Laws:
    """The laws of `Laws`, from rows of the models themselves: no sampling in them."""
    vocab, dtype = bench.target.cfg.vocab, bench.target.dtype
    capacity = min(len(bench.prompt) + EMITTED, bench.target.cfg.context)
    prompt = bench.prompt[-(capacity - 1) :]
    joint: list[Floats] = []
    first: list[Floats] = []
    for reader in (
        open_texts(bench.target, prompt[:-1], capacity, vocab),
        bench.draft.open(prompt[:-1], capacity, vocab, dtype),
    ):
        lanes = np.arange(vocab)
        last = np.full((vocab, 1), prompt[-1])
        row = bench.spec.sampling.rows(reader.read(lanes, last)[0, -1])
        then = bench.spec.sampling.rows(reader.read(lanes, lanes[:, None])[:, -1])
        if bench.eos is not None:
            then[bench.eos] = np.eye(vocab)[bench.eos]
        first.append(row)
        joint.append(row[:, None] * then)
    return Laws(first[0], joint[0], joint[1])


def pit_p_value(bench: Workbench, own_text: Ints, stream: int, texts: int) -> float:
    """KS p-value of the PIT of the job's text and of `texts` further ones.

    p and q are read off the finished texts, uncached and in one pass: the check shares no state
    with the decode it checks, and each row is a function of the text before it alone.
    """
    tokens = min(PIT_TOKENS, bench.spec.tokens)
    run = bench.speculative(Uniforms(bench.spec.seed, texts, stream=stream), texts, tokens=tokens)
    for _ in run.steps:
        pass
    emitted = [run.texts.emitted(lane) for lane in range(texts)]
    if len(own_text):
        emitted.append(own_text)
    fresh = Uniforms(bench.spec.seed, len(emitted) + -len(emitted) % 4, stream=stream)
    values = [
        _pit(bench, text, np.array([fresh.block("pit", at)[lane, 0] for at in range(len(text))]))
        for lane, text in enumerate(emitted)
    ]
    return exactness.uniform_p_value(np.concatenate(values))


@torch.inference_mode()
def _pit(bench: Workbench, text: Ints, u: Floats) -> Floats:
    whole = np.concatenate([bench.prompt, text])[:-1]
    logits = bench.target(torch.from_numpy(whole[None])).numpy()[0, len(bench.prompt) - 1 :]
    reader = bench.draft.open(bench.prompt[:-1], len(whole) + 1, None, bench.target.dtype)
    guesses = reader.read(np.zeros(1, np.int64), whole[None, len(bench.prompt) - 1 :])[0]
    rows = bench.spec.sampling.rows
    return exactness.pit(rows(logits), rows(guesses), text, u)
