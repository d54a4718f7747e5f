"""Our decoding against `generate` of Hugging Face transformers: same weights, same threads.

Both sides are whole calls: caches are made, the prompt is read and random numbers are drawn inside
the clock. Theirs drafts exactly k tokens a round with the small draft as assistant, as ours does.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch

from pipeline import job
from pipeline.bench import sides, turns
from pipeline.bench.compiled import try_compiled
from pipeline.bench.figures import Figure, Goal, Part
from pipeline.clocks import Decode, Timed
from pipeline.spec import JobSpec
from pipeline.weights import SHIPPED
from pipeline.weights.store import resolve

PLAIN, SPECULATIVE, COMPILED = Goal("at least", 2.5), Goal("at least", 4), Goal("at least", 5)
NAME = "against transformers"
ABSENT = (
    "transformers is not installed, so nothing was compared with it: "
    "install the extra with `pip install specsweep[hf]`, or run `make bench`"
)
Write = Callable[[], Sequence[int]]


@dataclass(frozen=True)
class Peer:
    """The same target and small draft as transformers' own GPT-2."""

    target: Any
    draft: Any
    version: str

    def write(self, spec: JobSpec, prompt: Sequence[int], seed: int, assisted: bool) -> list[int]:
        """`spec.tokens` ids after `prompt`, by one call of `generate`."""
        torch.manual_seed(seed)
        ids = torch.tensor([list(prompt)])
        how: dict[str, Any] = {"do_sample": False}
        if spec.temperature:
            how = {"do_sample": True, "temperature": spec.temperature, "top_k": 0, "top_p": 1.0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own settings among themselves
            out = self.target.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=spec.tokens,
                pad_token_id=0,
                assistant_model=self.draft if assisted else None,
                **how,
            )
        written: list[int] = out[0, len(prompt) :].tolist()
        return written

    def passes(self, call: Callable[[], object]) -> int:
        """How often `call` runs the target."""
        count = 0

        def hook(*_: object) -> None:
            nonlocal count
            count += 1

        with ExitStack() as stack:
            handle = self.target.register_forward_hook(hook)
            stack.callback(handle.remove)
            call()
        return count


def load(weights: str, k: int) -> Peer:
    """ImportError where transformers is not installed."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the weights are in a folder
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder = SHIPPED if weights == "shipped" else resolve(weights)
    kind = transformers.GPT2LMHeadModel
    target, draft = (kind.from_pretrained(folder / part).eval() for part in ("target", "small"))
    draft.generation_config.num_assistant_tokens = k
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0  # never stop early
    return Peer(target, draft, transformers.__version__)


def measure(count: int, tokens: int) -> Part:
    """Greedy and sampled, plain and speculative, `count` turns each."""
    greedy, sampled = (
        sides.specs("draft=small", f"tokens={tokens}", f"sampling.temperature={temperature}")[0]
        for temperature in (0, 1)
    )
    try:
        peer = load(greedy.weights, greedy.k)
    except ImportError:
        return Part(notes=(ABSENT,))
    parts = [compare(peer, spec, count) for spec in (greedy, sampled)]
    figures = tuple(figure for part in parts for figure in part.figures)
    notes = dict.fromkeys(note for part in parts for note in part.notes)  # each once
    return Part(figures, (f"transformers {peer.version}", *notes))


def compare(peer: Peer, spec: JobSpec, count: int) -> Part:
    """`count` turns of one job's plain and speculative decodes, ours and theirs."""
    bench, timed = job.timed_sides(spec)
    compiled, why_not = try_compiled(spec)
    prompt = bench.prompt.tolist()

    def theirs(assisted: bool) -> Write:
        seeds = itertools.count()
        return lambda: peer.write(spec, prompt, next(seeds), assisted)

    calls: dict[str, Write] = {
        "their plain": theirs(assisted=False),
        "our plain": _ours(sides.plain, timed, spec),
        "their speculative": theirs(assisted=True),
        "our speculative": _ours(sides.speculative, timed, spec),
    }
    if compiled is not None:
        calls["our compiled speculative"] = _ours(sides.speculative, compiled, spec)
    how = "greedy" if spec.temperature == 0 else "sampled"
    texts = {name: list(call()) for name, call in calls.items()}
    if trouble := unequal(texts, spec):
        return Part(notes=(f"{how}: not compared, {trouble}",))
    found = turns.alternate(calls, count)
    passes = {
        "their plain": peer.passes(calls["their plain"]),
        "their speculative": peer.passes(calls["their speculative"]),
        "our speculative": sum(1 for _ in _steps(timed, spec)),
    }
    notes = [_equality(how, texts, passes)] + ([why_not] if why_not else [])
    return Part(tuple(_figures(how, found, compiled is not None)), tuple(notes))


def _ours(opened: Callable[[Timed, int], Decode], timed: Timed, spec: JobSpec) -> Write:
    """Every call writes with random numbers of its own, as each of theirs does."""
    seeds = itertools.count()
    return lambda: sides.write(opened(timed, next(seeds)), spec.tokens).tolist()


def _steps(timed: Timed, spec: JobSpec) -> list[int]:
    decode = sides.speculative(timed, spec.seed)
    decode.advance(spec.tokens)
    return decode.accepted


def unequal(texts: dict[str, list[int]], spec: JobSpec) -> str:
    """Why these texts are no basis for comparing speeds; empty where they are.

    Greedy texts have to be the same, sampled ones as long as was asked for: random numbers differ.
    """
    for name, text in texts.items():
        if len(text) != spec.tokens:
            return f"{name} wrote {len(text)} of {spec.tokens} characters"
    if spec.temperature:
        return ""
    (first, one), *others = texts.items()
    for name, other in others:
        for at, (a, b) in enumerate(zip(one, other, strict=True)):
            if a != b:
                return f"{name} departs from {first} at character {at + 1}"
    return ""


def _equality(how: str, texts: dict[str, list[int]], passes: dict[str, int]) -> str:
    length = len(next(iter(texts.values())))
    same = (
        f"all wrote the same {length} characters"
        if how == "greedy"
        else f"all wrote {length} characters, each with random numbers of its own"
    )
    told = ", ".join(f"{name} {count}" for name, count in passes.items())
    return f"{how}: {same}; target passes: {told}"


def _figures(how: str, found: list[turns.Turn], compiled: bool) -> list[Figure]:
    raw = tuple(turn.row() for turn in found)
    kinds: list[tuple[str, str, str, Goal | None, tuple[dict[str, Any], ...]]] = [
        ("plain", "their plain", "our plain", PLAIN, raw),
        ("small k=4", "their speculative", "our speculative", SPECULATIVE, ()),
    ]
    if compiled:
        name = "small k=4, ours compiled"
        kinds.append((name, "their speculative", "our compiled speculative", COMPILED, ()))
    kinds.append(("theirs alone: plain / small k=4", "their plain", "their speculative", None, ()))
    return [
        Figure(NAME, f"{how}, {title}", turns.ratios(found, above, below), goal, "x", rows)
        for title, above, below, goal, rows in kinds
    ]
