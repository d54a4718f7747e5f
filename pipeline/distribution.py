"""Is a job's output distributed as the target's? Drawn through its own decoder, many times over.

Two samples: the first two characters after the prompt, drawn `draws` times (total variation,
G-test, directed leak test), and whole texts (PIT). Their uniforms come from streams of their own,
so they are neither the job's text nor each other's, nor another k's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from pipeline import exactness, leak
from pipeline.context import Ints
from pipeline.reading import open_texts
from pipeline.sampling import Floats, Uniforms
from pipeline.spec import JobSpec
from pipeline.tree_decode import drafted_tokens
from pipeline.workbench import Workbench

PREFIX_STREAM, TEXT_STREAM, AGAIN_STREAM = 1, 2, 3
STREAMS = 4  # a k: numbers of streams are set apart by it
LANE_PLACES = 40_000  # positions decoded side by side: bounds the memory of their prefixes and rows
WHOLE = 2000  # draws that are always decoded with rounds of the job's own k
PIT_TEXTS, PIT_TOKENS = 32, 64
EMITTED = 2  # characters of the joint law
FRONT_TO_BACK = ("token", "match", "specinfer", "sequoia")
"""Rules under which a character depends on the drafted ones up to it, never on later ones."""


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
    laws = exact_laws(bench)
    counts = tally(first_tokens(bench, bench.spec.draws, PREFIX_STREAM), len(laws.p_first))
    return {
        **compare(counts, laws, bench.spec.seed),
        "dist/pit_p_value": pit_p_value(bench, own_text, TEXT_STREAM, PIT_TEXTS),
    }


def compare(counts: Ints, laws: Laws, seed: int) -> dict[str, float]:
    """What drawn pairs `counts (V, V)` say; `seed` is that of the simulated null."""
    draws = int(counts.sum())
    generator = np.random.Generator(np.random.Philox(key=seed))
    median, high = exactness.tv_null(laws.p_first, draws, generator)
    return {
        "dist/draws": draws,
        "dist/tv": exactness.total_variation(counts.sum(axis=1), laws.p_first),
        "dist/tv_null_median": median,
        "dist/tv_null_p95": high,
        "dist/p_value": joint_p_value(counts, laws),
        # half the level each: the p-value is the smaller of two, doubled
        "dist/detectable_leak": leak.detectable_leak(laws.p, laws.q, draws, level=0.025),
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


def first_tokens(bench: Workbench, draws: int, stream: int, first: int = 0) -> Ints:
    """The first two characters after the prompt, `(draws, 2)`, each decoded with the job's k.

    `first`, a multiple of 4, numbers the first draw: chunks put together are one sample.

    Under a rule that goes front to back, what is drafted beyond the second place cannot change the
    first two characters. So most draws draft only two, with the very uniforms of the long rounds;
    the `WHOLE` first ones are decoded both ways, and unless the characters are the same, each and
    every one, all draws are made the long way.
    """
    k = longest(bench)
    if bench.spec.verify not in FRONT_TO_BACK or k <= EMITTED:
        return _decoded(bench, k, first, draws, stream)
    some = min(draws, WHOLE)
    whole = _decoded(bench, k, first, some, stream)
    short = _decoded(bench, EMITTED, first, some, stream)
    k = EMITTED if np.array_equal(whole, short) else k
    rest = _decoded(bench, k, first + some, draws - some, stream)
    return np.concatenate([whole, rest])


def _decoded(bench: Workbench, k: int, first: int, draws: int, stream: int) -> Ints:
    """First two characters `(draws, 2)` of texts long enough for two whole rounds of k."""
    streams = stream + STREAMS * bench.spec.k
    job = replace(bench, spec=replace(bench.spec, k=k))
    places = drafted_tokens(job.method) + 1
    prompt, step = opening(bench), max(LANE_PLACES // places // 4 * 4, 4)
    out = np.empty((draws, EMITTED), np.int64)
    for at in range(0, draws, step):
        lanes = min(step, draws - at)
        uniforms = Uniforms(bench.spec.seed, lanes, first + at, streams)
        run = job.speculative(uniforms, lanes, prompt, k + EMITTED)
        for one in run.steps:
            done = run.texts.lengths[one.lanes] - len(prompt) >= EMITTED
            run.texts.stop(one.lanes[done])  # what follows is not asked for
        out[at : at + lanes] = run.texts.ids[:, len(prompt) : len(prompt) + EMITTED]
    if bench.eos is not None:
        out[out[:, 0] == bench.eos, 1] = bench.eos
    return out


def longest(bench: Workbench) -> int:
    """The most tokens that a round of the job drafts, and that fit twice into the context."""
    spec = bench.spec
    return max(0, min(spec.k, spec.tokens - 1, bench.target.cfg.context - EMITTED))


def opening(bench: Workbench) -> Ints:
    """The prompt, its front cut off where it leaves no room for two whole rounds after it."""
    return bench.prompt[-(bench.target.cfg.context - (longest(bench) + EMITTED) + 1) :]


def drawn_pairs(job: JobSpec, first: int, draws: int) -> Ints:
    """In a worker: how often each pair was drawn among those numbered `first` and on, `(V, V)`."""
    torch.set_num_threads(1)
    bench = Workbench.of(job, torch.float64)
    return tally(first_tokens(bench, draws, PREFIX_STREAM, first), bench.target.cfg.vocab)


def laws_and_texts(job: JobSpec, texts: int) -> tuple[Laws, float]:
    """The laws that pairs follow, and the p-value of the PIT of `texts` whole texts."""
    torch.set_num_threads(1)
    bench = Workbench.of(job, torch.float64)
    none = np.zeros(0, np.int64)
    return exact_laws(bench), pit_p_value(bench, none, TEXT_STREAM, texts)


def tally(pairs: Ints, vocab: int) -> Ints:
    """How often each pair of characters was drawn, `(V, V)`."""
    return np.bincount(pairs[:, 0] * vocab + pairs[:, 1], minlength=vocab**2).reshape(vocab, vocab)


def exact_laws(bench: Workbench) -> Laws:
    """The laws of `Laws`, from rows of the models themselves: no sampling in them."""
    vocab, dtype = bench.target.cfg.vocab, bench.target.dtype
    prompt = opening(bench)
    capacity = len(prompt) + EMITTED
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
    streams = stream + STREAMS * bench.spec.k
    run = bench.speculative(Uniforms(bench.spec.seed, texts, stream=streams), texts, tokens=tokens)
    for _ in run.steps:
        pass
    emitted = [run.texts.emitted(lane) for lane in range(texts)]
    if len(own_text):
        emitted.append(own_text)
    fresh = Uniforms(bench.spec.seed, len(emitted) + -len(emitted) % 4, stream=streams)
    u = [fresh.block("pit", at)[lane, 0] for lane, x in enumerate(emitted) for at in range(len(x))]
    p, q = (np.concatenate(rows) for rows in zip(*(_rows(bench, x) for x in emitted), strict=True))
    return exactness.pit_test(p, q, np.concatenate(emitted), np.array(u))


@torch.inference_mode()
def _rows(bench: Workbench, text: Ints) -> tuple[Floats, Floats]:
    """p and q `(T, V)` before each token of `text (T,)`."""
    whole = np.concatenate([bench.prompt, text])[:-1]
    logits = bench.target(torch.from_numpy(whole[None])).numpy()[0, len(bench.prompt) - 1 :]
    reader = bench.draft.open(bench.prompt[:-1], len(whole) + 1, None, bench.target.dtype)
    guesses = reader.read(np.zeros(1, np.int64), whole[None, len(bench.prompt) - 1 :])[0]
    return bench.spec.sampling.rows(logits), bench.spec.sampling.rows(guesses)
