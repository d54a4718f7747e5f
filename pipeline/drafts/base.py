"""What every draft is: something that reads texts as the target does, and says what it keeps."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pipeline.context import Context


class Draft(Protocol):
    """A cheap model q over the target's characters (Leviathan et al. 2023, arXiv 2211.17192)."""

    keeps: str
    """The state it keeps beside the target's, in one sentence."""

    most: int | None = None
    """The most tokens that it can propose in one round; None for any number."""

    branches: bool = True
    """Whether its rows hold several tokens to choose from, so that a tree of them can branch."""

    varies: bool = False
    """Whether it may propose fewer tokens than it is asked for, so that rounds differ in length."""

    def compile(self, k: int) -> None:
        """From now on read single texts, k tokens a round, with compiled networks, if it has any.

        ValueError, one sentence, where they cannot be compiled here.
        """
        return None

    def open(
        self, prompt: NDArray[np.int64], capacity: int, lanes: int | None, dtype: torch.dtype
    ) -> Context:
        """Read `prompt (T,)`; texts may grow to `capacity` tokens. `lanes=None` is one text."""
        ...

    def weight_bytes(self) -> int:
        """Bytes of its weights as stored."""
        ...


M = TypeVar("M", bound=nn.Module)


class TwoTypes(Generic[M]):
    """A module as it was given (float32, for clocks), and in float64 once counts ask for it."""

    def __init__(self, given: M) -> None:
        self.given = given

    def of(self, dtype: torch.dtype) -> M:
        return self._double if dtype == torch.float64 else self.given

    @cached_property
    def _double(self) -> M:
        return copy.deepcopy(self.given).double()
