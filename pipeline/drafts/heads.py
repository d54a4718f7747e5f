"""heads: extra prediction heads on the target's last hidden state (Cai et al. 2024, 2401.10774).

The target has read all but the last committed character; its newest state, computed by the pass
that verified the round before, and that character give the rows of all k positions at once. No row
looks at a drafted character: they are known before drafting, and q is what was drawn from.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.compiled_heads import CompiledHeads
from pipeline.context import Context, Drafted, Ints, Logits
from pipeline.drafts.base import Draft, TwoTypes
from pipeline.heads import Heads
from pipeline.lane_texts import LaneTexts
from pipeline.many_texts import ManyTexts
from pipeline.model import CharTransformer
from pipeline.one_text import OneText
from pipeline.reading import open_texts
from pipeline.sampling import Floats, Sampling, draw
from pipeline.tree_cache import Parents, depths

Transformer = OneText | ManyTexts | LaneTexts


class HeadsDraft(Draft):
    """Heads trained on the frozen target."""

    keeps = "the heads' weights, the target's newest hidden state and a row of logits a head"

    def __init__(self, target: CharTransformer, heads: Heads) -> None:
        self._targets, self._heads = TwoTypes(target), TwoTypes(heads)
        self.most = heads.count
        self._compiled: CompiledHeads | None = None

    def compile(self, k: int) -> None:
        if k:
            embedding = self._targets.given.transformer.wte.weight.detach()
            self._compiled = CompiledHeads(self._heads.given, embedding, k)

    def open(
        self, prompt: NDArray[np.int64], capacity: int, lanes: int | None, dtype: torch.dtype
    ) -> HeadsTexts:
        target, heads = self._targets.of(dtype), self._heads.of(dtype)
        fast = self._compiled if lanes is None and dtype == torch.float32 else None
        return HeadsTexts(target, heads, prompt, capacity, lanes, fast)

    def weight_bytes(self) -> int:
        return 4 * sum(p.numel() for p in self._heads.given.parameters())


class HeadsTexts(Context):
    """Texts that the target reads and the heads go on from.

    Following a target, the first read of a round gives head 1's row, and reads of drafted tokens
    those of the further heads, whatever the tokens are. On its own it reads with the target's
    weights, and each row is head 1's: that of a draft of one token from there.
    """

    def __init__(
        self,
        target: CharTransformer,
        heads: Heads,
        prompt: Ints,
        capacity: int,
        lanes: int | None,
        compiled: CompiledHeads | None = None,
    ) -> None:
        self._heads, self._compiled = heads, compiled
        self._embedding = target.transformer.wte.weight
        self._logits = self._embedding.new_zeros(lanes or 1, heads.count, len(self._embedding))
        self._own = _Own(target, prompt, capacity, lanes)
        self._target: Transformer | None = None
        self._parents: Parents = ()
        self.lengths = np.full(lanes or 1, len(prompt), np.int64)

    def follow(self, target: Context) -> None:
        bare = target.bare()
        if not isinstance(bare, OneText | ManyTexts | LaneTexts):
            raise TypeError("heads go on from a transformer's hidden states, and this has none")
        if isinstance(bare, ManyTexts | LaneTexts):
            bare.keep_states()
        self._target = bare

    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        self.lengths[lanes] += tokens.shape[1]
        if self._target is None:
            states = self._own.states_before(lanes, tokens)
            first = self._ahead(states.flatten(0, 1), tokens.reshape(-1), 1)[:, 0]
            return first.view(*tokens.shape, -1).numpy()
        ahead = self.lengths[lanes] - self._target.lengths[lanes] - 1  # drafted so far
        if not ahead.any():
            self._logits[lanes] = self._round(self._target, lanes, tokens[:, -1])
        if ahead[0] >= self._heads.count:
            raise ValueError(f"there are {self._heads.count} heads, and no row for a token beyond")
        return self._logits[lanes, ahead][:, None].numpy()

    def chain(self, lanes: Ints, tokens: Ints, u: Floats, sampling: Sampling) -> Drafted | None:
        """All rows and draws of a round at once: none of them waits for another."""
        count = u.shape[1]
        if self._target is None or count > self._heads.count:
            return None
        self.lengths[lanes] += tokens.shape[1] + count - 1
        logits = self._round(self._target, lanes, tokens[:, -1], count)
        rows = sampling.rows(logits.numpy())
        return draw(rows[0], u[0])[None], rows

    def read_tree(self, lanes: Ints, tokens: Ints, parents: Parents) -> Logits:
        """The row of a node is that of its depth, whatever its token and its ancestors are."""
        self._parents += parents
        heads = depths(self._parents, len(parents)) + 1
        return self._logits[torch.from_numpy(lanes)[:, None], heads].numpy()

    def gather(self, lanes: Ints, nodes: Ints, counts: Ints) -> None:
        self.lengths[lanes] += counts
        self._parents = ()

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        self.lengths[lanes] = lengths
        if self._target is None:
            self._own.crop(lanes, lengths)

    def cache_bytes(self) -> int:
        return self._own.cache_bytes() if self._target is None else 0

    def extra_bytes(self) -> int:
        return 4 * (self._logits[0].numel() + self._embedding.shape[1])

    def _round(
        self, target: Transformer, lanes: Ints, known: Ints, count: int | None = None
    ) -> Tensor:
        """Logits `(b, heads, V)` after the committed texts of `lanes`, which end with `known`."""
        if not isinstance(target, ManyTexts):
            return self._ahead(target.states(lanes, 1)[:, 0], known, count)
        key = target.places(lanes) * len(self._embedding) + known  # many texts are equal
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        states = target.states(lanes[first], 1)[:, 0]
        return self._ahead(states, known[first], count)[inverse]

    @torch.inference_mode()
    def _ahead(self, states: Tensor, known: Ints, count: int | None = None) -> Tensor:
        fast = self._compiled
        if fast and len(known) == 1 and (count or self._heads.count) <= fast.count:
            return fast(states, torch.from_numpy(known))[:, :count]
        embedded = torch.embedding(self._embedding, torch.from_numpy(known))
        logits: Tensor = self._heads(states, embedded, self._embedding, count)
        return logits


class _Own:
    """The target's own reading of the texts, opened once it is needed; all states are kept."""

    def __init__(
        self, model: CharTransformer, prompt: Ints, capacity: int, lanes: int | None
    ) -> None:
        self._of = (model, prompt, capacity, lanes)
        self._reader: Transformer | None = None
        self._states = torch.zeros(0)

    def states_before(self, lanes: Ints, tokens: Ints) -> Tensor:
        """Append `tokens (b, T)`; the state `(b, T, C)` before each of them, zeros before any."""
        model, prompt, capacity, many = self._of
        if self._reader is None:
            self._reader = open_texts(model, prompt, capacity, many)
            if isinstance(self._reader, ManyTexts | LaneTexts):
                self._reader.keep_states()
            # place 0 is before any token
            self._states = torch.zeros(many or 1, capacity + 1, model.cfg.width, dtype=model.dtype)
            self._store(np.arange(many or 1), 1 if many else len(prompt))
        start = self._reader.lengths[lanes]
        self._reader.read(lanes, tokens)
        self._store(lanes, tokens.shape[1])
        return self._states[lanes[:, None], start[:, None] + np.arange(tokens.shape[1])]

    def _store(self, lanes: Ints, count: int) -> None:
        assert self._reader is not None
        places = self._reader.lengths[lanes][:, None] - np.arange(count)[::-1]
        if count and places.min() > 0:
            self._states[lanes[:, None], places] = self._reader.states(lanes, count)

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        if self._reader is not None:
            self._reader.crop(lanes, lengths)

    def cache_bytes(self) -> int:
        return 0 if self._reader is None else self._reader.cache_bytes()
