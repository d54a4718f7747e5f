"""The table and the sentence say what the records say, in every case that a sweep can end in."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import statistics
from typing import Any

import pytest
from rich.console import Console

from pipeline.records import JobRecord
from tests.records_factory import make_failed, make_record, make_sweep
from tracking import reference, tables
from tracking.conclusion import conclusion
from tracking.payload import as_csv
from tracking.report import Report
from tracking.rows import Row, rows
from tracking.verdict import verdict


def test_a_row_pools_totals_over_totals_and_all_pairs_of_all_seeds() -> None:
    records = [make_record("int4", 4, seed) for seed in range(3)]
    (row,) = rows(records)
    accepted = sum(r.metrics["count/accepted"] for r in records)
    drafted = sum(r.metrics["count/drafted"] for r in records)
    ratios = [ratio for r in records for _, ratio in r.series["time/pair_ratio"]]
    assert row.acceptance == accepted / drafted
    assert row.measured == statistics.median(ratios)
    assert (row.low, row.high, row.pairs) == (min(ratios), max(ratios), 18)
    assert row.passes == statistics.fmean(r.metrics["count/target_passes"] for r in records)
    assert row.c is not None and row.tokens_per_pass is not None
    assert row.predicted_simple == pytest.approx(row.tokens_per_pass / (1 + 4 * row.c))


def test_rows_come_by_draft_and_rising_k() -> None:
    records = make_sweep(ks=(8, 1, 16, 2), seeds=(0,))
    assert [(row.draft, row.k) for row in rows(records)][:5] == [
        ("bigram", 1),
        ("bigram", 2),
        ("bigram", 8),
        ("bigram", 16),
        ("int8", 1),
    ]


def test_jobs_that_differ_in_more_than_the_seed_are_not_pooled() -> None:
    records = [with_param(make_record(), "temperature", value) for value in (0.5, 1.0)]
    assert [row.split for row in rows(records)] == [{"temperature": "0.5"}, {"temperature": "1.0"}]
    assert "temperature" in tables.as_markdown(rows(records)).splitlines()[0]


def test_a_drafts_options_make_rows_only_where_they_differ_within_the_draft() -> None:
    records = [with_param(make_record("int8"), "draft.per_channel", on) for on in (True, False)]
    found = rows([*records, with_param(make_record("int4"), "draft.bits", 4)])
    assert [row.name for row in found] == [
        "int8 k=4 draft.per_channel=True",
        "int8 k=4 draft.per_channel=False",
        "int4 k=4",
    ]


def test_a_failed_job_that_knows_only_its_axes_stays_in_its_row() -> None:
    axes = {"draft": "int8", "k": 4, "seed": 1, "verify": "token", "proposal": "chain"}
    failed = dataclasses.replace(make_failed("int8", 4, 1), params=axes)
    (row,) = rows([make_record("int8", 4, 0), failed])
    assert (row.jobs, row.failed, row.split) == (2, 1, {})


def test_nothing_drafted_and_nothing_timed_leave_their_cells_empty() -> None:
    (row,) = rows([make_record(k=0, pairs=0)])
    assert row.acceptance is None
    assert row.measured is None
    assert row.verdict is None
    assert row.tokens_per_pass == 1.0
    assert "| – |" in tables.as_markdown([row])


@pytest.mark.parametrize(
    ("low", "high", "null", "expected"),
    [
        (1.1, 1.3, (0.95, 1.05), "faster"),
        (1.04, 1.3, (0.95, 1.05), "ambiguous"),
        (0.7, 0.9, (0.95, 1.05), "slower"),
        (0.7, 0.96, (0.95, 1.05), "ambiguous"),
        (0.9, 1.1, (1.0, 1.0), "ambiguous"),
        (1.0, 1.2, (1.0, 1.0), "ambiguous"),
    ],
)
def test_a_verdict_needs_a_range_clear_of_one_and_of_noise(
    low: float, high: float, null: tuple[float, float], expected: str
) -> None:
    assert verdict(low, high, *null) == expected


def test_the_conclusion_names_the_fastest_the_saver_and_why_it_is_slow() -> None:
    told = conclusion(rows(make_sweep()))
    assert told == (
        "bigram k=8 is fastest here at 1.73× (1.58-1.93), not told apart from bigram k=2 and 1 "
        "more; int8 k=8 saves the most passes, 24 instead of 200, and runs at 0.82× (0.75-0.86) "
        "because a draft token costs 1.07 target passes."
    )


def row(draft: str, k: int, measured: float | None, **changes: Any) -> Row:
    about = Row(
        draft=draft,
        k=k,
        split={},
        jobs=3,
        failed=0,
        acceptance=0.9,
        tokens_per_pass=4.0,
        passes=50.0,
        tokens=200.0,
        c=1.0,
        predicted_simple=4.0 / (1 + k),
    )
    if measured is not None:
        low, high = measured - 0.05, measured + 0.05
        about = dataclasses.replace(
            about, measured=measured, low=low, high=high, verdict=verdict(low, high)
        )
    return dataclasses.replace(about, **changes)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ([], "No job finished, so there is nothing to compare."),
        (
            [row("a", 4, 1.5, c=0.1, predicted_simple=2.9)],
            "a k=4 is faster than plain decoding here, at 1.50× (1.45-1.55), as a draft token "
            "costs 0.10 target passes.",
        ),
        (
            [row("a", 4, 0.7)],
            "a k=4 is slower than plain decoding here, at 0.70× (0.65-0.75) because a draft token "
            "costs 1.00 target passes.",
        ),
        (
            [row("a", 4, 0.7, c=0.2, predicted_simple=2.2)],
            "a k=4 is slower than plain decoding here, at 0.70× (0.65-0.75), although a draft "
            "token costs 0.20 target passes, which alone would allow 2.20×: verification and the "
            "loop take the rest.",
        ),
        (
            [row("a", 4, 0.7), row("b", 4, 0.8, tokens_per_pass=2.0)],
            "Every draft is slower than plain decoding here: the best, b k=4, runs at 0.80× "
            "(0.75-0.85); a k=4 saves the most passes, 50 instead of 200, and runs at 0.70× "
            "(0.65-0.75) because a draft token costs 1.00 target passes.",
        ),
        (
            [row("a", 4, 1.5, c=0.1, predicted_simple=2.9), row("b", 4, 1.0, tokens_per_pass=2.0)],
            "a k=4 is fastest here at 1.50× (1.45-1.55), as a draft token costs 0.10 target "
            "passes; it also saves the most passes, 50 instead of 200.",
        ),
        (
            [row("a", 4, 1.5, c=0.1, predicted_simple=2.9), row("b", 4, 1.49, tokens_per_pass=2.0)],
            "a k=4 is fastest here at 1.50× (1.45-1.55), as a draft token costs 0.10 target "
            "passes; it is not told apart from b k=4; it also saves the most passes, 50 instead "
            "of 200.",
        ),
        (
            [row("a", 4, 0.7), row("b", 4, 0.5, tokens_per_pass=2.0)],
            "Every draft is slower than plain decoding here: the best, a k=4, runs at 0.70× "
            "(0.65-0.75) because a draft token costs 1.00 target passes; it also saves the most "
            "passes, 50 instead of 200.",
        ),
        (
            [row("a", 4, 1.02), row("b", 4, 0.5, tokens_per_pass=2.0)],
            "No draft is clearly faster than plain decoding here: the best, a k=4, runs at 1.02× "
            "(0.97-1.07), as a draft token costs 1.00 target passes; it also saves the most "
            "passes, 50 instead of 200.",
        ),
        (
            [row("a", 4, None), row("b", 4, None, tokens_per_pass=2.0)],
            "a k=4 saves the most passes, 50 instead of 200; nothing was timed, so which is "
            "fastest is open.",
        ),
        (
            [row("a", 4, None), row("b", 4, 1.5, tokens_per_pass=2.0)],
            "b k=4 is faster than plain decoding here, at 1.50× (1.45-1.55); a k=4 saves the most "
            "passes, 50 instead of 200, and was not timed.",
        ),
        (
            [row("a", 0, 1.0, c=None, predicted_simple=1.0, tokens_per_pass=1.0)],
            "a k=0 is not told apart from plain decoding here, at 1.00× (0.95-1.05).",
        ),
        (
            [row("a", 4, None, tokens_per_pass=None, failed=3)],
            "No job finished, so there is nothing to compare. 3 of 3 jobs did not finish.",
        ),
    ],
)
def test_the_conclusion_is_computed_for_every_way_to_end(found: list[Row], told: str) -> None:
    assert conclusion(found) == told


def test_the_published_orderings_are_found_where_they_hold() -> None:
    found = reference.findings(rows(make_sweep()))
    assert [finding.holds for finding in found] == [True, True, True, True]
    assert reference.sentence(found).startswith(
        "As in the published table (bigram, int8, int4 on one laptop): better drafts"
    )
    assert "Unlike" not in reference.sentence(found)


def test_what_differs_from_the_reference_is_named_with_both_figures() -> None:
    found = reference.findings(
        [
            row("int8", 1, 1.4, acceptance=0.5, tokens_per_pass=1.5),
            row("int8", 2, 1.5, acceptance=0.6, tokens_per_pass=1.4),
            row("bigram", 1, 1.2, acceptance=0.7, tokens_per_pass=1.7),
        ]
    )
    assert [finding.holds for finding in found] == [False, False, False, False]
    told = reference.sentence(found)
    assert "acceptance 0.5 of int8 k=1 is not above 0.7 of bigram k=1" in told
    assert "acceptance 0.5 of int8 k=1 is not above 0.6 of int8 k=2" in told
    assert "tokens per pass 1.4 of int8 k=2 is not above 1.5 of int8 k=1" in told


def test_the_paradox_is_denied_in_a_sentence_that_parses() -> None:
    int8 = row("int8", 8, 0.7, acceptance=0.9, tokens_per_pass=5.0)
    bigram = row("bigram", 1, 1.02, acceptance=0.4, tokens_per_pass=1.4)
    assert reference.sentence(reference.findings([int8, bigram])) == (
        "Unlike in the published table (bigram, int8, int4 on one laptop): int8 k=8, which saves "
        "the most passes, is slower here, but no draft that is accepted less is clearly faster "
        "(bigram k=1: not told apart from plain decoding)."
    )
    int4 = row("int4", 8, 0.5, acceptance=0.8, tokens_per_pass=4.0)
    told = reference.sentence(reference.findings([int8, int4, bigram]))
    assert "(int8 > int4 > bigram). Unlike there: int8 k=8, which" in told
    fast = dataclasses.replace(int8, verdict="faster")
    assert reference.findings([fast, bigram])[3].denial.endswith("is faster here")


def test_the_paradox_needs_the_bigram_and_another_draft_of_the_table() -> None:
    slow, quick = row("int8", 4, 0.7), row("int8", 4, 1.5, acceptance=0.5, tokens_per_pass=2.0)
    rules = [dataclasses.replace(slow, split={"verify": "token"})]
    rules.append(dataclasses.replace(quick, split={"verify": "block"}))
    for draft in ("int8", "int4", "bigram", "mine"):
        found = [dataclasses.replace(each, draft=draft) for each in rules]
        assert reference.findings(found)[3].holds is None
    assert reference.findings([slow, dataclasses.replace(quick, draft="mine")])[3].holds is None
    assert reference.findings([slow, dataclasses.replace(quick, draft="bigram")])[3].holds is True


def test_a_tie_neither_contradicts_the_table_nor_confirms_it() -> None:
    ties = [row("int8", k, None, acceptance=1.0, tokens_per_pass=k + 1.0) for k in (1, 2)]
    assert [finding.holds for finding in reference.findings(ties)] == [None, None, True, None]
    falling = [*ties, row("int8", 4, None, acceptance=0.9, tokens_per_pass=4.5)]
    assert reference.findings(falling)[1].holds is True


def printed(report: Report) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    report.print(console)
    return console.export_text()


def test_the_noise_that_a_verdict_has_to_clear_is_told_as_it_was_measured() -> None:
    below = {"null/ratio_min": 0.93, "null/ratio_max": 0.98}
    record = make_record()
    report = Report([dataclasses.replace(record, metrics=record.metrics | below)], {"null": {}})
    line = "Noise: plain decoding against itself 0.93-0.98; a verdict has to clear it, and 1."
    assert line in printed(report)
    assert line in report.markdown()
    bare = {name: v for name, v in record.metrics.items() if not name.startswith("null/")}
    bare_record = dataclasses.replace(record, metrics=bare)
    assert line in printed(Report([bare_record], {"null": below}))
    assert "Noise" not in printed(Report([bare_record], {}))
    assert "Noise" not in printed(Report([make_record(pairs=0)], {"null": below}))


def test_a_null_far_from_one_is_a_reason_to_run_again() -> None:
    record = make_record()
    drifted = record.metrics | {"null/ratio_min": 0.76, "null/ratio_max": 0.79}
    told = printed(Report([dataclasses.replace(record, metrics=drifted)], {}))
    assert "against itself 0.76-0.79: the machine's speed changed meanwhile" in told


@pytest.mark.parametrize(
    "pairs, told", [(1, "1 pair lies on one side of 1 in 100%"), (2, "in 50%")]
)
def test_a_range_of_few_pairs_is_called_luck(pairs: int, told: str) -> None:
    report = Report([make_record(pairs=pairs)], {})
    assert told in report.noise and "(timing.pairs=6)" in report.noise
    assert "rely on" not in Report([make_record(pairs=6)], {}).noise


def test_a_busy_machine_is_told_with_how_much_others_took() -> None:
    records = [
        dataclasses.replace(
            record,
            tags=record.tags | {"load.state": state},
            metrics=record.metrics | {"load/others_share": share},
        )
        for record, state, share in zip(
            make_sweep(("int8",), (4,)), ("busy", "idle", "busy"), (0.3, 0.01, 0.412), strict=True
        )
    ]
    told = (
        "2 of 3 jobs were timed on a busy machine (other programs took up to 41% of it): "
        "the ranges say so; run again idle for narrower ones."
    )
    assert told in printed(Report(records, {}))
    assert told in Report(records, {}).markdown()
    assert Report(records[:2], {}).load.startswith("1 of 2 jobs was timed")
    assert Report(records[1:2], {}).load == ""


def test_no_cell_of_a_page_is_broken_into_two_lines() -> None:
    for pairs in (6, 0):
        text = tables.as_markdown(rows([make_record("int8", 4, pairs=pairs)]))
        lines = [line for part in text.split("\n\n") for line in part.splitlines()[2:]]
        cells = [cell for line in lines for cell in line.strip("| ").split(" | ")]
        assert cells and not [cell for cell in cells if " " in cell]


def test_a_page_of_counts_only_shows_all_counts_and_no_empty_clock() -> None:
    title = tables.as_markdown(rows([make_record(pairs=0)])).splitlines()[0]
    assert title == "| draft | k | accept | t/pass | passes | keeps |"


def test_a_pages_tables_are_narrow_begin_with_the_verdict_and_do_not_break_ranges() -> None:
    found = rows([make_record()])
    measured, behind = tables.as_markdown(found).split("\n\n")
    title, _, line = measured.splitlines()
    assert title == "| draft | k | verdict | median | range | accept |"
    assert f"{found[0].low:.2f}\u2011{found[0].high:.2f}" in line
    assert behind.splitlines()[0] == "| draft | k | t/pass | c | simple | full |"


def test_a_pages_tables_name_what_differs_and_count_what_is_lost() -> None:
    records = [with_param(make_record(), "temperature", value) for value in (0.5, 1.0)]
    measured, behind = tables.as_markdown(rows([*records, make_failed()])).split("\n\n")
    assert measured.splitlines()[0] == (
        "| draft | k | temperature | verdict | median | range | accept | lost |"
    )
    assert behind.splitlines()[0] == "| draft | k | temperature | t/pass | c | simple | full |"


def test_what_a_sweep_cannot_tell_is_not_claimed() -> None:
    found = reference.findings(rows([make_record("int8", 4)]))
    assert [finding.holds for finding in found] == [None] * 4
    assert reference.sentence(found) == ""


def test_the_table_fits_eighty_columns() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(tables.as_rich(rows([*make_sweep(), make_failed("int4", 16)])))
    text = console.export_text()
    assert "…" not in text
    assert "ambiguous" in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_the_report_prints_each_failure_with_the_command_to_repeat_it() -> None:
    report = Report([make_record(), make_failed()], {"id": "s1"})
    console = Console(width=80, record=True, file=io.StringIO())
    report.print(console)
    text = console.export_text()
    assert "the draft's table has 83 rows" in text
    assert re.search(r"\n  \S*python\S* -m pipeline\.sweep draft=int4 k=2 seed=0\n", text)
    assert "python -m pipeline.sweep draft=int4 k=2 seed=0" in report.markdown()


def test_failures_of_one_cause_are_told_once_with_a_command_for_each() -> None:
    report = Report([make_failed(seed=seed) for seed in range(3)], {"id": "s1"})
    console = Console(width=80, record=True, file=io.StringIO())
    report.print(console)
    text = console.export_text()
    assert text.count("83 rows") == 1
    assert "3 jobs failed: RuntimeError" in text
    assert text.count("python -m pipeline.sweep draft=int4 k=2 seed=") == 3


def test_the_summary_is_json_and_has_what_scripts_rely_on() -> None:
    record = make_record()
    summary = Report([record, make_failed()], {"id": "s1"}).summary()
    assert json.loads(json.dumps(summary, allow_nan=False))["sweep"] == {"id": "s1"}
    good, failed = summary["jobs"]
    assert (good["draft"], good["k"], good["seed"]) == ("int8", 4, 0)
    assert (good["verify"], good["proposal"], good["status"]) == ("token", "chain", "done")
    assert (good["error"], good["metrics"]) == (None, record.metrics)
    assert failed["error"].startswith("RuntimeError: ")
    assert failed["metrics"] == {}


def test_the_rows_as_data_are_flat_and_unrounded() -> None:
    found = rows(make_sweep(seeds=(0,)))
    read = list(csv.DictReader(io.StringIO(as_csv(tables.as_dicts(found)))))
    assert len(read) == 12
    assert float(read[0]["measured"]) == found[0].measured
    assert list(read[0])[:3] == ["draft", "k", "acceptance"]


def with_param(record: JobRecord, name: str, value: object) -> JobRecord:
    return dataclasses.replace(record, params=record.params | {name: value})


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_table_shows_as_much_as_the_terminal_has_room_for(width: int) -> None:
    out = io.StringIO()
    found = rows(make_sweep(seeds=(0,)))
    Console(file=out, width=width).print(tables.as_rich(found, width=width))
    title, *lines = out.getvalue().splitlines()
    assert not any("…" in line for line in lines)
    assert ("passes" in title) == (width > 80) and "%" in lines[1]


def test_a_narrow_terminal_loses_the_errors_before_the_figures() -> None:
    found = rows(make_sweep(seeds=(0,)))
    found = [dataclasses.replace(row, split={"draft.per_channel": "false"}) for row in found]
    table = tables.as_rich(found, width=86)
    titles = [str(column.header) for column in table.columns]
    assert titles[:5] == ["draft", "k", "draft.per_channel", "accept", "t/pass"]
    cells = list(table.columns[titles.index("simple")].cells)
    assert not any("%" in str(cell) for cell in cells)


def test_where_several_parameters_differ_a_terminal_of_80_columns_still_shows_the_verdict() -> None:
    split = {"verify": "traversal", "tree": "[3,2,1]"}
    found = [dataclasses.replace(row, split=split) for row in rows(make_sweep(seeds=(0,)))]
    out = io.StringIO()
    Console(file=out, width=80).print(tables.as_rich(found, width=80))
    assert "…" not in out.getvalue() and "verdict" in out.getvalue()
