"""Verification rules: given target and draft rows, which drafted tokens stay, and what follows.

`RULES` holds one instance a rule for chains, `TREE_RULES` for trees, for B rounds at once;
`verify` is the form for one round of a chain, with its input checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.verify.block import Block
from pipeline.verify.match import Match
from pipeline.verify.match_tree import MatchTree
from pipeline.verify.rule import Array, Rule
from pipeline.verify.sequoia import Sequoia
from pipeline.verify.specinfer import SpecInfer
from pipeline.verify.token import Token
from pipeline.verify.traversal import Traversal
from pipeline.verify.tree_rule import TreeRule

__all__ = ["RULES", "TREE_RULES", "Rule", "TreeRule", "find", "find_tree", "verify"]

RULES: dict[str, Rule] = {rule.name: rule for rule in (Token(), Block(), Match())}
TREE_RULES: dict[str, TreeRule] = {
    rule.name: rule for rule in (SpecInfer(), Sequoia(), Traversal(), MatchTree())
}


def find(name: str) -> Rule:
    """The rule for chains of that name; ValueError naming those that exist."""
    if name not in RULES:
        raise ValueError(_unfit(name, "chain"))
    return RULES[name]


def find_tree(name: str) -> TreeRule:
    """The rule for trees of that name; ValueError naming those that exist."""
    if name not in TREE_RULES:
        raise ValueError(_unfit(name, "tree"))
    return TREE_RULES[name]


def _unfit(name: str, proposal: str) -> str:
    return (
        f"verify={name}: no such rule for proposal={proposal}; "
        f"proposal=chain goes with {', '.join(RULES)}, proposal=tree with {', '.join(TREE_RULES)}"
    )


def verify(
    rule: str, p: ArrayLike, q: ArrayLike, drafted: ArrayLike, u: ArrayLike, u_next: Any
) -> tuple[int, int]:
    """One round: how many of k drafted tokens are accepted, and the token that follows them.

    `p (k+1, V)` and `q (k, V)` are probability rows, `drafted (k,)` ids, `u (k,)` and `u_next`
    uniforms in [0, 1). k = 0 draws from `p[0]`. ValueError names what does not fit.
    """
    chosen = find(rule)
    p_rows, ids = np.asarray(p), np.asarray(drafted, dtype=np.int64)
    q_rows, uniforms = np.asarray(q), np.asarray(u)
    if q_rows.size == 0 and p_rows.ndim == 2:
        q_rows = p_rows[:0]
    _check_shapes(p_rows, q_rows, ids, uniforms)
    _check_rows("p", p_rows)
    _check_rows("q", q_rows)
    last = np.asarray([u_next])
    for name, values in (("u", uniforms), ("u_next", last)):
        if not ((values >= 0) & (values < 1)).all():
            raise ValueError(f"{name} must lie in [0, 1), 1 not included")
    accepted, token = chosen.verify(p_rows[None], q_rows[None], ids[None], uniforms[None], last)
    return int(accepted[0]), int(token[0])


def _check_shapes(p: Array, q: Array, drafted: NDArray[np.int64], u: Array) -> None:
    if p.ndim != 2 or not p.size:
        raise ValueError(f"p must be rows (k+1, V), not an array of shape {p.shape}")
    k, vocab = len(p) - 1, p.shape[1]
    for name, value, wanted in (
        ("q", q, (k, vocab)),
        ("drafted", drafted, (k,)),
        ("u", u, (k,)),
    ):
        if value.shape != wanted:
            raise ValueError(
                f"{name} has shape {value.shape}; beside p of shape {p.shape} it must be {wanted}"
            )
    if k and not 0 <= drafted.min() <= drafted.max() < vocab:
        raise ValueError(f"drafted must hold ids from 0 to {vocab - 1}, the columns of p")


def _check_rows(name: str, rows: Array) -> None:
    # `not (…)` so that NaN is caught too
    if not (rows >= 0).all() or not (abs(rows.sum(axis=-1) - 1) < 1e-6).all():
        raise ValueError(f"every row of {name} must be probabilities that sum to 1")
