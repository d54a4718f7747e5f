"""One text read by compiled passes: what `OneText` does, with no more than a call for each read."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from pipeline.compiled import flat, model_pass, room_for
from pipeline.context import Ints, Logits
from pipeline.model import CharTransformer
from pipeline.one_text import OneText

DRAFT_READS = (1, 2)
"""Of two tokens, where the round before was accepted in full."""


def compile_reads(model: CharTransformer, counts: tuple[int, ...]) -> None:
    """From now on single texts are read by programs for so many tokens at once."""
    given = flat(model.weights())
    model.reader = partial(CompiledText, flat_weights=given, counts=tuple(sorted({1, *counts})))


def up_to(most: int) -> tuple[int, ...]:
    """Numbers of tokens for reads of any length up to `most`: 1, 2, 3, 5, 9 and so on, and `most`.

    A read of another length is padded to the next: a program for each would be too many.
    """
    steps = [1, *(2**power + 1 for power in range(most.bit_length()))]
    return (*(count for count in steps if count < most), most)


class CompiledText(OneText):
    """A transformer reading one text. All programs are there once it is open: none is made later.

    A read is padded to the length of a program; what the padding leaves in the cache is written
    over before anything looks at it. Longer reads, as of a prompt, go piece by piece.
    """

    def __init__(
        self,
        model: CharTransformer,
        prompt: Ints,
        capacity: int,
        flat_weights: torch.Tensor,
        counts: tuple[int, ...],
    ) -> None:
        cfg, self._counts, self._capacity = model.cfg, counts, capacity
        room = room_for(capacity, counts[-1])
        self._kept_bytes = 4 * 2 * cfg.layers * cfg.width  # of a token's keys and values
        keys = [torch.zeros(cfg.heads, cfg.head_width, room) for _ in range(cfg.layers)]
        values = [torch.zeros(cfg.heads, room, cfg.head_width) for _ in range(cfg.layers)]
        self._at = np.zeros((), np.int64)
        self._ids, self._calls = {}, {}
        for count in counts:
            self._ids[count] = np.zeros(count, np.int64)
            own = [torch.from_numpy(self._ids[count]), torch.from_numpy(self._at)]
            inputs = [flat_weights, *keys, *values, *own]
            self._calls[count] = partial(model_pass(cfg, count, room), inputs)
        self._peak, self._read_from = 0, 0
        self._states = torch.zeros(0, cfg.width)
        self.lengths = np.zeros(1, np.int64)
        if len(prompt):
            self.read(self.lengths, prompt[None])

    @torch.inference_mode()
    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        ids, most = tokens[0], self._counts[-1]
        self._read_from = start = int(self.lengths[0])
        if start + len(ids) > self._capacity:
            raise ValueError(f"position {start + len(ids)} is beyond the cache's {self._capacity}")
        if len(ids) <= most:
            self._states, logits = self._pass(ids)
        else:
            parts = [self._pass(ids[at : at + most]) for at in range(0, len(ids), most)]
            self._states = torch.cat([states for states, _ in parts])
            logits = torch.cat([logits for _, logits in parts])
        self._peak = max(self._peak, start + len(ids))
        rows: Logits = logits.numpy()
        return rows[None]

    def _pass(self, ids: Ints) -> tuple[torch.Tensor, torch.Tensor]:
        count = len(ids)
        if count not in self._calls:
            count = next(size for size in self._counts if size > count)
        self._ids[count][: len(ids)] = ids
        self._at[...] = self.lengths[0]
        states, logits = self._calls[count]()
        self.lengths[0] += len(ids)
        if count != len(ids):
            return states[: len(ids)], logits[: len(ids)]
        return states, logits

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        if not 0 <= lengths[0] <= self.lengths[0]:
            raise ValueError(f"cannot crop {self.lengths[0]} tokens to {lengths[0]}")
        self.lengths[0] = lengths[0]

    def cache_bytes(self) -> int:
        return self._kept_bytes * self._peak
