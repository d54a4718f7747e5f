"""How far repeats of one measurement lie apart, and whether that is near enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, pstdev
from typing import Any

from scipy.stats import binom

from pipeline.bench.designs import Reported, excludes_1

OF_WHOLE, OF_BLOCKS, OF_QUIET = 1 / 2, 1 / 5, 0.03
OF_NULLS = 0.06


@dataclass(frozen=True)
class Cell:
    """All repeats of one draft, load and design."""

    draft: str
    load: str
    design: str
    repeats: tuple[Reported, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        return tuple(one.ratio for one in self.repeats)

    @property
    def median(self) -> float:
        return median(self.ratios)

    @property
    def spread(self) -> float:
        """Standard deviation over the median."""
        return pstdev(self.ratios) / self.median

    def to_dict(self) -> dict[str, Any]:
        return {
            "draft": self.draft,
            "load": self.load,
            "design": self.design,
            "median": self.median,
            "spread": self.spread,
            "repeats": [one.row() for one in self.repeats],
        }


@dataclass(frozen=True)
class Nulls:
    """The baseline against itself, many times."""

    repeats: tuple[Reported, ...]

    @property
    def excluding(self) -> int:
        """How many have all their ratios on one side of 1."""
        return sum(excludes_1(one) for one in self.repeats)

    @property
    def expected(self) -> float:
        """That share of fair pairs: 2 of the 2^n ways in which n signs can fall."""
        return 2.0 ** (1 - len(self.repeats[0].baseline_s))

    def sentence(self) -> str:
        count, found = len(self.repeats), self.excluding
        likely = float(binom.sf(found - 1, count, self.expected))
        verdict = "reached" if found <= OF_NULLS * count else "missed"
        return (
            f"null under load: {found} of {count} exclude 1 ({self.expected:.1%} expected; so many "
            f"or more come by chance with probability {likely:.2f}): at most {OF_NULLS:.0%}, "
            f"{verdict}"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "count": len(self.repeats),
            "excluding": self.excluding,
            "expected": self.expected,
            "repeats": [one.row() for one in self.repeats],
        }


def judged(cells: Sequence[Cell], nulls: Nulls | None) -> list[str]:
    """Each goal with what was found: fine pieces under load against the other designs and quiet."""
    found = {(one.draft, one.load, one.design): one for one in cells}
    sentences = []
    for draft in dict.fromkeys(one.draft for one in cells):
        quiet = found[draft, "quiet", "fine pieces"]
        fine = found[draft, "loaded", "fine pieces"]
        for other, share in (("whole halves", OF_WHOLE), ("blocks", OF_BLOCKS)):
            spread = found[draft, "loaded", other].spread
            sentences.append(
                f"{draft}, loaded: spread of fine pieces {fine.spread:.1%}, of {other} "
                f"{spread:.1%}: at most {share:.0%} of it, {_word(fine.spread <= share * spread)}"
            )
        off = fine.median / quiet.median - 1
        sentences.append(
            f"{draft}: median of fine pieces {fine.median:.3f} loaded, {quiet.median:.3f} quiet: "
            f"within {OF_QUIET:.0%}, {_word(abs(off) <= OF_QUIET)}"
        )
    return sentences + ([nulls.sentence()] if nulls else [])


def _word(reached: bool) -> str:
    return "reached" if reached else "missed"
