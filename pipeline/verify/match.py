"""Sample and match: the target draws at every position, and the draft is kept while it agrees.

yᵢ ~ pᵢ once a position; go on while yᵢ = Xᵢ; the last yᵢ is always emitted. Exact for any draft,
and q is never read; the acceptance is Σ p·q, below the token rule's Σ min(p, q). Because `u` are
the uniforms of plain decoding at these positions, the text is plain decoding's very text.
"""

from __future__ import annotations

import numpy as np

from pipeline.verify.rows import draw, edge_gap, leading
from pipeline.verify.rule import Array, Rule


class Match(Rule):
    name = "match"
    uniforms = "next"

    def verify(
        self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array
    ) -> tuple[Array, Array]:
        lanes, k = drafted.shape
        if not k:
            return np.zeros(lanes, np.int64), draw(p[:, 0], u_next)
        every_u = np.concatenate([u, u_next[:, None]], axis=1)
        drawn = draw(p.reshape(-1, p.shape[-1]), every_u.reshape(-1)).reshape(lanes, k + 1)
        accepted = leading(drawn[:, :k] == drafted)
        return accepted, drawn[np.arange(lanes), accepted]

    def row(self, p: Array, q: Array, drafted: Array, accepted: Array) -> Array:
        """p after the accepted tokens: what `u_next` draws from if all k were accepted; if not,
        `u_next` is not used, since the test has already drawn the token."""
        return p[np.arange(len(p)), accepted]

    def cuts(self, p: Array, q: Array, drafted: Array) -> Array:
        cdf = p[:, : drafted.shape[1]].cumsum(axis=-1)
        cuts: Array = cdf / cdf[..., -1:]
        return cuts

    def margin(
        self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array, accepted: Array
    ) -> Array:
        gaps = edge_gap(p, np.concatenate([u, u_next[:, None]], axis=1))
        drew = np.arange(drafted.shape[1] + 1) <= accepted[:, None]
        margin: Array = np.where(drew, gaps, 1).min(axis=1)
        return margin
