"""Counts of several sweeps: what agrees, what does not, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.records import JobRecord
from tests.compared import nudged, on_machine, side_by_side
from tests.records_factory import make_failed, make_record, make_sweep
from tracking.compare import NothingToCompare, Sweep, compare
from tracking.compare.count_words import count_sentences


def told(*sweeps: Sweep) -> str:
    found = side_by_side(*sweeps)
    return "\n".join(count_sentences(found.sweeps, found.counts))


def with_rounds(record: JobRecord, margin: float = 4e-3) -> JobRecord:
    """Rounds of two characters; `margin` is of the one that begins at character 22."""
    rows = [
        {"round": place, "start": 2 * place, "k": 1, "accepted": 1, "emitted": 2}
        | {"margin": margin if place == 11 else 0.1}
        for place in range(31)
    ]
    return replace(record, rounds=rows)


def test_equal_jobs_agree() -> None:
    found = side_by_side(on_machine("attic"), on_machine("cellar"))
    assert (len(found.counts.matches), found.counts.agreeing, found.counts.same_jobs) == (
        12,
        12,
        12,
    )
    assert told(on_machine("attic"), on_machine("cellar")) == (
        "12 of 12 jobs agree: the same weights, code and configuration."
    )


def test_a_disagreement_is_named_with_both_values_and_the_place_and_the_margin() -> None:
    jobs = make_sweep(seeds=(0,))
    jobs[0] = with_rounds(jobs[0])
    other = [with_rounds(nudged(jobs[0]), margin=7e-12), *jobs[1:]]
    text = told(on_machine("attic", jobs), on_machine("cellar", other))
    assert "11 of 12 jobs agree; 11 of 12 have the same weights, code and configuration." in text
    accepted = jobs[0].metrics["count/accepted"]
    assert f"bigram k=1 seed=0: accepted {accepted:g} on attic, {accepted - 3:g} on cellar" in text
    assert "the texts part at character 22: " in text
    assert "'t Citizen:\\nBefore w' on attic, 't Citizen:\\nBefore h' on cellar" in text
    assert (
        "They part in the round from character 22 on, whose closest decision was 4.0e-03 on" in text
    )
    assert "attic and 7.0e-12 on cellar from going the other way: so near that rounding may" in text


@pytest.mark.parametrize(
    ("before", "place"),
    [({}, "character 22 "), ({"accepted": 0}, "character 2 "), ({"k": 0}, "character 2 ")],
)
def test_the_margin_is_that_of_the_first_round_that_is_not_the_same(
    before: dict[str, int], place: str
) -> None:
    one = with_rounds(make_record())
    other = nudged(with_rounds(make_record()))
    other = replace(other, rounds=[other.rounds[0], other.rounds[1] | before, *other.rounds[2:]])
    text = told(on_machine("attic", [one]), on_machine("cellar", [other]))
    assert f"They part in the round from {place}on" in text


def test_without_rounds_that_tell_it_the_margin_is_said_to_be_the_whole_jobs() -> None:
    older = make_record()
    older = replace(older, rounds=[{k: r[k] for k in r if k != "margin"} for r in older.rounds])
    text = told(on_machine("attic", [older]), on_machine("cellar", [nudged(older)]))
    assert (
        "The margin of the round is not recorded; the closest decision of the whole job was "
        "1.3e-04 on attic and 1.3e-04 on cellar from going the other way: so far that" in text
    )


def test_one_job_is_said_in_the_singular() -> None:
    jobs = make_sweep(seeds=(0,))
    text = told(on_machine("attic", jobs), on_machine("cellar", [nudged(jobs[0]), *jobs[1:]]))
    assert "The weights differ in 1 job (bigram): " in text


def test_a_disagreement_is_traced_to_the_weights() -> None:
    jobs = make_sweep(seeds=(0,))
    other = [nudged(record) if record.params["draft"] == "int8" else record for record in jobs]
    text = told(on_machine("attic", jobs), on_machine("cellar", other))
    assert "It comes of the weights, which differ: feedfeedfeed on attic, beefbeefbeef on" in text
    assert "The weights differ in 4 jobs (int8): " in text
    assert "4 of 4 disagree." in text


def test_a_disagreement_is_traced_to_the_code_and_its_commits() -> None:
    jobs = make_sweep(seeds=(0,))
    other = [
        replace(nudged(r), tags=nudged(r).tags | {"weights.digest": "feed" * 16}) for r in jobs
    ]
    cellar = on_machine("cellar", other, **{"code.digest": "0dd" * 21})
    cellar = replace(cellar, tags={**cellar.tags, "git.commit": "1" * 40, "git.dirty": "true"})
    text = told(on_machine("attic", jobs), cellar)
    assert "It comes of the code, which differs: c0dec0dec0de on attic, 0dd0dd0dd0dd on" in text
    assert "The code differs in all jobs" in text
    assert "(cellar ran commit 1111111111 with changes)" in text


def test_the_same_job_with_other_counts_is_a_finding_that_names_the_machines() -> None:
    job = make_record()
    other = replace(nudged(job), digest=job.digest)
    attic, cellar = on_machine("attic", [job]), on_machine("cellar", [other])
    cellar = replace(cellar, tags={**cellar.tags, "machine.torch": "2.9.0"})
    text = told(attic, cellar)
    assert "Weights, code and configuration are the same: that is a finding." in text
    assert "What differs is machine.torch not told against 2.9.0." in text


def test_a_margin_within_rounding_is_said_to_be_one() -> None:
    job = make_record()
    close = job.metrics | {"count/margin_min": 3e-12}
    other = replace(nudged(job), digest=job.digest, metrics=close, rounds=[])
    text = told(on_machine("attic", [job]), on_machine("cellar", [other]))
    assert "so near that rounding may have turned it" in text


def test_settings_of_the_timed_side_do_not_keep_counts_from_being_compared() -> None:
    job = make_record()
    other = replace(job, digest="f" * 16, params=job.params | {"threads": 8})
    text = told(on_machine("attic", [job]), on_machine("cellar", [other]))
    assert "1 of 1 job agrees; 0 of 1 have the same" in text
    assert "The setting threads differs in all jobs: 2 on attic, 8 on cellar; counts do not" in text


def test_jobs_that_only_one_sweep_has_are_said_and_not_counted() -> None:
    more = [*make_sweep(("int8",), seeds=(0,)), make_record("bigram", 2)]
    text = told(on_machine("attic", more), on_machine("cellar", more[:4]))
    assert text.startswith("4 of 4 jobs agree:")
    assert "Only attic has 1 job, compared with nothing: bigram k=2 seed=0." in text


def test_of_three_sweeps_each_pair_is_said() -> None:
    jobs = make_sweep(("int8",), seeds=(0,))
    text = told(
        on_machine("attic", jobs),
        on_machine("cellar", jobs),
        on_machine("tower", [nudged(record) for record in jobs]),
    )
    assert "0 of 4 jobs agree everywhere" in text
    assert "4 of 4 jobs agree between attic and cellar: the same weights" in text
    assert "0 of 4 jobs agree between attic and tower" in text


def clocked(records: list[JobRecord], **params: object) -> list[JobRecord]:
    """The same jobs with other settings of the timed side."""
    return [replace(r, digest=f"{params} {r.digest}", params=r.params | params) for r in records]


@pytest.mark.parametrize("third", [{"timing": "skip"}, {"pairs": 10}])
def test_a_sweep_that_was_timed_otherwise_is_counted_with_those_that_are_alike(
    third: dict[str, object],
) -> None:
    jobs = make_sweep(("int8",), seeds=(0,))
    text = told(
        on_machine("attic", jobs),
        on_machine("cellar", jobs),
        on_machine("tower", clocked([nudged(record) for record in jobs], **third)),
    )
    assert "0 of 4 jobs agree everywhere" in text
    assert "0 of 4 jobs agree between attic and tower" in text
    assert "compared with nothing" not in text


def test_each_of_a_sweeps_variants_stands_beside_the_one_it_is_alike() -> None:
    jobs = make_sweep(("int8",), seeds=(0,))
    other = clocked(jobs, pairs=10)
    found = side_by_side(
        on_machine("attic", [*jobs, *other]),
        on_machine("cellar", jobs),
        on_machine("tower", other),
    )
    assert (len(found.counts.matches), found.counts.same_jobs) == (8, 8)
    assert not found.counts.alone


def test_two_pairs_of_sweeps_that_were_timed_otherwise_have_their_counts_compared() -> None:
    jobs = make_sweep(("int8",), seeds=(0,))
    sides = [on_machine(name, jobs) for name in ("attic", "cellar")]
    sides += [on_machine(name, clocked(jobs, pairs=10)) for name in ("tower", "shed")]
    assert [len(match.jobs) for match in side_by_side(*sides).counts.matches] == [4] * 4


def test_failed_jobs_take_no_part() -> None:
    failed = replace(make_failed(), tags={})
    sides = [on_machine(name, [make_record(), failed]) for name in ("attic", "cellar")]
    sides = [
        replace(s, records=[replace(r, tags={}) if r.error else r for r in s.records])
        for s in sides
    ]
    assert told(*sides).startswith("1 of 1 job agrees")


def test_only_jobs_that_disagree_are_fetched() -> None:
    jobs = make_sweep(seeds=(0,))
    light = [replace(record, text="") for record in [nudged(jobs[0]), *jobs[1:]]]
    fetched: list[str] = []

    def fetch(sweep: Sweep, record: JobRecord) -> JobRecord:
        fetched.append(f"{sweep.label} {record.name}")
        return replace(record, text="whole")

    compare([on_machine("attic", jobs), on_machine("cellar", light)], fetch)
    assert fetched == ["attic bigram k=1 seed=0", "cellar bigram k=1 seed=0"]


def test_one_side_alone_is_told_what_to_do() -> None:
    with pytest.raises(NothingToCompare, match="make import FILE"):
        side_by_side(on_machine("attic"))


def test_sweeps_without_a_job_in_common_are_told_apart_by_what_differs() -> None:
    own = {"tokens": 60, "target": "/home/a/own"}
    other = [replace(make_record(), digest="e" * 16, params=make_record().params | own)]
    with pytest.raises(NothingToCompare, match="their tokens 200 against 60. Run"):
        side_by_side(on_machine("attic", [make_record()]), on_machine("cellar", other))
