"""The wrong rules of `tests.mutants`, each in a real decode of a tiny target that shows it.

A job with such a rule draws through the same decoder and is put to the same tests as any other.
`python -m tests.mutants` prints how many draws each takes; docs/exactness.md has the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeline import distribution
from pipeline.drafts.bigram import BigramDraft
from pipeline.leak import draws_to_catch
from pipeline.verify import Rule
from pipeline.verify.rule import Array
from pipeline.workbench import Workbench
from tests.family import bench
from tests.models import VOCAB
from tests.mutants import MUTANTS, Mutant, Verified

ROWS = np.random.default_rng(1).dirichlet(np.ones(VOCAB), VOCAB)
"""What a bigram draft believes."""
CERTAIN = np.full((VOCAB, VOCAB), 1e-300)
CERTAIN[:, 2] = 1.0
"""A draft that proposes one character whatever came before."""
SOFT = np.full(VOCAB, 0.1)
SOFT[2] = 0.4
"""The row whose most probable character that is."""


class ToldSoft(Rule):
    """A rule that is told `SOFT`, whatever row the draft was sampled from."""

    def __init__(self, rule: Rule) -> None:
        self._rule, self.name, self.uniforms = rule, rule.name, rule.uniforms

    def verify(self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array) -> Verified:
        return self._rule.verify(p, self._told(q), drafted, u, u_next)

    def row(self, p: Array, q: Array, drafted: Array, accepted: Array) -> Array:
        return self._rule.row(p, self._told(q), drafted, accepted)

    def cuts(self, p: Array, q: Array, drafted: Array) -> Array:
        return self._rule.cuts(p, self._told(q), drafted)

    def margin(
        self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array, accepted: Array
    ) -> Array:
        return self._rule.margin(p, self._told(q), drafted, u, u_next, accepted)

    def _told(self, q: Array) -> Array:
        return np.broadcast_to(SOFT, q.shape)


@dataclass(frozen=True)
class SetUp:
    """A job that shows a mutant; `draws` reject it with p below a millionth, and some to spare."""

    mutant: Mutant
    k: int
    draws: int
    certain: bool = False

    @property
    def wrong(self) -> Workbench:
        rule = ToldSoft(self.mutant.rule) if self.certain else self.mutant.rule
        return replace(self.right, rule=rule)

    @property
    def right(self) -> Workbench:
        """The same job with the rule as it is shipped."""
        draft = BigramDraft(CERTAIN if self.certain else ROWS)
        return bench(draft, k=self.k, verify=self.mutant.rule.name, draws=self.draws)


def _set_up(mutant: Mutant) -> SetUp:
    k = 1 if "bonus" in mutant.name else 2  # the bonus is then among the first two characters
    certain = mutant.name.startswith("argmax")
    return SetUp(mutant, k, _DRAWS.get(mutant.name, 3000), certain)


_DRAWS = {"block with the token residual": 30_000, "match that draws again": 8000}
SET_UPS = {mutant.name: _set_up(mutant) for mutant in MUTANTS if not mutant.only_on_a_tie}


def draws_needed(set_up: SetUp, pilot: int = 400_000) -> float:
    """Draws of two characters that show the mutant with 99% power at the 5% level.

    From the law that `pilot` draws of its own decode have.
    """
    drawn = distribution.first_tokens(set_up.wrong, pilot, distribution.AGAIN_STREAM)
    law = distribution.tally(drawn, VOCAB) / pilot
    return draws_to_catch(distribution.exact_laws(set_up.wrong).p, law)


def table(pilot: int = 400_000) -> str:
    """Markdown: each mutant's job, and the draws of two characters that show it."""
    lines = ["| mutant | rule | k | draws to catch it |", "|---|---|---|---|"]
    for name, one in SET_UPS.items():
        needed = draws_needed(one, pilot)
        shown = float(f"{needed:.2g}")  # the pilot is not surer than that
        lines.append(f"| {name} | {one.mutant.rule.name} | {one.k} | {shown:,.0f} |")
    return "\n".join(lines)
