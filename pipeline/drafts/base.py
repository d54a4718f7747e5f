"""What every draft is: something that reads texts as the target does, and says what it keeps."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.context import Context


class Draft(Protocol):
    """A cheap model q over the target's characters (Leviathan et al. 2023, arXiv 2211.17192)."""

    keeps: str
    """The state it keeps beside the target's, in one sentence."""

    def open(
        self, prompt: NDArray[np.int64], capacity: int, lanes: int | None, dtype: torch.dtype
    ) -> Context:
        """Read `prompt (T,)`; texts may grow to `capacity` tokens. `lanes=None` is one text."""
        ...

    def weight_bytes(self) -> int:
        """Bytes of its weights as stored."""
        ...
