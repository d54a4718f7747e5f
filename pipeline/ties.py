"""Do two decodes of one job write the same text, and how near were they to parting?

Greedy decoding, top-k and top-p decide by comparing logits or sums with one another. Where two are
nearly equal, rounding decides: float32 and float64, or two ways of computing one product, can part.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch

from pipeline.context import Ints
from pipeline.sampling import Floats, Sampling, Uniforms
from pipeline.spec import JobSpec
from pipeline.workbench import Workbench


@dataclass(frozen=True)
class TwoTexts:
    """What plain and speculative decoding of one job wrote, in float64, and their target passes."""

    plain: str
    plain_passes: int
    speculative: str
    passes: int


def two_texts(job: JobSpec) -> TwoTexts:
    """Decode a job both ways. ValueError, one sentence, for a job that cannot be."""
    torch.set_num_threads(1)
    bench = Workbench.of(job, torch.float64)
    plain, fast = bench.plain(Uniforms(job.seed)), bench.speculative(Uniforms(job.seed))
    plain_passes, passes = sum(1 for _ in plain.steps), sum(1 for _ in fast.steps)
    decode = bench.vocabulary.decode
    return TwoTexts(
        decode(plain.texts.emitted()), plain_passes, decode(fast.texts.emitted()), passes
    )


def departure(bench: Workbench, counted: Ints, timed: Ints) -> str | None:
    """Where a greedy text `timed` first differs from the one counted in float64; None: nowhere.

    With it the gap there between the two largest of the target's logits, in float64.
    """
    length = min(len(counted), len(timed))
    differ = np.flatnonzero(counted[:length] != timed[:length])
    if not len(differ):
        return None
    at, known = int(differ[0]), bench.vocabulary.chars
    target = copy.deepcopy(bench.target).double()
    gap = top_two_gaps(_logits(target, bench.prompt, counted[: at + 1]))[-1]
    return (
        f"greedy: the timed float32 text departs from the counted one at character {at + 1}, "
        f"{known[timed[at]]!r} instead of {known[counted[at]]!r}; the target's two largest logits "
        f"there are {gap:.1e} apart"
    )


def gaps(bench: Workbench, text: Ints) -> Floats:
    """The gaps `(T,)`, at most 1, at which greedy, top-k or top-p chose along `text (T,)`.

    The smaller one of target and draft; empty where nothing was cut. Equal logits are no near tie:
    they come from equal counts in a table, are equal on every machine, and the lower id goes first.
    """
    sampling = bench.spec.sampling
    if not len(text) or (sampling.temperature and sampling.top_k is None and sampling.top_p == 1):
        return np.zeros(0)
    whole = np.concatenate([bench.prompt, text])[:-1]
    reader = bench.draft.open(bench.prompt[:-1], len(whole) + 1, None, bench.target.dtype)
    guesses = reader.read(np.zeros(1, np.int64), whole[None, len(bench.prompt) - 1 :])[0]
    both = np.stack([_logits(bench.target, bench.prompt, text), guesses])
    found = cut_gaps(sampling, both.reshape(-1, both.shape[-1])).reshape(2, -1)
    least: Floats = np.where(found > 0, found, 1.0).min(axis=0, initial=1.0)
    return least


def cut_gaps(sampling: Sampling, logits: Floats) -> Floats:
    """How near each row `(T, V)` came to another choice of the ids that are kept, `(T,)`."""
    if sampling.temperature == 0:
        return top_two_gaps(logits)
    gaps, vocab = np.ones(len(logits)), logits.shape[1]
    if sampling.top_k is not None and sampling.top_k < vocab:
        gaps = np.minimum(gaps, _gaps(logits / sampling.temperature, sampling.top_k))
    if sampling.top_p < 1:
        rows = -np.sort(-Sampling(sampling.temperature, sampling.top_k).rows(logits), axis=1)
        before = rows.cumsum(axis=1)[:, :-1]
        gaps = np.minimum(gaps, np.abs(before - sampling.top_p).min(axis=1))
    return gaps


def top_two_gaps(logits: Floats) -> Floats:
    """Largest less second largest of each row `(T, V)`, `(T,)`."""
    return _gaps(logits, 1)


def _gaps(logits: Floats, place: int) -> Floats:
    """Between the `place` largest of each row and the next; 1 where both are impossible."""
    ranked = -np.sort(-logits, axis=1)
    above, below = ranked[:, place - 1], ranked[:, place]
    possible = np.isfinite(above)
    gaps: Floats = np.where(possible, np.where(possible, above, 0) - below, 1.0)
    return gaps


@torch.inference_mode()
def _logits(target: torch.nn.Module, prompt: Ints, text: Ints) -> Floats:
    whole = np.concatenate([prompt, text])[:-1]
    logits: Floats = target(torch.from_numpy(whole[None])).numpy()[0, len(prompt) - 1 :]
    return logits
