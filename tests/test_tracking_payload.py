"""What a record becomes on its way to MLflow."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

import pytest

from pipeline.records import JobRecord
from tests.records_factory import make_failed, make_record
from tracking.payload import as_csv, payload, shorten


def test_counts_bear_the_time_of_the_start_and_clocks_that_of_the_end() -> None:
    record = make_record()
    points = payload(record, {}).points
    times = {point.name: point.time_ms for point in points}
    assert times["count/alpha"] == record.started_s * 1000
    assert times["time/speedup_median"] == record.finished_s * 1000
    pairs = [(point.step, point.value) for point in points if point.name == "time/pair_ratio"]
    assert pairs == record.series["time/pair_ratio"]


def test_a_counted_record_gives_the_points_that_it_gives_again_when_it_is_timed() -> None:
    timed = make_record()
    clocks = ("time/", "cost/", "null/", "load/")
    counted = dataclasses.replace(
        timed,
        status="counted",
        metrics={n: v for n, v in timed.metrics.items() if not n.startswith(clocks)},
        series={n: v for n, v in timed.series.items() if not n.startswith(clocks)},
        finished_s=timed.started_s + 1,
    )
    before, after = payload(counted, {}), payload(timed, {})
    assert before.status == "RUNNING"
    assert set(before.points) < set(after.points)


def test_parameters_are_plain_words() -> None:
    params = payload(make_record(), {}).params
    assert params["top_k"] == "none"
    assert params["k"] == "4"


def test_nothing_is_cut_silently() -> None:
    long = "ROMEO:\n" * 2000
    record = dataclasses.replace(make_record(), params=make_record().params | {"prompt": long})
    sent = payload(record, {})
    assert len(sent.params["prompt"]) <= 500
    assert "14000 characters, sha256" in sent.params["prompt"]
    assert JobRecord.from_json(str(sent.files["record.json"])).params["prompt"] == long


def test_two_long_texts_that_begin_alike_stay_different() -> None:
    assert shorten("a" * 900 + "b") != shorten("a" * 900 + "c")
    assert shorten("short") == "short"


def test_a_failure_brings_its_message_and_traceback() -> None:
    sent = payload(make_failed(), {})
    assert sent.status == "FAILED"
    assert "83 rows" in sent.tags["mlflow.note.content"]
    assert "Traceback" in sent.tags["mlflow.note.content"]
    assert "python -m pipeline.sweep draft=int4 k=2 seed=0" in sent.tags["mlflow.note.content"]
    assert "Traceback" in sent.files["error.txt"]


def test_a_description_never_outgrows_what_mlflow_takes() -> None:
    record = dataclasses.replace(make_record(), notes=("beware " * 3000,))
    assert len(payload(record, {}).tags["mlflow.note.content"]) < 8000


def test_the_records_own_verdict_wins_over_a_computed_one() -> None:
    assert payload(make_record("bigram"), {}).tags["verdict"] == "faster"
    own = dataclasses.replace(make_record("bigram"), tags={"verdict": "ambiguous"})
    assert payload(own, {}).tags["verdict"] == "ambiguous"
    assert "verdict" not in payload(make_record(pairs=0), {}).tags


def test_a_table_has_one_line_a_row_and_survives_commas_and_missing_cells() -> None:
    rows = [{"a": 1, "b": "x,y"}, {"a": 2, "c": [1, 2]}]
    read = list(csv.DictReader(io.StringIO(as_csv(rows))))
    assert [row["a"] for row in read] == ["1", "2"]
    assert read[0]["b"] == "x,y"
    assert json.loads(read[1]["c"]) == [1, 2]


def test_an_unknown_name_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(ValueError, match="load.sate"):
        payload(make_record(), {"load.sate": "idle"})
