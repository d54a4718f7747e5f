"""The two sides of a timed job as steppers, made of the same prompt, seed, target and sampling.

`Timed` opens them; `pairs.measure` times them; `costs.measure` takes apart what they are made of.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipeline.context import Context, Ints
from pipeline.decode import Step, Texts, autoregressive
from pipeline.sampling import Uniforms
from pipeline.tree_decode import AnyMethod, AnyStep, drafted_tokens, steps_of


class Decode:
    """A decode that can stop between rounds. It keeps what a digest is made of, and no rows."""

    def __init__(self, steps: Iterator[AnyStep], texts: Texts) -> None:
        self._steps, self._texts = steps, texts
        self._out = 0
        self.accepted: list[int] = []  # of each round
        self.drafted: list[int] = []
        self.wall_ns: list[int] = []
        self.done = False

    def advance(self, until: int) -> tuple[int, int]:
        """Whole rounds until `until` tokens are out, or the text ended; rounds and tokens added."""
        rounds, before = 0, self._out
        begun = time.perf_counter_ns()
        while self._out < until and not self.done:
            step = next(self._steps, None)
            if step is None:
                self.done = True
                break
            rounds += 1
            self._out += int(step.emitted[0])
            self.accepted.append(int(step.accepted[0]))
            self.drafted.append(step.block.shape[1] - 1)
            ended = time.perf_counter_ns()
            self.wall_ns.append(ended - begun)
            begun = ended
        return rounds, self._out - before

    def emitted(self) -> Ints:
        return self._texts.emitted()


@dataclass(frozen=True)
class Timed:
    """One job as it is timed: one text, float32.

    `open_target` and `open_draft` take tokens `(T,)` and give a context that has read them and has
    room for the whole text. A side is opened outside every clock: both read the prompt there, and
    `uniforms` are drawn here, once for all.
    """

    open_target: Callable[[Ints], Context]
    open_draft: Callable[[Ints], Context]
    prompt: Ints
    tokens: int
    method: AnyMethod
    uniforms: Uniforms
    eos: int | None = None

    def __post_init__(self) -> None:
        self.uniforms.prepare(self.tokens, drafted_tokens(self.method))

    def texts(self) -> Texts:
        return Texts(self.prompt, self.tokens, eos=self.eos)

    def baseline(self) -> Decode:
        texts = self.texts()
        return Decode(self.plain_steps(self.open_target(self.prompt[:-1]), texts), texts)

    def speculative(self) -> Decode:
        texts, read = self.texts(), self.prompt[:-1]
        steps = self.speculative_steps(self.open_target(read), self.open_draft(read), texts)
        return Decode(steps, texts)

    def plain_steps(self, target: Context, texts: Texts) -> Iterator[Step]:
        return autoregressive(target, texts, self.method.sampling, self.uniforms)

    def speculative_steps(self, target: Context, draft: Context, texts: Texts) -> Iterator[AnyStep]:
        return steps_of(target, draft, texts, self.method, self.uniforms)
