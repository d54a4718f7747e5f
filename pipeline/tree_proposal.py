"""Drafting a tree: one draft pass a depth, and siblings drawn from the row of their parent."""

from __future__ import annotations

import numpy as np

from pipeline.context import Context, Ints, Logits
from pipeline.proposal import Committed, catch_up
from pipeline.sampling import Floats, Sampling, draw, draw_margin
from pipeline.verify.tree import Tree


def propose_tree(
    draft: Context,
    texts: Committed,
    lanes: Ints,
    shape: Tree,
    u: Floats,
    sampling: Sampling,
    with_replacement: bool,
) -> tuple[Ints, Floats | None]:
    """Drafted tokens `(b, n)`, node c at c - 1, with uniforms `u (b, n)`; and the rows `(b, m, V)`
    of the nodes with children, the very ones they were drawn from; None where nothing is drafted.
    """
    drafted = np.zeros(u.shape, np.int64)
    rows: list[Floats] = []
    for depth, width in enumerate(shape.widths):
        here, below = shape.levels[depth], shape.levels[depth + 1]
        if depth:
            parents = tuple(parent - 1 for parent in shape.above[here])
            logits = draft.read_tree(lanes, drafted[:, here.start - 1 : here.stop - 1], parents)
        else:
            logits = _last_row(draft, texts, lanes)
        rows.append(sampling.rows(logits))
        columns = slice(below.start - 1, below.stop - 1)
        some = u[:, columns].reshape(-1, width)
        flat = rows[-1].reshape(len(some), -1)
        drafted[:, columns] = siblings(flat, some, with_replacement).reshape(len(u), -1)
    return drafted, np.concatenate(rows, axis=1) if rows else None


def siblings(rows: Floats, u: Floats, with_replacement: bool) -> Ints:
    """For each row of `rows (N, V)`, ids `(N, w)` drawn one after another at `u (N, w)`.

    Without replacement an id that was drawn has no probability any more. Where a row has no id
    left, the rest repeat the first one, see `TreeRule`.
    """
    out, width = np.empty(u.shape, np.int64), u.shape[1]
    if with_replacement or width == 1:
        for child in range(width):
            out[:, child] = draw(rows, u[:, child])
        return out
    left, every = rows.copy(), np.arange(len(rows))
    enough = (np.count_nonzero(rows, axis=1) >= width).all()
    for child in range(width):
        if enough:
            out[:, child] = draw(left, u[:, child])
        else:
            can = left.any(axis=1)
            out[:, child] = out[:, 0]
            out[can, child] = draw(left[can], u[can, child])
        left[every, out[:, child]] = 0
    return out


def siblings_margin(rows: Floats, drafted: Ints, u: Floats, with_replacement: bool) -> float:
    """How near the closest of these draws came to another id, in the rows' own unit; at most 1."""
    margin, left = 1.0, rows
    for child in range(u.shape[1]):
        can = left.any(axis=1)
        gaps = draw_margin(left[can], u[can, child]) * left[can].sum(axis=1)
        margin = min(margin, float(gaps.min(initial=1.0)))
        if not with_replacement:
            left = left.copy()
            left[np.arange(len(rows)), drafted[:, child]] = 0
    return margin


def _last_row(draft: Context, texts: Committed, lanes: Ints) -> Logits:
    """Logits `(b, 1, V)` after the committed text, of which the draft reads what it has not yet."""
    if len(lanes) > 1:
        return catch_up(draft, texts, lanes)
    lane = int(lanes[0])
    unread = texts.tail(lane, int(texts.lengths[lane] - draft.lengths[lane]))
    return draft.read(lanes, unread[None])[:, -1:]
