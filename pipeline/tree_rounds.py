"""The parts of a round with a tree that can be timed alone, as `pipeline.rounds` has a chain's."""

from __future__ import annotations

import numpy as np

from pipeline.context import Context, Ints, Logits
from pipeline.rounds import ONE, Drafting, Nanoseconds
from pipeline.sampling import Sampling
from pipeline.tree_proposal import siblings
from pipeline.verify.tree import Tree


class Levels(Drafting):
    """A round's draft passes, one a depth, the siblings drawn in between, and a pass over the tree.

    The times have the names of a chain's. Without replacement, as most rules draw; tokens are any.
    """

    def __init__(
        self, draft: Context, target: Context, text: Ints, shape: Tree, sampling: Sampling
    ) -> None:
        super().__init__(draft, target, text, shape.depth, sampling)
        self._shape, self._nodes = shape, np.resize(text, shape.nodes + 1)[None]
        for context in (target, draft):
            context.reserve(shape.nodes + 1)

    def _at_once(self, place: int, clock: Nanoseconds) -> None:
        return None

    def _one_by_one(self, place: int, clock: Nanoseconds) -> dict[str, int]:
        shape, spent = self._shape, {}
        for depth, width in enumerate(shape.widths):
            here = shape.levels[depth]
            begun = clock()
            if depth:
                parents = tuple(parent - 1 for parent in shape.above[here])
                tokens = self._nodes[:, here.start - 1 : here.stop - 1]
                logits = self._draft.read_tree(ONE, tokens, parents)
            else:
                logits = self._draft.read(ONE, self._tokens(place))
            read = clock()
            rows = self._sampling.rows(logits)[0]
            siblings(rows, np.full((len(rows), width), 0.5), with_replacement=False)
            at = depth + 1
            spent[f"draft_read{at}"], spent[f"draft_rows{at}"] = read - begun, clock() - read
        return spent

    def _verify(self, place: int) -> Logits:
        return self._target.read_tree(ONE, self._nodes, self._shape.above)
