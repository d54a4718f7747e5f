"""What a chain rule is: how many drafted tokens to keep, and the token that follows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

from numpy.typing import NDArray

Array = NDArray[Any]
"""float64, or `Fraction`s in an object array: the formulas are the same, and the tests use both."""


class Rule(ABC):
    """A verification rule for chains of k drafted tokens, on B rounds at once. It keeps no state.

    Shapes: `p (B, k+1, V)` the target's rows after each of the k+1 prefixes; `q (B, k, V)` the very
    rows the draft was sampled from, after the same warping; `drafted (B, k)` ids; `u (B, k)` and
    `u_next (B,)` independent uniforms in [0, 1). k = 0 is plain decoding: a draw from `p[:, 0]`.
    """

    name: str
    uniforms: Literal["accept", "next"]
    """Purpose of `u`: acceptance tests of a round, or the draws that plain decoding makes there."""

    @abstractmethod
    def verify(
        self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array
    ) -> tuple[Array, Array]:
        """How many drafted tokens are kept, `(B,)`, and the token after them, `(B,)`.

        ValueError where a drafted token has probability 0 in the q it is said to come from, if the
        rule reads q.
        """

    @abstractmethod
    def row(self, p: Array, q: Array, drafted: Array, accepted: Array) -> Array:
        """The row that `u_next` draws from after `accepted (B,)` tokens, `(B, V)`; weights."""

    @abstractmethod
    def cuts(self, p: Array, q: Array, drafted: Array) -> Array:
        """Every value at which some `u[b, i]` changes the outcome, `(B, k, m)`."""

    @abstractmethod
    def margin(
        self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array, accepted: Array
    ) -> Array:
        """How far each round's closest decision was from going the other way, `(B,)`, at most 1.

        Only uniforms that mattered count. The distance is of u to its threshold, except where the
        threshold is a ratio whose denominator b may vanish (residual rows, h of `block`): there
        b times that. Rounding errs in this unit by about what it errs in the rows, for any rule.
        """
