"""Timings of several sweeps: columns that are never pooled, ranges, flips, ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.records import JobRecord
from tests.compared import on_machine, side_by_side, timed
from tests.records_factory import make_record, make_sweep
from tracking.compare import NothingToCompare
from tracking.compare.table import entries, tidy
from tracking.compare.words import flip_sentences, rank_sentences, speed_sentences
from tracking.load import main_load

SLOW, LEVEL, FAST = (0.7, 0.8, 0.9), (0.9, 1.0, 1.2), (1.3, 1.4, 1.5)


def one(ratios: tuple[float, ...], **costs: float) -> list[JobRecord]:
    return [timed(make_record("int8", 4), ratios, **costs)]


def test_a_machine_idle_and_busy_is_two_columns() -> None:
    found = side_by_side(
        on_machine("attic", load="idle", sweep_id="s1"),
        on_machine("attic", load="busy", sweep_id="s2"),
    )
    assert [column.label for column in found.columns] == ["attic idle", "attic busy"]
    assert [sweep.label for sweep in found.sweeps] == ["attic idle", "attic busy"]


def test_a_sweep_whose_load_changed_has_a_column_for_each_state() -> None:
    calm, stormy = make_sweep(("int8",), seeds=(0, 1)), make_sweep(("int8",), seeds=(2,))
    stormy = [replace(record, tags={"load.state": "busy", **record.tags}) for record in stormy]
    attic = on_machine("attic", [*calm, *stormy])
    attic = replace(
        attic, records=[replace(r, tags=attic.records[0].tags | r.tags) for r in attic.records]
    )
    found = side_by_side(attic, on_machine("cellar", calm))
    assert [(c.label, len(c.records)) for c in found.columns] == [
        ("attic idle", 8),
        ("attic busy", 4),
        ("cellar idle", 8),
    ]


def test_a_sweep_that_went_on_on_another_machine_has_a_column_for_each() -> None:
    """Its own tags are those of the machine that ended it."""
    first, second = make_record("int8", 4, 0), make_record("int8", 4, 1)
    here = {"machine.id": "0123456789ab", "machine.name": "attic", "machine.cpu": "old"}
    noisy = first.metrics | {"null/ratio_min": 0.5, "null/ratio_max": 2.0}
    first = replace(first, tags=first.tags | here, metrics=noisy)
    mixed = on_machine("cellar", [first, second])
    mixed = replace(mixed, tags={**mixed.tags, "machine.cpu": "new", "machine.power": "mains"})
    found = side_by_side(mixed)
    assert [(c.label, len(c.records)) for c in found.columns] == [
        ("attic idle", 1),
        ("cellar idle", 1),
    ]
    assert [sweep.label for sweep in found.sweeps] == ["attic + cellar"]
    assert [fact.told.get("cpu") for fact in found.facts] == ["old", "new"]
    assert [fact.told.get("power") for fact in found.facts] == [None, "mains"]
    assert [fact.noise for fact in found.facts] == [(0.5, 2.0), (0.96, 1.05)]
    (line,) = found.lines
    assert [cell and cell.null_high for cell in line.cells] == [2.0, 1.05]
    assert [row["machine"] for row in tidy(found)] == ["attic", "cellar"]


def test_its_jobs_stand_beside_each_machines_own_sweep_and_in_its_ranks() -> None:
    jobs = make_sweep(("int8", "bigram"), (1,), (0, 1))
    moved = {"machine.id": "0123456789ab", "machine.name": "attic"}
    half = [replace(r, tags=r.tags | moved) if r.params["seed"] == 0 else r for r in jobs]
    found = side_by_side(on_machine("cellar", half), on_machine("tower", jobs))
    labels = [found.columns[rank.column].label for rank in found.ranks]
    assert labels == ["attic idle", "cellar idle", "tower idle"]
    assert found.counts.agreeing == 4


def test_one_sweep_under_two_loads_is_enough_to_compare() -> None:
    calm, stormy = make_record("int8", 4, 0), make_record("int8", 4, 1)
    stormy = replace(stormy, tags=stormy.tags | {"load.state": "busy"})
    both = on_machine("attic", [calm, stormy])
    assert [column.label for column in side_by_side(both).columns] == ["attic idle", "attic busy"]


def test_one_sweep_whose_columns_share_nothing_is_told_what_to_do() -> None:
    calm, stormy = make_record("int8", 4, 0), make_record("bigram", 4, 0)
    stormy = replace(stormy, tags=stormy.tags | {"load.state": "busy"})
    with pytest.raises(NothingToCompare) as refused:
        side_by_side(on_machine("attic", [calm, stormy]))
    told = str(refused.value)
    assert "timed in two of its columns (attic idle, attic busy): bring another machine's" in told


def test_two_sweeps_of_one_machine_and_load_are_not_pooled() -> None:
    found = side_by_side(
        on_machine("attic", sweep_id="before"), on_machine("attic", sweep_id="after")
    )
    assert [c.label for c in found.columns] == ["attic idle before", "attic idle after"]


def test_two_machines_of_one_name_are_told_apart_by_their_ids() -> None:
    first, second = on_machine("debian"), on_machine("debian", sweep_id="s2")
    second = replace(second, tags={**second.tags, "machine.id": "0123456789ab"})
    assert [c.label for c in side_by_side(first, second).columns][1] == "debian (0123) idle"


def test_ranges_that_do_not_meet_say_who_gains_more() -> None:
    found = side_by_side(on_machine("attic", one(FAST)), on_machine("cellar", one(SLOW)))
    (entry,) = entries(found)
    assert entry.cells == ("1.40 (1.30-1.50)", "0.80 (0.70-0.90)")
    assert entry.ahead == "attic idle"


def test_ranges_that_meet_are_not_told_apart() -> None:
    found = side_by_side(on_machine("attic", one(LEVEL)), on_machine("cellar", one(SLOW)))
    assert entries(found)[0].ahead == "not told apart"


def test_of_three_columns_those_level_with_the_best_are_named_together() -> None:
    sides = [
        on_machine("attic", one(FAST)),
        on_machine("cellar", one((1.35, 1.45, 1.6))),
        on_machine("tower", one(SLOW)),
    ]
    assert entries(side_by_side(*sides))[0].ahead == "attic idle, cellar idle"


def test_a_flip_is_told_first_and_with_the_cost_that_makes_it() -> None:
    pays = one(FAST, c=0.2, v=1.1, o=0.1)
    loses = one(SLOW, c=1.06, v=1.1, o=0.1)
    calm = make_record("bigram", 1)
    found = side_by_side(on_machine("attic", [calm, *loses]), on_machine("cellar", [calm, *pays]))
    assert flip_sentences(found) == [
        "int8 k=4 pays on cellar idle, 1.40 (1.30-1.50), and not on attic idle, "
        "0.80 (0.70-0.90), because c is 0.20 on cellar idle, 1.06 on attic idle."
    ]
    assert entries(found)[0].name == "int8 k=4"
    assert entries(found)[0].flips == "whole"


def test_every_term_that_matters_is_named() -> None:
    pays, loses = one(FAST, c=0.2, v=1.0, o=0.1), one(SLOW, c=0.6, v=3.0, o=0.2)
    found = side_by_side(on_machine("attic", loses), on_machine("cellar", pays))
    (sentence,) = flip_sentences(found)
    assert "v is 1.00 on cellar idle, 3.00 on attic idle and c is 0.20" in sentence
    assert " o is" not in sentence


def test_a_flip_that_the_costs_do_not_predict_is_not_explained_by_them() -> None:
    pays, loses = one(FAST, c=1.06, v=1.1, o=0.1), one(SLOW, c=1.07, v=1.1, o=0.1)
    found = side_by_side(on_machine("attic", loses), on_machine("cellar", pays))
    (sentence,) = flip_sentences(found)
    assert "the measured costs do not explain it" in sentence
    assert "because" not in sentence


def test_a_cost_below_zero_explains_nothing() -> None:
    pays, loses = one(FAST, c=-5.0, v=1.0, o=0.1), one(SLOW, c=1.0, v=1.0, o=0.1)
    found = side_by_side(on_machine("attic", loses), on_machine("cellar", pays))
    (sentence,) = flip_sentences(found)
    assert "the measured costs do not explain it" in sentence


def test_costs_that_differ_by_less_than_predictions_are_off_explain_nothing() -> None:
    """They predict both verdicts, but by 16%, where they are off by 50%."""
    pays, loses = one((2.0, 2.1, 2.2), c=0.85, v=1.0, o=0.1), one(SLOW, c=1.05, v=1.0, o=0.1)
    found = side_by_side(on_machine("attic", loses), on_machine("cellar", pays))
    (flip,), (sentence,) = found.flips, flip_sentences(found)
    won, lost = flip.line.cells[flip.pays], flip.line.cells[flip.loses]
    assert won and lost and (won.predicted or 0) > 1 > (lost.predicted or 0)
    assert "do not explain it: they predict 1.0" in sentence and "are off by up to" in sentence


def test_a_whole_flip_comes_before_one_that_is_only_not_told_apart() -> None:
    bigram = timed(make_record("bigram", 1), FAST)
    level = timed(make_record("bigram", 1), LEVEL)
    found = side_by_side(
        on_machine("attic", [bigram, *one(FAST)]), on_machine("cellar", [level, *one(SLOW)])
    )
    assert [(flip.line.name, flip.whole) for flip in found.flips] == [
        ("int8 k=4", True),
        ("bigram k=1", False),
    ]
    assert [(entry.name, entry.flips) for entry in entries(found)] == [
        ("int8 k=4", "whole"),
        ("bigram k=1", "half"),
    ]


def test_a_half_flip_is_told_by_the_cost_that_differs() -> None:
    """Plain decoding is within the other's range, so its prediction need not be below 1."""
    pays, level = one(FAST, c=0.5, v=1.1, o=0.1), one((0.9, 1.0, 1.1), c=0.75, v=1.1, o=0.1)
    found = side_by_side(on_machine("attic", level), on_machine("cellar", pays))
    (sentence,) = flip_sentences(found)
    assert "is not told apart from plain decoding on attic idle" in sentence
    assert "because c is 0.50 on cellar idle, 0.75 on attic idle." in sentence


def test_without_a_flip_that_is_said() -> None:
    found = side_by_side(on_machine("attic"), on_machine("cellar"))
    assert flip_sentences(found) == [
        "No verdict flips: what pays in one column is not clearly slower in another."
    ]


def test_drafts_are_ranked_at_their_best_k_and_inversions_named() -> None:
    jobs = [
        timed(make_record("int8", 4), SLOW),
        timed(make_record("int8", 1), (0.5, 0.6)),
        timed(make_record("bigram", 4), (0.2, 0.3)),
        timed(make_record("bigram", 1), FAST),
    ]
    told = rank_sentences(side_by_side(on_machine("attic", jobs), on_machine("cellar", jobs)))
    assert told[0].startswith("attic idle: by speed bigram k=1 1.40 > int8 k=4 0.80; by acceptance")
    assert "int8" in told[0].partition("by acceptance ")[2].split(" > ")[0]
    assert told[1] == "attic idle: int8 is accepted more than bigram, and clearly slower."


def two(int8: tuple[float, ...], bigram: tuple[float, ...]) -> list[JobRecord]:
    return [timed(make_record("int8", 4), int8), timed(make_record("bigram", 4), bigram)]


def fastest(*sides: list[JobRecord]) -> list[str]:
    names = ("attic", "cellar", "tower")
    found = side_by_side(*(on_machine(n, jobs) for n, jobs in zip(names, sides, strict=False)))
    return [told for told in rank_sentences(found) if told.startswith("The fastest draft")]


def test_another_fastest_draft_is_named_where_each_is_clearly_faster() -> None:
    assert fastest(two(FAST, SLOW), two(SLOW, FAST)) == [
        "The fastest draft is not the same: int8 k=4 on attic idle, bigram k=4 on cellar idle."
    ]


@pytest.mark.parametrize("other", [(0.85, 0.95, 1.05), (1.1, 1.25, 1.35)])
def test_drafts_whose_ranges_meet_are_no_other_fastest_draft(other: tuple[float, ...]) -> None:
    assert fastest(two(FAST, SLOW), two(LEVEL, (1.1, 1.25, 1.35))) == []
    assert fastest(two(other, LEVEL), two(SLOW, FAST)) == []


def test_a_third_column_that_tells_no_draft_apart_is_not_named() -> None:
    (sentence,) = fastest(two(FAST, SLOW), two(SLOW, FAST), two(LEVEL, LEVEL))
    assert "tower" not in sentence


def test_the_same_draft_timed_in_more_pairs_is_no_other_fastest_draft() -> None:
    more = [replace(r, params=r.params | {"piece_tokens": 8}) for r in two(FAST, SLOW)]
    assert fastest(two(FAST, SLOW), more) == []


def test_other_rules_and_settings_make_lines_of_their_own_in_every_column() -> None:
    token, block = make_record(), make_record()
    block = replace(block, digest="b" * 16, params=block.params | {"verify": "block"})
    found = side_by_side(on_machine("attic", [token, block]), on_machine("cellar", [token]))
    assert [entry.cells[1] == "–" for entry in entries(found)] == [False, True]


def test_the_timings_of_more_pairs_stand_beside_those_of_fewer() -> None:
    more = [replace(r, params=r.params | {"pairs": 10}) for r in two(FAST, SLOW)]
    found = side_by_side(on_machine("attic", two(FAST, SLOW)), on_machine("cellar", more))
    assert [line.name for line in found.lines] == ["int8 k=4", "bigram k=4"]
    assert all(cell is not None for line in found.lines for cell in line.cells)
    assert found.columns[1].records[0].params["pairs"] == 10


def test_a_column_that_took_both_few_and_many_pairs_pools_neither() -> None:
    few = two(FAST, SLOW)
    both = [
        *few,
        *(replace(r, digest=f"10 {r.name}", params=r.params | {"pairs": 10}) for r in few),
    ]
    found = side_by_side(on_machine("attic", few), on_machine("cellar", both))
    assert {line.name for line in found.lines[:2]} == {"int8 k=4 pairs=6", "bigram k=4 pairs=6"}
    assert [row.jobs for line in found.lines for row in line.cells if row] == [1] * 6


def test_a_setting_that_keeps_all_timings_apart_is_named_with_its_values() -> None:
    more = [replace(r, params=r.params | {"threads": 4}) for r in two(FAST, SLOW)]
    found = side_by_side(on_machine("attic", two(FAST, SLOW)), on_machine("cellar", more))
    assert flip_sentences(found) == [
        "No draft and k was timed in two columns, so that no timing stands beside another: "
        "timing.threads is 2 on attic idle, 4 on cellar idle. Run each with the same."
    ]


def test_a_comparison_is_named_after_all_its_sweeps() -> None:
    untimed = on_machine("tower", make_sweep(seeds=(0,), pairs=0), load=None)
    found = side_by_side(on_machine("attic"), untimed, on_machine("cellar"))
    assert found.name == "compare attic idle | cellar idle | tower"


def test_counts_are_compared_where_nothing_was_timed() -> None:
    untimed = make_sweep(seeds=(0,), pairs=0)
    found = side_by_side(on_machine("attic", untimed), on_machine("cellar", untimed))
    assert found.columns == []
    assert found.counts.agreeing == 12
    assert entries(found) == [] and flip_sentences(found) == []


def test_the_plain_speeds_of_the_machines_are_said_as_ranges() -> None:
    def paced(speeds: tuple[float, float]) -> list[JobRecord]:
        jobs = make_sweep(("int8",), (1, 2), (0,))
        return [
            replace(r, metrics=r.metrics | {"time/baseline_tokens_per_s": speed})
            for r, speed in zip(jobs, speeds, strict=True)
        ]

    found = side_by_side(
        on_machine("attic", paced((900, 1000))), on_machine("cellar", paced((4000, 5000)))
    )
    assert speed_sentences(found) == [
        "Plain decoding in tokens/s: cellar idle 4,500 (4,000-5,000); "
        "attic idle 950 (900-1,000): cellar idle is faster."
    ]


def test_the_tidy_table_has_a_row_for_each_line_and_column() -> None:
    found = side_by_side(on_machine("attic"), on_machine("cellar"))
    table = tidy(found)
    assert len(table) == 24
    assert {row["column"] for row in table} == {"attic idle", "cellar idle"}


def test_the_main_load_is_the_most_frequent_and_of_equals_the_busier() -> None:
    assert main_load(["idle", "busy", "busy", None]) == "busy"
    assert main_load(["idle", "light"]) == "light"
    assert main_load([None]) == ""
