"""int8 and int4: the target itself with its weights rounded, multiplications still in float."""

from __future__ import annotations

import copy
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.compiled_text import DRAFT_READS, compile_reads
from pipeline.context import Context
from pipeline.drafts.base import Draft
from pipeline.model import CharTransformer
from pipeline.quantize import rounded_copy
from pipeline.reading import open_texts


class QuantizedDraft(Draft):
    """The target rounded to `bits` bits. Nearly the target, and as slow as the target."""

    keeps = "a rounded copy of the target's weights and a KV cache of its own"

    def __init__(self, target: CharTransformer, bits: int, per_channel: bool = False) -> None:
        self._model, self._bytes = rounded_copy(target, bits, per_channel)

    def compile(self, k: int) -> None:
        compile_reads(self._model, DRAFT_READS)

    def open(
        self, prompt: NDArray[np.int64], capacity: int, lanes: int | None, dtype: torch.dtype
    ) -> Context:
        model = self._double if dtype == torch.float64 else self._model
        return open_texts(model, prompt, capacity, lanes)

    def weight_bytes(self) -> int:
        return self._bytes

    @cached_property
    def _double(self) -> CharTransformer:
        return copy.deepcopy(self._model).double()
