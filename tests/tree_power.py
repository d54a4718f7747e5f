"""How many texts show that a broken tree rule is wrong: `python -m tests.tree_power`."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from pipeline.leak import draws_to_catch
from tests.enumeration import Case, emitted_law, extend, random_case, target_law
from tests.tree_enumeration import tree_outcomes
from tests.tree_mutants import TREE_MUTANTS, TreeMutant

WIDTHS = (2, 1)
INSIDE = Fraction(1, 2)  # of a cell: ties have no probability


def draws_needed(mutant: TreeMutant, case: Case, widths: tuple[int, ...] = WIDTHS) -> float:
    """Texts that show `mutant` to be wrong: 99% power, 5% level; inf for never."""
    law = extend(case, emitted_law(tree_outcomes(mutant.rule, case, widths, INSIDE)))
    right = target_law(case)
    texts = sorted(law.keys() | right.keys())
    return draws_to_catch(
        np.array([float(right.get(text, 0)) for text in texts]),
        np.array([float(law.get(text, 0)) for text in texts]),
    )


def table(cases: int = 5) -> str:
    """Markdown: draws needed for each mutant on random rows without zeros (V = 3, tree [2, 1])."""
    some = [random_case(np.random.default_rng(seed), len(WIDTHS), least=1) for seed in range(cases)]
    lines = ["| mutant | draws to catch it: fewest | median | most |", "|---|---|---|---|"]
    for mutant in TREE_MUTANTS:
        needed = sorted(draws_needed(mutant, case) for case in some)
        shown = (needed[0], needed[len(needed) // 2], needed[-1])
        cells = [f"{n:,.0f}" if math.isfinite(n) else "never" for n in shown]
        lines.append(f"| {mutant.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
