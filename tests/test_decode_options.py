"""Temperature, top-k, top-p and their combinations: applied to both sides, and exact under each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline import distribution
from pipeline.exactness import holm, smaller_of_two
from pipeline.sampling import Floats, Sampling, draw
from pipeline.verify import RULES
from pipeline.verify.rule import Array
from pipeline.verify.token import Token
from pipeline.workbench import Workbench
from tests.family import MODEL, bench, family
from tests.models import VOCAB, decode

DRAFTS = family()
GRID: list[dict[str, Any]] = [
    {"temperature": 0.6},
    {"temperature": 1.7},
    {"top_k": 2},
    {"top_p": 0.7},
    {"temperature": 0.7, "top_k": 4},
    {"temperature": 2.0, "top_p": 0.8},
    {"temperature": 1.5, "top_k": 5, "top_p": 0.9},
    {"temperature": 0},
]


def p_value(job: Workbench) -> float:
    """Of both tests that a job makes."""
    laws = distribution.exact_laws(job)
    drawn = distribution.first_tokens(job, job.spec.draws, distribution.PREFIX_STREAM)
    by_pairs = distribution.joint_p_value(distribution.tally(drawn, VOCAB), laws)
    none = np.zeros(0, np.int64)
    by_text = distribution.pit_p_value(job, none, distribution.TEXT_STREAM, 6)
    return smaller_of_two(by_pairs, by_text)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("options", GRID, ids=str)
def test_every_draft_passes_under(options: dict[str, Any], rule: str) -> None:
    found = [p_value(bench(draft, verify=rule, draws=1000, **options)) for draft in DRAFTS.values()]
    assert min(holm(found)) > 1e-3


@pytest.mark.parametrize("name", DRAFTS)
@pytest.mark.parametrize("options", GRID, ids=str)
def test_q_rows_are_the_warped_rows_that_the_tokens_were_drawn_from(
    options: dict[str, Any], name: str
) -> None:
    _, steps, _, _ = decode(MODEL, DRAFTS[name], 3, sampling=Sampling(**options), lanes=6)
    raw = decode(MODEL, DRAFTS[name], 3, lanes=6)[1]
    for step in steps:
        for i in range(step.drafted.shape[1]):
            drawn = draw(step.q[:, i], step.u_draft[:, i])
            np.testing.assert_array_equal(drawn, step.drafted[:, i])
    if name != "ngram":  # a certain row stays as it is
        first, plain = (next(s for s in made if s.q.size).q[0, 0] for made in (steps, raw))
        np.testing.assert_allclose(first, Sampling(**options).rows(np.log(plain)), atol=1e-12)
        assert not np.allclose(first, plain)


class ToldAnother(Token):
    """The token rule, told rows of the draft at another temperature than it was sampled at."""

    def verify(
        self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array
    ) -> tuple[Array, Array]:
        return super().verify(p, colder(q), drafted, u, u_next)


def colder(q: Floats) -> Floats:
    squared = q**2
    told: Floats = squared / squared.sum(axis=-1, keepdims=True)
    return told


def test_a_rule_told_rows_at_another_temperature_is_rejected() -> None:
    job = bench(DRAFTS["bigram"], draws=4000, temperature=1.7)
    wrong = Workbench(
        job.spec, job.vocabulary, job.target, job.draft, ToldAnother(), job.prompt, job.eos
    )
    assert p_value(job) > 1e-3
    assert p_value(wrong) < 1e-6
