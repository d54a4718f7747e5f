"""Which jobs of different sweeps are the same one, and what sets them apart. Pure.

Jobs are the same where `job.digest` is: equal weights, code and configuration. Jobs are matched by
their configuration, which those of one digest share, so that different weights or code are named
instead of leaving nothing to compare. What only concerns the clocks may differ where nothing else
is left: counts do not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.records import JobRecord
from tracking.compare.sweeps import Sweep
from tracking.payload import as_text

CLOCKS_ONLY = frozenset(
    "timing pairs piece_tokens most_pairs half_width limit_s threads compile".split()
)
"""Parameters of the timed side, which the counts know nothing of."""
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
    left = {sweep.id: _counted_jobs(sweep) for sweep in sweeps}
    place = {id(r): n for n, r in enumerate(r for s in sweeps for r in left[s.id])}
    found: list[Match] = []
    for key in (whole, counted):
        groups: dict[str, dict[str, JobRecord]] = {}
        for sweep in sweeps:
            for record in left[sweep.id]:
                groups.setdefault(key(record), {}).setdefault(sweep.id, record)
        matched = [group for group in groups.values() if len(group) > 1]
        found += [
            Match(tuple((s, group[s.id]) for s in sweeps if s.id in group)) for group in matched
        ]
        taken = {id(record) for group in matched for record in group.values()}
        left = {name: [r for r in rest if id(r) not in taken] for name, rest in left.items()}
    return sorted(found, key=lambda m: place[id(m.jobs[0][1])]), left


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
