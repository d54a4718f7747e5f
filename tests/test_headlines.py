"""Pairs of drafts whose acceptance misleads: found in records, counted, marked and told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.headlines import headlines
from pipeline.records import JobRecord
from pipeline.summary import headline_misleads
from tests.records_factory import make_failed, make_record, make_sweep
from tracking import headlines as told
from tracking.report import Report


def timed(draft: str, accepted: int, ms: float, k: int = 4, **params: Any) -> JobRecord:
    """Ten rounds of k, `accepted` of each kept, `ms` each, in two pairs."""
    record = make_record(draft, k, pairs=2, noise=0.0)
    rounds: dict[str, list[Any]] = {
        "k": [k] * 10,
        "accepted": [accepted] * 10,
        "ms": [[ms] * 10] * 2,
    }
    ratio = (accepted + 1) / ms
    series = {"time/pair_ratio": [(0, 0.99 * ratio), (1, 1.01 * ratio)]}
    ends = {"time/speedup_low": 0.99 * ratio, "time/speedup_high": 1.01 * ratio}
    metrics, params = {**record.metrics, **ends}, {**record.params, **params}
    return replace(record, timed_rounds=rounds, series=series, params=params, metrics=metrics)


def test_a_draft_accepted_more_and_slower_misleads() -> None:
    found = headlines([timed("int8", 4, 10.0), timed("bigram", 1, 2.0)])
    (pair,) = found.misleading
    assert (pair.accepted_more, pair.faster, pair.setting) == ("int8", "bigram", {"k": "4"})
    assert pair.told_apart
    assert found.metrics == {"sweep/draft_pairs": 1.0, "sweep/misleading_pairs": 1.0}


def test_a_draft_accepted_more_and_faster_does_not() -> None:
    found = headlines([timed("int8", 4, 2.0), timed("bigram", 1, 10.0)])
    assert not found.misleading and len(found.pairs) == 1
    assert found.metrics["sweep/misleading_pairs"] == 0


def test_ranges_that_overlap_are_said_to() -> None:
    slow, fast = timed("int8", 4, 5.05), timed("bigram", 1, 2.0)
    (pair,) = headlines([slow, fast]).misleading
    assert not pair.told_apart
    assert "1 of them by less than their ranges" in told.sentence(headlines([slow, fast]).as_dict())


@pytest.mark.parametrize("other", [{"k": 2}, {"verify": "block"}, {"tokens": 100}])
def test_only_what_is_alike_is_compared(other: dict[str, Any]) -> None:
    assert not headlines([timed("int8", 4, 10.0), timed("bigram", 1, 2.0, **other)]).pairs


def test_two_settings_of_one_draft_are_two_drafts_and_named_by_it() -> None:
    one = timed("int8", 4, 10.0, **{"draft.bits": 8})
    other = timed("int8", 2, 1.0, **{"draft.bits": 6})
    (pair,) = headlines([one, other]).misleading
    assert (pair.accepted_more, pair.faster) == ("int8 draft.bits=8", "int8 draft.bits=6")


def test_the_sweep_and_the_command_on_its_logs_say_the_same() -> None:
    records = make_sweep(drafts=("bigram", "int8"), ks=(1, 4), seeds=(0, 1))
    for pair in headlines(records).pairs:
        a, b = (
            [r for rec in records for r in rec.round_log() if _is(rec, draft, pair.setting["k"])]
            for draft in ("bigram", "int8")
        )
        assert headline_misleads(a, b) == pair.misleads


def _is(record: JobRecord, draft: str, k: str) -> bool:
    return record.params["draft"] == draft and str(record.params["k"]) == k


def test_what_was_not_timed_or_drafted_nothing_is_left_out() -> None:
    assert headlines([make_record("int8", pairs=0), make_failed("bigram", 4)]).metrics == {}
    nothing = timed("bigram", 0, 2.0)
    nothing = replace(nothing, timed_rounds={"k": [0], "accepted": [0], "ms": [[1.0], [1.0]]})
    assert not headlines([timed("int8", 4, 10.0), nothing]).pairs
    assert told.sentence({}) == ""


def test_the_table_marks_the_row_and_the_text_names_the_pair() -> None:
    report = Report(
        records := [timed("int8", 4, 10.0), timed("bigram", 1, 2.0)],
        {"headlines": headlines(records).as_dict()},
    )
    marked = {row.name: row.misleads for row in report.rows}
    assert marked == {"int8 k=4": True, "bigram k=4": False}
    assert report.headlines == (
        "Acceptance misleads (!) in 1 of 1 pairs of drafts: accepted more and yet slower is int8 "
        "than bigram (k=4)."
    )
    (line, _) = (line for line in report.markdown().splitlines() if line.startswith("| int8 "))
    assert line.count("!") == 1 and f"{report.rows[0].acceptance:.3f}!" in line
    assert [row["misleads"] for row in report.summary()["rows"]] == [True, False]


def test_another_rules_row_is_not_marked() -> None:
    records = [
        timed("int8", 4, 10.0),
        timed("bigram", 1, 2.0),
        timed("int8", 4, 1.0, verify="block"),
        timed("bigram", 1, 9.0, verify="block"),
    ]
    report = Report(records, {"headlines": headlines(records).as_dict()})
    marked = {(row.draft, row.split["verify"]) for row in report.rows if row.misleads}
    assert marked == {("int8", "token")}
