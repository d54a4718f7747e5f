"""One job from config to record, on the shipped weights with few characters and draws."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline import job, summary
from pipeline.records import JobRecord
from pipeline.spec import JobSpec
from pipeline.store import Store
from tracking.names import METRICS

OPTIONS: dict[str, dict[str, Any]] = {
    "bigram": {"name": "bigram", "kind": "bigram"},
    "int8": {"name": "int8", "kind": "quantized", "bits": 8, "per_channel": False},
    "int4": {"name": "int4", "kind": "quantized", "bits": 4, "per_channel": True},
}


def spec(draft: str = "bigram", **values: Any) -> JobSpec:
    usual: dict[str, Any] = {"k": 2, "seed": 0, "tokens": 12, "draws": 300, "pairs": 2}
    return JobSpec(draft, OPTIONS[draft], **{**usual, **values})


@pytest.fixture(scope="module")
def counted() -> JobRecord:
    return job.count(spec())


def test_a_job_has_count_figures_and_no_clock_before_it_is_timed(counted: JobRecord) -> None:
    assert counted.status == "counted"
    sides = {METRICS[name].side for name in [*counted.metrics, *counted.series]}
    assert sides == {"counts"}
    assert counted.metrics["count/emitted"] == 12 == len(counted.text)
    assert counted.tags["exactness"] == "ok"
    asked = "draft k seed target verify proposal tokens temperature top_k top_p dtype threads pairs"
    assert {*asked.split(), "prompt"} <= set(counted.params)
    assert sum(row["emitted"] for row in counted.rounds) == 12


def test_the_same_job_twice_has_the_same_figures(counted: JobRecord) -> None:
    again = job.count(spec())
    assert again.metrics == counted.metrics
    assert again.tags == counted.tags and again.text == counted.text


def test_timing_adds_clock_figures_and_changes_no_count(counted: JobRecord) -> None:
    null = job.null(spec())
    done = job.clock(spec(), counted, null)
    assert done.status == "done"
    added = set(done.metrics) - set(counted.metrics)
    assert {METRICS[name].side for name in added} == {"clocks"}
    assert {name: done.metrics[name] for name in counted.metrics} == counted.metrics
    assert done.metrics["time/timed_matches_counts"] == 1
    assert done.metrics["time/pairs"] == 2 == len(done.series["time/pair_ratio"])
    assert done.tags["verdict"] in ("faster", "slower", "ambiguous")
    assert {row["side"] for row in done.pieces} == {"baseline", "speculative"}


@pytest.mark.parametrize("draft", OPTIONS)
def test_every_draft_counts_and_times_a_plain_step_at_k_0(draft: str) -> None:
    one = spec(draft, k=0)
    done = job.clock(one, job.count(one), {})
    assert done.metrics["count/target_passes"] == 12
    assert "count/acceptance_rate" not in done.metrics and "cost/c" not in done.metrics


def test_rounded_weights_take_a_quarter_and_an_eighth_of_the_targets() -> None:
    target, int8, int4 = (
        job.count(spec(name)).metrics[f"memory/{which}_weight_bytes"]
        for name, which in (("int8", "target"), ("int8", "draft"), ("int4", "draft"))
    )
    assert 2.4e6 < target < 2.7e6
    assert 0.24 < int8 / target < 0.26
    assert 0.12 < int4 / target < 0.14


def test_the_digest_names_everything_that_can_change_a_figure() -> None:
    base = job.digest(spec())
    others: list[dict[str, Any]] = [
        {"k": 3}, {"seed": 1}, {"tokens": 13}, {"verify": "block"}, {"prompt": "A"},
        {"temperature": 0.5}, {"draws": 301}, {"pairs": 4}, {"threads": 2},
    ]  # fmt: skip
    digests = {job.digest(spec(**other)) for other in others}
    assert len(digests | {base}) == len(others) + 1
    assert job.digest(spec("int8")) != base
    assert job.digest(spec()) == base


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"k": -1}, "k=-1"),
        ({"seed": -1}, "seed=-1"),
        ({"tokens": 0}, "tokens=0"),
        ({"prompt": ""}, "prompt is empty"),
        ({"prompt": "A€"}, "'€' at position 1"),
        ({"tokens": 400}, "256"),
        ({"temperature": -0.5}, "sampling.temperature=-0.5"),
        ({"top_p": 0.0}, "sampling.top_p=0"),
        ({"top_k": 0}, "sampling.top_k=0"),
        ({"verify": "tokne"}, "verify=tokne"),
        ({"pairs": 0}, "timing.pairs=0"),
        ({"eos": "ab"}, "eos='ab'"),
        ({"weights": "/nowhere/at/all"}, "/nowhere/at/all"),
    ],
)
def test_bad_input_is_refused_in_one_sentence_that_names_it(
    values: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError) as refused:
        job.check(spec(**values))
    message = str(refused.value)
    assert named in message
    assert "\n" not in message and len(message) < 250


def test_a_spec_comes_back_from_its_plain_form_and_names_what_is_not_known() -> None:
    one = spec("int8", temperature=0.7)
    assert JobSpec.from_dict(one.to_dict()) == one
    with pytest.raises(ValueError, match="seeds is no part of a job"):
        JobSpec.from_dict({**one.to_dict(), "seeds": 3})


def test_a_name_says_what_is_unusual() -> None:
    assert spec("int8", k=8).name == "int8 k=8 seed=0"
    assert dataclasses.replace(spec(), verify="block").name == "bigram k=2 seed=0 verify=block"


def test_a_worker_never_pays_for_mlflow_or_hydra() -> None:
    code = "import sys, pipeline.job; print({'mlflow', 'hydra', 'tracking'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_every_timed_round_is_kept_with_what_it_drafted_accepted_and_took() -> None:
    counted = job.count(spec())
    done = job.clock(spec(), counted, {})
    log = done.round_log()
    assert len(log) == 2 * len(counted.rounds)
    for pair in (0, 1):
        own = [row for row in log if row["pair"] == pair]
        assert [(r["k"], r["accepted"]) for r in own] == [
            (r["k"], r["accepted"]) for r in counted.rounds
        ]
        rounds_ms = sum(row["ms"] for row in own)
        half_ms = 1000 * done.series["time/pair_speculative_s"][pair][1]
        assert 0 < rounds_ms <= half_ms  # a half has the rounds and the steps between them
    assert all(row["ms"] > 0 for row in log)
    again = JobRecord.from_json(done.to_json())
    assert again.round_log() == log and counted.round_log() == []


def test_the_rounds_are_what_the_summary_reads(tmp_path: Path) -> None:
    done = job.clock(spec(), job.count(spec()), {})
    found = summary.summarize([json.loads(line) for line in done.round_lines().splitlines()])
    assert found["acceptance_rate"] == done.metrics["count/acceptance_rate"]
    assert found["tokens"] == 2 * done.metrics["count/emitted"]
    Store(tmp_path).write_record(done)
    (log,) = tmp_path.glob("jobs/*/rounds.jsonl")
    assert summary.summarize(summary.read(log)) == found
