"""From logits to rows, and from addressed uniforms to tokens.

One `Sampling` serves target and draft alike, so the q handed to a verification rule is the very row
the draft was sampled from. All arithmetic is float64 on NumPy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PURPOSES = {"draft": 1, "accept": 2, "next": 3, "pit": 4}
PAGE = 16  # offsets stored side by side; a wider round opens further pages


@dataclass(frozen=True)
class Sampling:
    """Temperature, top-k, top-p, applied in this order to both sides. Temperature 0 is greedy."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(
                f"sampling.temperature={self.temperature}: give 0 (greedy) or a positive number"
            )
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"sampling.top_k={self.top_k}: give 1 or more, or null for all")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"sampling.top_p={self.top_p}: give a number above 0, at most 1")

    def rows(self, logits: NDArray[np.floating]) -> Floats:
        """Probabilities `(..., V)` of `logits (..., V)`; every row sums to 1 within rounding."""
        if self.temperature == 0:
            return _one_hot(logits)
        z = logits.astype(np.float64)
        if self.temperature != 1:
            z /= self.temperature
        if self.top_k is not None and self.top_k < z.shape[-1]:
            z = np.where(_largest(z, self.top_k), z, -np.inf)
        z -= np.maximum.reduce(z, axis=-1, keepdims=True)
        np.exp(z, out=z)
        z /= np.add.reduce(z, axis=-1, keepdims=True)
        return z if self.top_p == 1 else _nucleus(z, self.top_p)


def _one_hot(logits: NDArray[np.floating]) -> Floats:
    rows = np.zeros(logits.shape)
    np.put_along_axis(rows, logits.argmax(axis=-1)[..., None], 1.0, axis=-1)
    return rows


def _largest(z: Floats, count: int) -> NDArray[np.bool_]:
    """Mask of the `count` largest of each row, exactly so many: a tie goes to the lower id."""
    order = np.argsort(-z, axis=-1, kind="stable")[..., :count]
    mask = np.zeros(z.shape, bool)
    np.put_along_axis(mask, order, True, axis=-1)
    return mask


def _nucleus(rows: Floats, mass: float) -> Floats:
    """Keep the fewest most probable ids that hold at least `mass` (Holtzman et al. 2020)."""
    order = np.argsort(-rows, axis=-1, kind="stable")
    ranked = np.take_along_axis(rows, order, axis=-1)
    before = np.cumsum(ranked, axis=-1) - ranked
    ranked[before >= mass] = 0.0
    kept = np.empty_like(rows)
    np.put_along_axis(kept, order, ranked, axis=-1)
    kept /= kept.sum(axis=-1, keepdims=True)
    return kept


def draw(rows: Floats, u: Floats) -> Ints:
    """Ids `(B,)` by inverse CDF of `rows (B, V)` at uniforms `u (B,)` in [0, 1).

    Rows need not be normalised. An id of probability zero is never drawn, whatever u.
    """
    if len(rows) == 1:
        return np.array([draw_one(rows[0], u[0])])
    cdf = np.cumsum(rows, axis=-1)
    total = cdf[:, -1]
    level = np.minimum(u * total, np.nextafter(total, 0))  # u near 1 must not round past the end
    return (cdf <= level[:, None]).sum(axis=-1)


def draw_one(row: Floats, u: float) -> np.int64:
    """`draw` of a single row `(V,)`: it runs once a token inside timed halves."""
    cdf = row.cumsum()
    total = cdf[-1]
    level = u * total
    if level >= total:
        level = np.nextafter(total, 0)
    return cdf.searchsorted(level, side="right")


def draw_margin(rows: Floats, u: Floats) -> Floats:
    """Distance `(B,)` of each u to the nearest inner edge of its CDF: how near `draw` came to
    another id. The outer edges 0 and 1 are no decisions; a row with one possible id has margin 1.
    """
    cdf = np.cumsum(rows, axis=-1)
    cdf /= cdf[:, -1:]
    inner = (cdf > 0) & (cdf < 1)
    return np.where(inner, np.abs(cdf - u[:, None]), 1.0).min(axis=-1)


class Uniforms:
    """Uniforms in [0, 1) addressed by (seed, stream, purpose, start, lane, offset), by Philox.

    `stream` keeps further texts apart from the job's own (stream 0). `start` is the number of
    tokens emitted before the round, `lane` a text of a batch, `offset` the place inside the round.
    There is no state: an address gives the same number whatever else is drawn, so results do not
    depend on batch, thread or order, nor on tokens that were not emitted. Each round has its own
    addresses: `block` looks at tokens it then discards, and may not see their uniforms again.
    """

    def __init__(self, seed: int, lanes: int = 1, first_lane: int = 0, stream: int = 0) -> None:
        if seed < 0:
            raise ValueError(f"seed={seed}: give a whole number, 0 or more")
        if first_lane % 4:
            raise ValueError("first_lane must be a multiple of 4: Philox yields 4 words a block")
        self.seed, self.lanes, self.first_lane = seed, lanes, first_lane
        self._stream = stream << 8  # beside the purposes, which are below 256
        self._blocks: dict[tuple[str, int, int], Floats] = {}
        self._bits = np.random.Philox(key=0)
        self._fresh = self._bits.state
        self._generator = np.random.Generator(self._bits)

    def block(self, purpose: str, start: int, page: int = 0) -> Floats:
        """All lanes' uniforms of one start and page, `(lanes, PAGE)`; `next` has one a lane."""
        key = (purpose, start, page)
        found = self._blocks.get(key)
        if found is None:
            width = 1 if purpose == "next" else PAGE
            where = np.array([self.first_lane * width // 4, start, page, 0], np.uint64)
            whose = np.array([self.seed, PURPOSES[purpose] + self._stream], np.uint64)
            self._fresh["state"] = {"counter": where, "key": whose}
            self._bits.state = self._fresh  # all of it: a tenth of the time of a new generator
            found = self._blocks[key] = self._generator.random((self.lanes, width))
        return found

    def take(self, purpose: str, lanes: Ints, starts: Ints, width: int) -> Floats:
        """Uniforms `(b, width)` for some `lanes (b,)`, each at its own `starts (b,)`."""
        if width == 0:
            return np.empty((len(lanes), 0))
        if len(lanes) == 1:
            if width > PAGE:
                return self._some(purpose, lanes, int(starts[0]), width)
            lane = int(lanes[0])
            return self.block(purpose, int(starts[0]))[lane : lane + 1, :width]
        out = np.empty((len(lanes), width))
        for start in np.unique(starts):
            here = starts == start
            out[here] = self._some(purpose, lanes[here], int(start), width)
        return out

    def _some(self, purpose: str, lanes: Ints, start: int, width: int) -> Floats:
        if width <= PAGE:
            return self.block(purpose, start)[lanes, :width]
        pages = [self.block(purpose, start, page)[lanes] for page in range(-(-width // PAGE))]
        return np.concatenate(pages, axis=1)[:, :width]

    def along(self, lanes: Ints, starts: Ints, width: int) -> Floats:
        """The `next` uniforms of positions start, start + 1, ... `(b, width)`."""
        if width == 0:
            return np.empty((len(lanes), 0))
        columns = [self.take("next", lanes, starts + offset, 1) for offset in range(width)]
        return np.concatenate(columns, axis=1)

    def prepare(self, tokens: int, width: int) -> None:
        """Draw everything a text of `tokens` can need, so that no clock sees the generator."""
        for start in range(tokens):
            self.block("next", start)
            for purpose in ("draft", "accept"):
                for page in range(-(-width // PAGE)):
                    self.block(purpose, start, page)


class SeedBatch(Uniforms):
    """One lane a seed: row b of a batch has exactly the uniforms of seed b alone."""

    def __init__(self, seeds: list[int]) -> None:
        super().__init__(0, lanes=len(seeds))
        self._each = [Uniforms(seed) for seed in seeds]

    def block(self, purpose: str, start: int, page: int = 0) -> Floats:
        key = (purpose, start, page)
        if key not in self._blocks:
            self._blocks[key] = np.concatenate(
                [one.block(purpose, start, page) for one in self._each]
            )
        return self._blocks[key]
