"""Rules broken on purpose are rejected on a real decode, by the tests that every job is put to."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import distribution
from pipeline.workbench import Workbench
from tests.decode_mutants import SET_UPS, draws_needed
from tests.models import VOCAB

DOCS = Path(__file__).resolve().parent.parent / "docs" / "exactness.md"
REJECTED = 1e-6


def p_value(job: Workbench) -> float:
    laws = distribution.exact_laws(job)
    drawn = distribution.first_tokens(job, job.spec.draws, distribution.PREFIX_STREAM)
    return distribution.joint_p_value(distribution.tally(drawn, VOCAB), laws)


@pytest.mark.parametrize("name", SET_UPS)
def test_a_job_with_a_broken_rule_is_rejected(name: str) -> None:
    assert p_value(SET_UPS[name].wrong) < REJECTED


@pytest.mark.parametrize("name", SET_UPS)
def test_the_same_job_with_the_rule_as_shipped_passes(name: str) -> None:
    assert p_value(SET_UPS[name].right) > 1e-3


def test_what_a_rule_is_told_of_a_certain_draft_makes_the_difference() -> None:
    job = SET_UPS["argmax draft, soft q"]
    assert job.wrong.draft.weight_bytes() == job.right.draft.weight_bytes()
    needed = draws_needed(job, pilot=20_000)
    assert needed < 100


@pytest.mark.parametrize("name", SET_UPS)
def test_the_docs_tell_how_many_draws_catch_it(name: str) -> None:
    assert f"\n| {name} | {SET_UPS[name].mutant.rule.name} |" in DOCS.read_text(encoding="utf-8")
