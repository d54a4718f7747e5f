"""Drafts that branch, and a decode with trees, as the tree tests share them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipeline.context import Context
from pipeline.decode import Texts
from pipeline.reading import open_texts
from pipeline.sampling import Sampling, Uniforms
from pipeline.tree_decode import TreeMethod, TreeStep, speculative_tree
from pipeline.verify import find_tree
from tests.family import MODEL, family
from tests.models import Same

DRAFTS: dict[str, Any] = {**family(), "same": Same(MODEL)}
del DRAFTS["ngram"]
WIDTHS = (3, 2, 1)


def decode_tree(
    draft: Any,
    widths: tuple[int, ...] = WIDTHS,
    *,
    rule: str = "sequoia",
    prompt: tuple[int, ...] = (0, 3, 1),
    tokens: int = 20,
    seed: int = 0,
    sampling: Sampling | None = None,
    eos: int | None = None,
    lanes: int | None = None,
) -> tuple[Texts, Context, Context, Iterator[TreeStep]]:
    ids = np.array(prompt, np.int64)
    texts = Texts(ids, tokens, lanes or 1, eos)
    target = open_texts(MODEL, ids[:-1], len(ids) + tokens, lanes)
    reader = draft.open(ids[:-1], len(ids) + tokens, lanes, MODEL.dtype)
    method = TreeMethod(widths, find_tree(rule), sampling or Sampling())
    steps = speculative_tree(target, reader, texts, method, Uniforms(seed, lanes or 1))
    return texts, target, reader, steps


def text_of(draft: Any, widths: tuple[int, ...] = WIDTHS, **options: Any) -> list[int]:
    """All that a decode emits."""
    texts, _, _, steps = decode_tree(draft, widths, **options)
    for _ in steps:
        pass
    return [int(token) for token in texts.emitted()]


def path_to(step: TreeStep, node: int) -> np.ndarray:
    """The drafted tokens from the text's end to a node, in the step's first row."""
    path = step.shape.path(np.array([node]))[0, 1 : step.shape.depths[node] + 1]
    tokens: np.ndarray = step.drafted[0, path - 1]
    return tokens
