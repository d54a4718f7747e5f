"""What the counts of several sweeps say together, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.records import JobRecord
from tracking.compare.counts import Apart, Counts, Disagreement
from tracking.compare.matching import CLOCKS_ONLY, DIGESTS, Difference
from tracking.compare.sweeps import Sweep

_MOST = 4  # names told one by one


def count_sentences(sweeps: Sequence[Sweep], counts: Counts) -> list[str]:
    """Agreement first, then the first disagreement, then all that sets the sweeps apart."""
    if not counts.matches:
        told = ["No job has its counts in two of the sweeps, so there is nothing that must agree."]
    else:
        told = _agreement(counts)
    if counts.disagreements:
        told += _disagreement(counts.disagreements[0], len(counts.disagreements))
    told += [_apart(apart, sweeps) for apart in counts.apart]
    told += [_alone(label, records) for label, records in counts.alone.items()]
    return told


def _agreement(counts: Counts) -> list[str]:
    """For two sweeps a sentence; for more, one for all of them and one for each pair."""
    pairs: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for found in counts.matches:
        for (left, a), (right, b) in found.pairs():
            agrees = a.tags["counts.digest"] == b.tags["counts.digest"]
            pairs.setdefault((left.label, right.label), []).append((agrees, a.digest == b.digest))
    if len(pairs) == 1:
        return [_agreeing("", [*pairs.values()][0])]
    every = [(found.agrees, found.same_job) for found in counts.matches]
    each = [_agreeing(f" between {one} and {other}", p) for (one, other), p in pairs.items()]
    return [_agreeing(" everywhere", every), *each]


def _agreeing(where: str, jobs: Sequence[tuple[bool, bool]]) -> str:
    """`jobs` says of each whether its counts agree, and whether it is the very same job."""
    agree, same = (sum(told) for told in zip(*jobs, strict=True))
    told = f"{agree} of {len(jobs)} {'job agrees' if len(jobs) == 1 else 'jobs agree'}{where}"
    equal = "the same weights, code and configuration"
    if same == len(jobs):
        return f"{told}: {equal}."
    return f"{told}; {same} of {len(jobs)} {'has' if same == 1 else 'have'} {equal}."


def _disagreement(first: Disagreement, how_many: int) -> list[str]:
    one, other = first.labels
    told = f"{'The first' if how_many > 1 else 'The'} disagreement is {first.name}: "
    figures = [
        f"{name.removeprefix('count/').replace('_', ' ')} {a:g} on {one}, {b:g} on {other}"
        for name, (a, b) in first.figures.items()
    ]
    told += "; ".join(figures) or "the totals are equal, the rounds are not"
    parting = first.parting
    if parting is None:
        told += "; the texts are equal or were not kept."
    else:
        told += (
            f"; the texts part at character {parting.position}: "
            f"{parting.one!r} on {one}, {parting.other!r} on {other}."
        )
    return [told, _margin(first), _cause(first)]


def _margin(first: Disagreement) -> str:
    closest = first.closest
    margins = [
        f"{margin:.1e} on {label}"
        for label, margin in zip(first.labels, closest.margins, strict=True)
        if margin is not None
    ]
    if not margins:
        return "How near its closest decision was to going the other way is not recorded."
    if closest.position is not None:
        which = (
            f"They part in the round from character {closest.position} on, whose closest decision"
        )
    else:
        which = "The margin of the round is not recorded; the closest decision of the whole job"
    so = (
        "so near that rounding may have turned it"
        if closest.near_tie
        else "so far that rounding cannot have turned it"
    )
    return f"{which} was {' and '.join(margins)} from going the other way: {so}."


def _cause(first: Disagreement) -> str:
    if not first.differences:
        told = "Weights, code and configuration are the same: that is a finding."
        apart = _machines_apart(first)
        return f"{told} What differs is {apart}." if apart else told
    causes = [d for d in first.differences if d.what not in CLOCKS_ONLY]
    if not causes:
        return "Only settings of the timed side differ, which counts know nothing of: a finding."
    names = " and ".join(
        dict.fromkeys(d.what if d.what in DIGESTS else "configuration" for d in causes)
    )
    verb = "differs" if names in ("code", "configuration") else "differ"
    each = "; ".join(_named_values(d, *first.labels) for d in causes)
    return f"It comes of the {names}, which {verb}: {each}."


def _machines_apart(first: Disagreement) -> str:
    """What the machines' own tags say: another torch or instruction set is where to look."""
    one, other = first.machines
    names = ("machine.torch", "machine.torch_cpu", "machine.blas", "machine.python", "machine.cpu")
    return "; ".join(
        f"{name} {one.get(name, 'not told')} against {other.get(name, 'not told')}"
        for name in names
        if one.get(name) != other.get(name)
    )


def _apart(apart: Apart, sweeps: Sequence[Sweep]) -> str:
    one, other = apart.labels
    what = apart.difference.what
    some = "1 job" if apart.jobs == 1 else f"{apart.jobs} jobs"
    of = "all jobs" if apart.every else f"{some} ({', '.join(apart.drafts)})"
    verb = "differ" if what == "weights" else "differs"
    thing = what if what in DIGESTS else f"setting {what}"
    told = f"The {thing} {verb} in {of}: {_values(apart.difference, one, other)}"
    if what == "code":
        told += _commits(apart, sweeps)
    if what in CLOCKS_ONLY:
        return f"{told}; counts do not depend on it, timings do."
    if apart.disagreeing == 0:
        return f"{told}; the counts agree all the same."
    return f"{told}; {apart.disagreeing} of {apart.jobs} disagree."


def _commits(apart: Apart, sweeps: Sequence[Sweep]) -> str:
    by_label = {sweep.label: sweep.tags for sweep in sweeps}
    told = []
    for label in apart.labels:
        tags = by_label.get(label, {})
        if commit := tags.get("git.commit"):
            changed = " with changes" if tags.get("git.dirty") == "true" else ""
            told.append(f"{label} ran commit {commit[:10]}{changed}")
    return f" ({', '.join(told)})" if told else ""


def _values(difference: Difference, one: str, other: str) -> str:
    short = 12 if difference.what in DIGESTS else 60
    a, b = (value[:short] or "not told" for value in (difference.one, difference.other))
    return f"{a} on {one}, {b} on {other}"


def _named_values(difference: Difference, one: str, other: str) -> str:
    name = "" if difference.what in DIGESTS else f"{difference.what} "
    return f"{name}{_values(difference, one, other)}"


def _alone(label: str, records: Sequence[JobRecord]) -> str:
    names = ", ".join(record.name for record in records[:_MOST])
    more = f" and {len(records) - _MOST} more" if len(records) > _MOST else ""
    jobs = "1 job" if len(records) == 1 else f"{len(records)} jobs"
    return f"Only {label} has {jobs}, compared with nothing: {names}{more}."
