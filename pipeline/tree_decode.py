"""Speculative decoding with a tree of drafted tokens, over the same engine as the chain's.

All candidates go through one target pass: a node looks at the text and at its ancestors, and stands
as far behind the text as it is deep (Miao et al. 2023, arXiv 2305.09781). The rule keeps one path;
both caches keep the nodes on it, and lack the last committed token, as with a chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.context import Context, Ints
from pipeline.decode import Method, Step, Texts, speculative
from pipeline.sampling import Floats, Sampling, Uniforms
from pipeline.tree_proposal import propose_tree
from pipeline.verify import TreeRule
from pipeline.verify.tree import Tree, tree


@dataclass(slots=True)
class TreeStep:
    """One target pass over some lanes, with all that its decisions were made of.

    `start`, `accepted`, `emitted`, `block` as in `Step`: k is the tree's depth, and `block` is the
    path that was accepted and the token after it.
    """

    lanes: Ints  # (b,)
    start: Ints  # (b,)
    shape: Tree  # n nodes, m of them (and the root) with children
    drafted: Ints  # (b, n)
    node: Ints  # (b,) the last one that the rule accepted
    accepted: Ints  # (b,)
    emitted: Ints  # (b,)
    block: Ints  # (b, k + 1)
    p: Floats  # (b, n + 1, V)
    q: Floats  # (b, m, V)
    u_draft: Floats  # (b, n)
    u: Floats  # (b, columns)
    u_next: Floats  # (b,)


@dataclass(frozen=True, slots=True)
class TreeMethod:
    """How a speculative decode with trees goes: children of a node by depth, rule, sampling."""

    widths: tuple[int, ...]
    rule: TreeRule
    sampling: Sampling

    @property
    def k(self) -> int:
        """The most tokens that a round can accept: the tree's depth."""
        return len(self.widths)

    @property
    def nodes(self) -> int:
        return tree(self.widths).nodes


AnyStep = Step | TreeStep
AnyMethod = Method | TreeMethod


def drafted_tokens(method: AnyMethod) -> int:
    """Tokens drafted a round: k, or all nodes of the tree."""
    return method.k if isinstance(method, Method) else method.nodes


def steps_of(
    target: Context, draft: Context, texts: Texts, method: AnyMethod, uniforms: Uniforms
) -> Iterator[AnyStep]:
    """The decode that `method` describes, with chains or with trees."""
    if isinstance(method, Method):
        return speculative(target, draft, texts, method, uniforms)
    return speculative_tree(target, draft, texts, method, uniforms)


def speculative_tree(
    target: Context, draft: Context, texts: Texts, method: TreeMethod, uniforms: Uniforms
) -> Iterator[TreeStep]:
    """Draft a tree, verify all its nodes in one target pass, keep a path and one token more.

    Near the end of the text a round's tree is cut to fewer depths, so that exactly the asked number
    is emitted. ValueError for widths that make no tree, TypeError for a draft that cannot branch.
    """
    draft.follow(target)
    for context in (target, draft):  # here, and not in the first round, which may be timed
        context.reserve(method.nodes + 1)
    return _rounds(target, draft, texts, method, uniforms)


def _rounds(
    target: Context, draft: Context, texts: Texts, method: TreeMethod, uniforms: Uniforms
) -> Iterator[TreeStep]:
    while groups := texts.groups(method.k):
        for depth, lanes in groups:
            shape = tree(method.widths[:depth])
            yield _round(target, draft, texts, lanes, shape, method, uniforms)


def _round(
    target: Context,
    draft: Context,
    texts: Texts,
    lanes: Ints,
    shape: Tree,
    method: TreeMethod,
    uniforms: Uniforms,
) -> TreeStep:
    rule, rows = method.rule, method.sampling.rows
    start, last = texts.ends(lanes)
    u_draft = uniforms.take("draft", lanes, start, shape.nodes)
    drafted, q = propose_tree(
        draft, texts, lanes, shape, u_draft, method.sampling, rule.with_replacement
    )
    p = rows(target.read_tree(lanes, np.concatenate([last, drafted], axis=1), shape.above))
    q = p[:, :0] if q is None else q
    u, u_next = _decisions(uniforms, rule, shape, lanes, start)
    node, token = rule.verify(shape, p, q, drafted, u, u_next)
    accepted, path = shape.depths[node], shape.path(node)
    every = np.arange(len(lanes))
    block = np.concatenate([drafted[every[:, None], path[:, 1:] - 1], token[:, None]], axis=1)
    block[every, accepted] = token
    emitted = texts.append(lanes, block, accepted + 1)
    target.gather(lanes, path, emitted)  # of the target's nodes the root is the last token
    if shape.depth:
        draft.gather(lanes, path[:, 1:] - 1, np.minimum(emitted, shape.depth) - 1)
    accepted = np.minimum(accepted, emitted)  # an end of text inside the block cuts the rest
    return TreeStep(
        lanes, start, shape, drafted, node, accepted, emitted, block, p, q, u_draft, u, u_next
    )


def _decisions(
    uniforms: Uniforms, rule: TreeRule, shape: Tree, lanes: Ints, start: Ints
) -> tuple[Floats, Floats]:
    """Uniforms `(b, columns)` that the rule looks at, and `(b,)` of the token after the path."""
    if rule.uniforms == "next":  # one a depth: the very ones that plain decoding draws with
        along = uniforms.along(lanes, start, shape.depth + 1)
        return along[:, : shape.depth], along[:, shape.depth]
    u_next = uniforms.take("next", lanes, start, 1)
    return uniforms.take("accept", lanes, start, rule.columns(shape)), u_next[:, 0]
