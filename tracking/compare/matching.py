"""Which jobs of different sweeps are the same one, and what sets them apart. Pure.

Jobs are the same where `job.digest` is: equal weights, code and configuration. Jobs are matched by
their configuration, which those of one digest share, so that different weights or code are named
instead of leaving nothing to compare. What only concerns the clocks may differ where nothing else
is left: counts do not depend on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.records import JobRecord
from tracking.compare.sweeps import Sweep
from tracking.payload import as_text

CLOCKS_ONLY = frozenset(
    "timing pairs piece_tokens most_pairs half_width limit_s threads compile".split()
)
"""Parameters of the timed side, which the counts know nothing of."""
_Variants = dict[str, JobRecord]  # jobs of one sweep that count the same, by configuration
DIGESTS = {"weights": "weights.digest", "code": "code.digest"}


@dataclass(frozen=True)
class Difference:
    """What is not the same for two jobs: "weights", "code" or a parameter, and both values.

    A value is empty where a record does not tell it.
    """

    what: str
    one: str
    other: str


@dataclass(frozen=True)
class Match:
    """One job as sweeps that ran it have it: at least two, in the order of the sweeps."""

    jobs: tuple[tuple[Sweep, JobRecord], ...]

    @property
    def name(self) -> str:
        return self.jobs[0][1].name

    @property
    def same_job(self) -> bool:
        """Whether weights, code and configuration are all equal."""
        return len({record.digest for _, record in self.jobs}) == 1

    @property
    def agrees(self) -> bool:
        return len({record.tags.get("counts.digest") for _, record in self.jobs}) == 1

    def pairs(self) -> Iterator[tuple[tuple[Sweep, JobRecord], tuple[Sweep, JobRecord]]]:
        """The first sweep's job beside each other one."""
        return ((self.jobs[0], other) for other in self.jobs[1:])


def match(sweeps: Sequence[Sweep]) -> tuple[list[Match], dict[str, list[JobRecord]]]:
    """The matches in the order of the first sweep that has the job, and what is left by sweep id.

    Only jobs with counts take part.
    """
    jobs = {sweep.id: _counted_jobs(sweep) for sweep in sweeps}
    place = {id(r): n for n, r in enumerate(r for s in sweeps for r in jobs[s.id])}
    groups: dict[str, dict[str, _Variants]] = {}
    for sweep in sweeps:
        for record in jobs[sweep.id]:
            same = groups.setdefault(counted(record), {}).setdefault(sweep.id, {})
            same[whole(record)] = record
    found: list[Match] = []
    for group in groups.values():
        while len(chosen := _take(group)) > 1:
            found.append(Match(tuple((s, chosen[s.id]) for s in sweeps if s.id in chosen)))
    taken = {id(record) for one in found for _, record in one.jobs}
    left = {name: [r for r in rest if id(r) not in taken] for name, rest in jobs.items()}
    return sorted(found, key=lambda m: place[id(m.jobs[0][1])]), left


def _take(group: dict[str, _Variants]) -> dict[str, JobRecord]:
    """Takes one match out of what is left of jobs that count the same, by sweep id.

    It is of the configuration that most sweeps share, and of the sweeps that lack it: their job
    with other clocks, unless a sweep here has that one too, and still has it to give.
    """
    shared = Counter(key for variants in group.values() for key in variants)
    if not shared:
        return {}
    best = shared.most_common(1)[0][0]
    chosen = {name: variants.pop(best) for name, variants in group.items() if best in variants}
    others = {key for name in chosen for key in group[name]}
    for name, variants in group.items():
        free = [key for key in variants if key not in others]
        if name not in chosen and free:
            chosen[name] = variants.pop(free[0])
    return chosen


def _counted_jobs(sweep: Sweep) -> list[JobRecord]:
    """One of each configuration, the last one: a sweep that was resumed with other code has two."""
    return list({whole(r): r for r in sweep.records if "counts.digest" in r.tags}.values())


def whole(record: JobRecord) -> str:
    """The configuration, whatever the order of its parameters; "none" is as good as left out."""
    return repr(sorted(configuration(record).items()))


def counted(record: JobRecord) -> str:
    """The part of the configuration that the counts depend on."""
    kept = {n: v for n, v in configuration(record).items() if n not in CLOCKS_ONLY}
    return repr(sorted(kept.items()))


def configuration(record: JobRecord) -> dict[str, str]:
    """The parameters that are set, as text: the same from a file and from a store.

    Without the target's place: its content counts, and that is `weights.digest`.
    """
    told = {name: as_text(value) for name, value in record.params.items() if name != "target"}
    return {name: value for name, value in told.items() if value != "none"}


def differences(one: JobRecord, other: JobRecord) -> list[Difference]:
    """Weights first, then code, then parameters; empty for the same job."""
    if one.digest == other.digest:
        return []
    found = [
        Difference(what, one.tags.get(tag, ""), other.tags.get(tag, ""))
        for what, tag in DIGESTS.items()
    ]
    left, right = configuration(one), configuration(other)
    for name in sorted({*left, *right}):
        found.append(Difference(name, left.get(name, "none"), right.get(name, "none")))
    return [d for d in found if d.one != d.other]
