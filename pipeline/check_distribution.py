"""Draw a job's first two characters a million times, and compare them with the target's own law.

    python -m pipeline.check_distribution draft=bigram k=2 draws=1000000 n_jobs=2

Settings are those of a sweep, and so are their values; a grid (`k=1,2`) is checked job by job. The
exit code is 1 where the target's distribution is rejected. Every pair of characters comes from the
job's own decoder, as in the smaller check that each job of a sweep makes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import joblib
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from pipeline import config, exactness, leak
from pipeline.asked import settings
from pipeline.progress import Show
from pipeline.spec import JobSpec
from pipeline.verdicts import REJECT_BELOW

if TYPE_CHECKING:
    from pipeline.distribution import Laws

Counts = NDArray[np.int64]

DEFAULTS = {"draft": "bigram", "k": "2", "seed": "0", "draws": "1000000", "timing": "skip"}
CHUNK = 25_000  # draws a task, of a second or two
TEXTS = 128  # for the test on whole texts
BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None, show: Show | None = None) -> int:
    """0, 1 where a distribution is rejected, 2 for settings that cannot be."""
    show = show or Show()
    try:
        composed = settings(arguments, DEFAULTS, __doc__)
        cores = joblib.cpu_count(only_physical_cores=True)
        workers = config.workers(composed[0].config["n_jobs"], cores)
        found = [check(config.to_spec(one.config), workers, show) for one in composed]
    except ValueError as error:
        print(f"specsweep: {error}", file=sys.stderr)
        return BAD_INPUT
    return int(min(found) < REJECT_BELOW)


def check(job: JobSpec, workers: int, show: Show) -> float:
    """Draw, show what came out, and return the p-value of all tests together."""
    from pipeline import distribution  # brings torch: not needed for --help or a typo

    show.say(f"{job.name}: first and second characters after {job.prompt!r}, drawn by its decoder")
    laws, by_pit = distribution.laws_and_texts(job, TEXTS)
    counts = _drawn(job, laws.p.shape, workers, show)
    found = distribution.compare(counts, laws, job.seed)
    p_value = exactness.smaller_of_two(found["dist/p_value"], by_pit)
    for line in (*_told(found, counts, laws, by_pit), _verdict(p_value, found)):
        show.say(f"  {line}")
    return p_value


def _drawn(job: JobSpec, shape: tuple[int, ...], workers: int, show: Show) -> Counts:
    """Counts of pairs `(V, V)` of all draws, made chunk by chunk in `workers` processes."""
    from pipeline.distribution import drawn_pairs

    firsts = range(0, job.draws, CHUNK)
    calls = (delayed(drawn_pairs)(job, first, min(CHUNK, job.draws - first)) for first in firsts)
    counts = np.zeros(shape, np.int64)
    pool = Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    with show.live(), show.phase("drawing", len(firsts)) as phase:
        for part in pool(calls):
            counts += part
            phase.done(f"{int(counts.sum()):,} draws")
    return counts


def _told(found: dict[str, float], counts: Counts, laws: Laws, by_pit: float) -> Iterator[str]:
    draws = round(found["dist/draws"])
    cells = len(np.unique(exactness.pools(draws * laws.p, laws.q)))
    by_g = exactness.g_test(counts, laws.p, laws.q)
    by_leak = leak.leak_test(counts, laws.p, laws.q)
    yield f"draws                     {draws:,}"
    yield (
        f"total variation           {found['dist/tv']:.5f}; as many draws from the target itself: "
        f"{found['dist/tv_null_median']:.5f}, 1 time in 20 above {found['dist/tv_null_p95']:.5f}"
    )
    yield f"G-test, {cells:,} cells".ljust(26) + f"p = {by_g:.3g}"
    yield f"leak of the draft's law   p = {by_leak:.3g}"
    yield f"{TEXTS} whole texts (PIT)".ljust(26) + f"p = {by_pit:.3g}"


def _verdict(p_value: float, found: dict[str, float]) -> str:
    if p_value < REJECT_BELOW:
        return f"REJECTED: the text is not distributed as the target's (p = {p_value:.2g})"
    leaked = found["dist/detectable_leak"]
    seen = (
        f"had {leaked:.2%} of the draft's own law leaked in, 99 times in 100 it would have shown"
        if leaked < 1
        else "the draft is so near the target that its law could not be told from the target's"
    )
    return f"nothing against exactness (p = {p_value:.2g}): {seen}"


if __name__ == "__main__":
    sys.exit(main())
