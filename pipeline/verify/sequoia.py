"""Sequoia's verification (Chen et al. 2024, arXiv 2402.12374): siblings drawn without replacement.

After a rejection the token is taken out of q as well, because the next sibling was drawn from what
was left. No sibling repeats another, so none is wasted. Where q has fewer ids than there are
siblings, the others stand for no token, and the round ends with the last real one rejected.
"""

from __future__ import annotations

from typing import Any

from pipeline.verify.rule import Array
from pipeline.verify.siblings import descend, descend_alone
from pipeline.verify.tree import Tree
from pipeline.verify.tree_rule import TreeRule, Walk


class Sequoia(TreeRule):
    name = "sequoia"
    uniforms = "accept"

    def walk(self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array) -> Walk:
        return descend(tree, p, q, drafted, u, with_replacement=False)

    def alone(
        self, tree: Tree, p: Array, q: Array, drafted: list[int], u: list[Any]
    ) -> tuple[int, Array] | None:
        return descend_alone(tree, p, q, drafted, u, with_replacement=False)
