"""Jobs to measure with, and whole decodes of them with everything inside the clock."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline import config
from pipeline.clocks import Decode, Timed
from pipeline.compose import compose
from pipeline.context import Context, Ints
from pipeline.decode import autoregressive
from pipeline.sampling import Uniforms
from pipeline.spec import JobSpec
from pipeline.tree_decode import steps_of

K = 4


def specs(*settings: str) -> list[JobSpec]:
    """The jobs of a sweep's command line, at k=4, seed 0, one thread, unless it says otherwise."""
    usual = {"k": str(K), "seed": "0", "n_jobs": "1"}
    given = {setting.partition("=")[0] for setting in settings}
    line = [f"{key}={value}" for key, value in usual.items() if key not in given]
    return [config.to_spec(one.config) for one in compose([*line, *settings])]


def plain(timed: Timed, seed: int, target: Context | None = None) -> Decode:
    """Plain decoding from nothing: the context is opened and random numbers drawn by the decode.

    `target` stands for the context that would be opened.
    """
    texts = timed.texts()
    reader = target or timed.open_target(timed.prompt[:-1])
    return Decode(autoregressive(reader, texts, timed.method.sampling, Uniforms(seed)), texts)


def speculative(timed: Timed, seed: int, contexts: Sequence[Context] | None = None) -> Decode:
    """Speculative decoding from nothing. `contexts` stand for target and draft."""
    texts, read = timed.texts(), timed.prompt[:-1]
    target, draft = contexts or (timed.open_target(read), timed.open_draft(read))
    return Decode(steps_of(target, draft, texts, timed.method, Uniforms(seed)), texts)


def write(decode: Decode, tokens: int) -> Ints:
    """The whole text."""
    decode.advance(tokens)
    return decode.emitted()
