"""Weights are what they hold, not where they lie: which timings stand in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.records import JobRecord
from tests.compared import nudged, on_machine, side_by_side
from tests.records_factory import make_sweep
from tracking.compare.words import rank_sentences
from tracking.headlines import marked
from tracking.rows import rows

LINUX, MAC, WINDOWS = "/home/a/own", "/Users/b/mine/", "C:\\Users\\c\\own"
SAME, OTHER = "feed" * 16, "beef" * 16


def with_weights(where: str, digest: str = SAME) -> list[JobRecord]:
    jobs = make_sweep(("int8", "bigram"), (1, 4), (0,))
    return [
        replace(r, params=r.params | {"target": where}, tags=r.tags | {"weights.digest": digest})
        for r in jobs
    ]


@pytest.mark.parametrize("elsewhere", [MAC, WINDOWS])
def test_the_timings_of_the_same_weights_in_other_folders_meet(elsewhere: str) -> None:
    found = side_by_side(
        on_machine("attic", with_weights(LINUX)), on_machine("cellar", with_weights(elsewhere))
    )
    names = ["int8 k=1", "int8 k=4", "bigram k=1", "bigram k=4"]
    assert [line.name for line in found.lines] == names
    assert all(cell is not None for line in found.lines for cell in line.cells)
    assert found.counts.agreeing == 4


@pytest.mark.parametrize(
    ("elsewhere", "names"),
    [
        (MAC, ("own", "mine")),
        (WINDOWS, ("own (feed)", "own (beef)")),
        (LINUX, ("own (feed)", "own (beef)")),  # of the same name on two machines
    ],
)
def test_other_weights_stand_apart_and_are_named(elsewhere: str, names: tuple[str, str]) -> None:
    found = side_by_side(
        on_machine("attic", with_weights(LINUX)),
        on_machine("cellar", [nudged(r) for r in with_weights(elsewhere)]),
    )
    assert [line.name for line in found.lines] == [
        f"{draft} k={k} target={name}"
        for name in names
        for draft in ("int8", "bigram")
        for k in (1, 4)
    ]
    assert [[cell is None for cell in line.cells] for line in found.lines[3:5]] == [
        [False, True],
        [True, False],
    ]


def test_the_same_draft_of_other_weights_is_no_other_fastest_draft() -> None:
    found = side_by_side(
        on_machine("attic", with_weights(LINUX)),
        on_machine("cellar", [nudged(r) for r in with_weights(MAC)]),
    )
    assert len(found.ranks) == 2
    assert not [told for told in rank_sentences(found) if "The fastest draft" in told]


def test_a_draft_with_parts_of_its_own_does_not_make_the_targets_differ() -> None:
    """`weights.digest` is of target and draft together."""
    mixed = [
        replace(r, tags=r.tags | {"weights.digest": OTHER}) if r.params["draft"] == "bigram" else r
        for r in with_weights("shipped")
    ]
    assert [row.name for row in rows(mixed)][::2] == ["int8 k=1", "bigram k=1"]


def test_records_that_do_not_tell_their_weights_go_by_their_folder() -> None:
    untold = [replace(r, tags={}) for r in [*with_weights(LINUX), *with_weights(MAC)]]
    assert {row.split["target"] for row in rows(untold)} == {"own", "mine"}
    assert all(row.jobs == 1 for row in rows(untold))


def test_a_headline_that_misleads_marks_the_rows_of_its_own_weights() -> None:
    every = rows([*with_weights(LINUX), *with_weights(MAC, OTHER)])
    pair = {"setting": {"k": "4", "target": MAC}, "accepted_more": "int8", "faster": "bigram"}
    assert marked(every, {"misleading": [pair]}) == {"int8 k=4 target=mine"}


def test_drafts_whose_weights_are_the_same_everywhere_are_not_marked() -> None:
    jobs = with_weights("shipped")
    other = [nudged(r) if r.params["draft"] == "int8" else r for r in jobs]
    found = side_by_side(on_machine("attic", jobs), on_machine("cellar", other))
    assert [line.name for line in found.lines] == [
        "int8 k=1 target=shipped (feed)",
        "int8 k=4 target=shipped (feed)",
        "bigram k=1",
        "bigram k=4",
        "int8 k=1 target=shipped (beef)",
        "int8 k=4 target=shipped (beef)",
    ]
