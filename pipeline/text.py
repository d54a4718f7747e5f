"""Characters to ids and back. The vocabulary is a string: the character at index i has id i."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Vocabulary:
    """The characters a model knows, in id order."""

    chars: str

    @classmethod
    def of(cls, text: str) -> Vocabulary:
        """Every character of `text`, in code point order."""
        return cls("".join(sorted(set(text))))

    @cached_property
    def ids(self) -> dict[str, int]:
        return {char: index for index, char in enumerate(self.chars)}

    def __len__(self) -> int:
        return len(self.chars)

    def encode(self, text: str) -> NDArray[np.int64]:
        """Ids `(T,)` of `text`. ValueError names the first character that is not known."""
        known = self.ids
        try:
            return np.fromiter((known[char] for char in text), np.int64, len(text))
        except KeyError as error:
            char = error.args[0]
            where = text.index(char)
            raise ValueError(
                f"the character {char!r} at position {where} is not among the {len(self)} "
                "characters the target knows"
            ) from None

    def decode(self, ids: Sequence[int] | NDArray[np.int64]) -> str:
        return "".join(self.chars[int(index)] for index in ids)
