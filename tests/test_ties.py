"""The same text by another way, and how near two ways came to parting."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

from pipeline import job, same_text, ties
from pipeline.progress import Show
from pipeline.sampling import Sampling, Uniforms
from pipeline.spec import JobSpec
from tests.family import bench, family

DRAFTS = family()
RULES_LINE = "verify=token,block,match"
LOGITS = np.array([[3.0, 1.0, 2.5, -1.0], [0.0, 0.0, -5.0, -7.0]])


def shown(*arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    code = same_text.main(arguments, Show(Console(file=out, highlight=False, width=200)))
    return code, out.getvalue()


def test_every_shipped_draft_writes_plain_decodings_text_under_match() -> None:
    code, out = shown("tokens=24")
    assert code == 0
    lines = [line for line in out.splitlines() if " passes  " in line]
    assert len({line.partition(" passes  ")[2] for line in lines}) == 1
    passes = [int(line.partition(" passes  ")[0].split()[-1]) for line in lines]
    assert passes[0] == 24 and max(passes[1:]) <= 24 and min(passes) < 20
    assert "character by character" in out and len(lines) >= 4


def test_greedy_decoding_writes_it_under_every_rule() -> None:
    code, out = shown("draft=bigram,int4", "sampling=greedy", RULES_LINE, "tokens=20")
    assert code == 0 and "6 texts" in out and "another text" not in out


def test_other_rules_keep_the_law_and_not_the_text() -> None:
    code, out = shown("draft=bigram", "verify=token", "tokens=24")
    assert code == 0 and "another text" in out and "try verify=match" in out


def test_a_text_that_should_be_the_same_and_is_not_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = ties.TwoTexts("abc", 3, "abd", 2)
    monkeypatch.setattr(ties, "two_texts", lambda _: found)
    code, out = shown("draft=bigram")
    assert code == 1 and "1 of 1 texts are NOT" in out


def test_a_draft_that_cannot_is_named_and_costs_the_others_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out = shown("draft=ngram,bigram", "proposal=tree", "tokens=8")
    assert code == 2 and "bigram k=3" in out and "1 text, character" in out
    assert capsys.readouterr().err.startswith("specsweep: ngram k=3 match: ")


def test_bad_settings_are_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown("draft=nosuch")[0] == 2
    assert "nosuch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(0), [0.5, 0.0]),
        (Sampling(2.0, top_k=2), [0.75, 1.0]),  # logits halved: 1.25 - 0.5, and 0 - -2.5, at most 1
        (Sampling(top_k=4), [1.0, 1.0]),
        (Sampling(), [1.0, 1.0]),
    ],
)
def test_gaps_are_those_at_which_ids_were_kept_or_left(
    sampling: Sampling, expected: list[float]
) -> None:
    np.testing.assert_allclose(ties.cut_gaps(sampling, LOGITS), expected)


def test_a_top_p_that_a_sum_just_reaches_is_a_near_tie() -> None:
    rows = np.log(np.array([[0.5, 0.3, 0.2]]))
    assert ties.cut_gaps(Sampling(top_p=0.8), rows)[0] < 1e-12
    np.testing.assert_allclose(ties.cut_gaps(Sampling(top_p=0.7), rows), [0.1])


def test_what_is_impossible_is_no_tie() -> None:
    certain = np.array([[0.0, -np.inf, -np.inf]])
    assert ties.top_two_gaps(certain)[0] == np.inf
    assert ties.cut_gaps(Sampling(top_k=2), certain)[0] == 1


def test_the_margin_of_a_greedy_job_is_the_smallest_gap_of_its_text() -> None:
    greedy = bench(DRAFTS["int4"], temperature=0.0)
    run = greedy.speculative(Uniforms(0))
    for _ in run.steps:
        pass
    margin = ties.gaps(greedy, run.texts.emitted()).min()
    assert 1e-9 < margin < 1
    assert len(ties.gaps(bench(DRAFTS["int4"]), run.texts.emitted())) == 0  # nothing was cut
    whole = np.concatenate([greedy.prompt, run.texts.emitted()])[None, :-1]
    logits = greedy.target(torch.from_numpy(whole))[0, len(greedy.prompt) - 1 :].numpy()
    assert margin <= ties.top_two_gaps(logits).min()


def test_a_greedy_float32_text_that_departs_is_told_with_place_and_gap() -> None:
    greedy = bench(DRAFTS["int4"], temperature=0.0)
    counted = np.array([1, 2, 3, 4])
    assert ties.departure(greedy, counted, counted) is None
    told = ties.departure(greedy, counted, np.array([1, 2, 0, 4]))
    assert told is not None
    assert "at character 3, 'a' instead of 'd'" in told and "logits there are" in told


def test_a_timed_greedy_job_says_where_it_departs_and_how_near_it_was() -> None:
    spec = JobSpec("bigram", {"kind": "bigram"}, 2, 0, tokens=10, draws=50, temperature=0, pairs=2)
    counted = job.count(spec)
    assert 0 < counted.metrics["count/margin_min"] < 1
    assert not [note for note in job.clock(spec, counted, {}).notes if "greedy" in note]
    other = "x" if counted.text[4] != "x" else "y"
    changed = replace(counted, text=counted.text[:4] + other + counted.text[5:])
    notes = job.clock(spec, changed, {}).notes
    assert any("greedy: the timed float32 text departs" in note for note in notes)
    assert any(f"at character 5, {counted.text[4]!r} instead of {other!r}" in n for n in notes)
