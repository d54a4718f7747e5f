"""SpecInfer's multi-step verification (Miao et al. 2023, arXiv 2305.09781): siblings drawn
independently, each from the whole of its parent's row of q, tested one after another.

Two siblings can be the same token. A rejected one is then rejected again: P has none of it left.
"""

from __future__ import annotations

from typing import Any

from pipeline.verify.rule import Array
from pipeline.verify.siblings import descend, descend_alone
from pipeline.verify.tree import Tree
from pipeline.verify.tree_rule import TreeRule, Walk


class SpecInfer(TreeRule):
    name = "specinfer"
    uniforms = "accept"
    with_replacement = True

    def walk(self, tree: Tree, p: Array, q: Array, drafted: Array, u: Array) -> Walk:
        return descend(tree, p, q, drafted, u, with_replacement=True)

    def alone(
        self, tree: Tree, p: Array, q: Array, drafted: list[int], u: list[Any]
    ) -> tuple[int, Array] | None:
        return descend_alone(tree, p, q, drafted, u, with_replacement=True)
