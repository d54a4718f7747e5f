"""ngram: prompt lookup. What followed the newest characters when they last occurred in the text.

The longest suffix of the text that occurred before in it, at its most recent place, proposes what
followed there (Saxena 2023, "prompt lookup decoding"; Yang et al. 2023, arXiv 2304.04487). No
model, no training: the text is its own draft. A proposal is certain, so its row of q is one-hot.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.context import Context, Ints, Logits
from pipeline.drafts.base import Draft


class NgramDraft(Draft):
    """Proposals copied from the text itself; none where its end never occurred before."""

    keeps = "the text itself, and neither weights nor a cache"
    branches = False
    varies = True

    def __init__(self, vocab: int, shortest: int = 3, longest: int = 16) -> None:
        """Suffixes of `shortest` to `longest` characters count. ValueError for none."""
        if not 1 <= shortest <= longest:
            raise ValueError(
                f"draft.shortest={shortest}, draft.longest={longest}: give suffixes of at least 1 "
                "character, the longest no shorter than the shortest"
            )
        self._vocab, self._shortest, self._longest = vocab, shortest, longest

    def open(
        self, prompt: NDArray[np.int64], capacity: int, lanes: int | None, dtype: torch.dtype
    ) -> Context:
        return LookupTexts(self._vocab, self._shortest, self._longest, prompt, lanes or 1)

    def weight_bytes(self) -> int:
        return 0


class LookupTexts(Context):
    """Texts that are searched for their own endings. A row depends on the text before it alone.

    A text is kept as a string of the characters with its ids as code points. Where nothing is
    found the row is even; `limit` then says that nothing is proposed.
    """

    def __init__(self, vocab: int, shortest: int, longest: int, prompt: Ints, lanes: int) -> None:
        self._vocab, self._shortest, self._longest = vocab, shortest, longest
        self._texts = ["".join(map(chr, prompt.tolist()))] * lanes
        self._peak = len(prompt)
        self._found: dict[str, int] = {}  # of many texts most are equal
        self.lengths = np.full(lanes, len(prompt), np.int64)

    def read(self, lanes: Ints, tokens: Ints) -> Logits:
        logits = np.full((*tokens.shape, self._vocab), -np.inf)
        for row, (lane, added) in enumerate(zip(lanes.tolist(), tokens.tolist(), strict=True)):
            text = self._texts[lane]
            for column, token in enumerate(added):
                text += chr(token)
                at = self._search(text)
                if at is None:
                    logits[row, column] = 0.0
                else:
                    logits[row, column, ord(text[at])] = 0.0
            self._texts[lane] = text
            self.lengths[lane] = len(text)
            self._peak = max(self._peak, len(text))
        return logits

    def limit(self, lanes: Ints, k: int) -> Ints | None:
        """As many as followed the match; 0 where there is none."""
        texts = [self._texts[lane] for lane in lanes.tolist()]
        found = [(text, self._search(text)) for text in texts]
        counts = [0 if at is None else min(len(text) - at, k) for text, at in found]
        return np.array(counts, np.int64)

    def crop(self, lanes: Ints, lengths: Ints) -> None:
        for lane, length in zip(lanes.tolist(), lengths.tolist(), strict=True):
            self._texts[lane] = self._texts[lane][:length]
        self.lengths[lanes] = lengths

    def cache_bytes(self) -> int:
        return 0

    def extra_bytes(self) -> int:
        """The text, as it is kept: a byte a character up to 256 of them."""
        return self._peak * (1 if self._vocab <= 256 else 2)

    def _search(self, text: str) -> int | None:
        """Place of the character that followed the match, or None."""
        if len(self._texts) == 1:
            return self._lookup(text)
        at = self._found.get(text)
        if at is None:
            found = self._lookup(text)
            at = self._found[text] = -1 if found is None else found
        return None if at < 0 else at

    def _lookup(self, text: str) -> int | None:
        before, at = len(text) - 1, None
        for size in range(self._shortest, min(self._longest, before) + 1):
            start = text.rfind(text[-size:], 0, before)
            if start < 0:  # nor can a longer one be there
                break
            at = start + size
        return at
