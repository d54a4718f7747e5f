"""The models of one job, loaded and ready to decode, in the arithmetic of one side."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from pipeline.compiled_text import compile_reads, up_to
from pipeline.context import Context, Ints
from pipeline.decode import Method, Texts, autoregressive
from pipeline.drafts import BRANCHING, Draft, Source, build
from pipeline.model import CharTransformer
from pipeline.reading import open_texts
from pipeline.sampling import Uniforms
from pipeline.spec import JobSpec
from pipeline.text import Vocabulary
from pipeline.tree_decode import AnyMethod, AnyStep, TreeMethod, steps_of
from pipeline.verify import Rule, TreeRule, find, find_tree
from pipeline.weights import load_target


@dataclass(frozen=True)
class Run:
    """One decode: where its text is, the models that read it, and its steps to come."""

    texts: Texts
    target: Context
    draft: Context | None
    steps: Iterator[AnyStep]


@dataclass(frozen=True)
class Workbench:
    """Target, draft and rule of one job. float64 for counts, float32 for clocks."""

    spec: JobSpec
    vocabulary: Vocabulary
    target: CharTransformer
    draft: Draft
    rule: Rule | TreeRule
    prompt: Ints
    eos: int | None

    @classmethod
    def of(cls, spec: JobSpec, dtype: torch.dtype) -> Workbench:
        """Load what the job needs. ValueError, one sentence, for all that does not fit."""
        spec.validate()
        rule = find(spec.verify) if spec.tree is None else find_tree(spec.verify)
        model, vocabulary, _ = load_target(spec.weights)
        prompt = _encode(vocabulary, "prompt", spec.prompt)
        eos = None if spec.eos is None else _end(vocabulary, spec.eos)
        read = len(prompt) + spec.tokens - 1  # the last token is emitted, and never read
        if read > model.cfg.context:
            raise ValueError(
                f"a prompt of {len(prompt)} and tokens={spec.tokens} need {read} positions, and "
                f"the target reads {model.cfg.context}: shorten either"
            )
        draft = build(Source(model, vocabulary, spec.weights), spec.draft_options)
        if draft.most is not None and spec.k > draft.most:
            raise ValueError(
                f"k={spec.k}: draft={spec.draft} proposes at most {draft.most} tokens a round, "
                f"give a k of up to {draft.most}"
            )
        if spec.tree is not None and not draft.branches:
            raise ValueError(
                f"draft={spec.draft} proposes one continuation and never two: proposal=tree goes "
                f"with drafts that give a distribution, {BRANCHING}"
            )
        target = copy.deepcopy(model).double() if dtype == torch.float64 else model
        return cls(spec, vocabulary, target, draft, rule, prompt, eos)

    def compile(self) -> None:
        """Read single texts with compiled passes from now on; in float32, for clocks.

        ValueError, one sentence, where they cannot be compiled here.
        """
        most = self.spec.k + 1
        varies = self.spec.k_auto is not None or self.draft.varies
        compile_reads(self.target, up_to(most) if varies else (most,))
        self.draft.compile(self.spec.k)

    def plain(self, uniforms: Uniforms, lanes: int | None = None) -> Run:
        """Plain decoding, ready to go: the prompt but its last character is read."""
        texts, target = self._open(self.prompt, self.spec.tokens, lanes)
        steps = autoregressive(target, texts, self.spec.sampling, uniforms)
        return Run(texts, target, None, steps)

    def speculative(
        self,
        uniforms: Uniforms,
        lanes: int | None = None,
        prompt: Ints | None = None,
        tokens: int | None = None,
    ) -> Run:
        """The job's own decode; `prompt` and `tokens` can differ for a check of the law."""
        prompt = self.prompt if prompt is None else prompt
        tokens = self.spec.tokens if tokens is None else tokens
        texts, target = self._open(prompt, tokens, lanes)
        draft = self.draft.open(prompt[:-1], len(prompt) + tokens, lanes, self.target.dtype)
        steps = steps_of(target, draft, texts, self.method, uniforms)
        return Run(texts, target, draft, steps)

    @property
    def method(self) -> AnyMethod:
        """How the job decodes."""
        spec = self.spec
        if isinstance(self.rule, TreeRule):
            return TreeMethod((spec.tree or ())[: spec.k], self.rule, spec.sampling)
        return Method(spec.k, self.rule, spec.sampling, spec.k_auto or 0.0)

    def _open(self, prompt: Ints, tokens: int, lanes: int | None) -> tuple[Texts, Context]:
        texts = Texts(prompt, tokens, lanes or 1, self.eos)
        return texts, open_texts(self.target, prompt[:-1], len(prompt) + tokens, lanes)


def most_drafted(job: JobSpec) -> float:
    """How many tokens the job's draft can propose in a round."""
    most = Workbench.of(job, torch.float64).draft.most
    return math.inf if most is None else most


def tokens_per_pass(job: JobSpec) -> float:
    """Of the job's own text: emitted over target passes, in float64, and nothing else measured."""
    torch.set_num_threads(1)
    run = Workbench.of(job, torch.float64).speculative(Uniforms(job.seed))
    passes = sum(1 for _ in run.steps)
    return len(run.texts.emitted()) / passes


def _encode(vocabulary: Vocabulary, name: str, text: str) -> Ints:
    try:
        return np.asarray(vocabulary.encode(text))
    except ValueError as error:
        raise ValueError(f"{name} cannot be read: {error}") from None


def _end(vocabulary: Vocabulary, eos: str) -> int:
    if len(eos) != 1:
        raise ValueError(f"eos={eos!r}: give one character, or null for a text without end")
    return int(_encode(vocabulary, "eos", eos)[0])
