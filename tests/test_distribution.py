"""The checks of a job's distribution: drawn by its own decoder, right under the null."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from omegaconf import OmegaConf
from rich.console import Console
from scipy import stats

from pipeline import check_distribution, distribution
from pipeline.compose import CONF
from pipeline.progress import Show
from pipeline.sampling import Uniforms
from pipeline.spec import JobSpec
from pipeline.verify import RULES
from pipeline.verify.rule import Array
from pipeline.verify.token import Token
from pipeline.workbench import Workbench
from tests.family import MODEL, bench, family
from tests.models import TINY, VOCAB, Same

DRAFTS = family()
STREAM = distribution.PREFIX_STREAM
SHIPPED = sorted((CONF / "draft").glob("*.yaml"))


@pytest.fixture
def all_whole(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(distribution, "FRONT_TO_BACK", ())


@pytest.mark.parametrize("rule", [rule for rule in distribution.FRONT_TO_BACK if rule in RULES])
@pytest.mark.parametrize("name", DRAFTS)
def test_short_drafts_give_the_very_characters_of_whole_rounds(
    name: str, rule: str, all_whole: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distribution, "WHOLE", 4)
    job = bench(DRAFTS[name], k=6, verify=rule)
    short = distribution.first_tokens(job, 400, STREAM)
    all_whole()
    np.testing.assert_array_equal(short, distribution.first_tokens(job, 400, STREAM))


class LooksAhead(Token):
    """Accepts nothing where a round drafts some character beyond its second place."""

    def verify(
        self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array
    ) -> tuple[Array, Array]:
        accepted, token = super().verify(p, q, drafted, u, u_next)
        ahead = (drafted[:, 2:] == 3).any(axis=1)
        return np.where(ahead, 0, accepted), np.where(ahead, p[:, 0].argmax(axis=1), token)


def test_a_rule_that_looks_ahead_is_drawn_with_whole_rounds_and_rejected() -> None:
    right = bench(DRAFTS["bigram"], k=4, draws=2000)
    wrong = replace(right, rule=LooksAhead())
    laws = distribution.exact_laws(wrong)
    drawn = distribution.first_tokens(wrong, 2000, STREAM)
    assert distribution.joint_p_value(distribution.tally(drawn, VOCAB), laws) < 1e-6


def test_chunks_put_together_are_one_sample() -> None:
    job = bench(DRAFTS["bigram"])
    whole = distribution.first_tokens(job, 300, STREAM)
    parts = [distribution.first_tokens(job, 100, STREAM, first) for first in (0, 100, 200)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_samples_of_other_streams_and_lengths_are_other_samples() -> None:
    drawn = {
        (k, stream): distribution.first_tokens(bench(DRAFTS["bigram"], k=k), 200, stream).tobytes()
        for k in (2, 3)
        for stream in (distribution.PREFIX_STREAM, distribution.AGAIN_STREAM)
    }
    assert len(set(drawn.values())) == 4


@pytest.mark.parametrize(("length", "k", "tokens"), [(TINY.context - 1, 4, 2), (1, 100, 48)])
def test_prompts_as_long_as_the_context_and_drafts_longer_than_it_are_checked(
    length: int, k: int, tokens: int
) -> None:
    job = bench(DRAFTS["int4"], k=k, tokens=tokens, prompt=("abcdefg" * 7)[:length], draws=100)
    found = distribution.metrics(job, np.zeros(0, np.int64))
    assert found["dist/p_value"] > 1e-3 and found["dist/pit_p_value"] > 1e-3


def test_a_character_that_the_target_forbids_is_a_p_value_of_zero_and_no_error() -> None:
    job = replace(bench(DRAFTS["bigram"], top_k=1, draws=100), rule=Anything())
    found = distribution.metrics(job, np.zeros(0, np.int64))
    assert found["dist/p_value"] == 0 == found["dist/pit_p_value"]


class Anything(Token):
    def verify(
        self, p: Array, q: Array, drafted: Array, u: Array, u_next: Array
    ) -> tuple[Array, Array]:
        return np.zeros(len(p), np.int64), (u_next * p.shape[2]).astype(np.int64)


def test_null_p_values_of_real_decodes_are_uniform_over_200_seeds() -> None:
    by_pairs, by_texts = [], []
    drafts, rules = [DRAFTS["bigram"], DRAFTS["trigram"]], list(RULES)
    for seed in range(200):
        rule = rules[seed % len(rules)]
        job = bench(drafts[seed % 2], seed=seed, verify=rule, k=2, tokens=8)
        laws = distribution.exact_laws(job)
        drawn = distribution.first_tokens(job, 600, STREAM)
        by_pairs.append(distribution.joint_p_value(distribution.tally(drawn, VOCAB), laws))
        none = np.zeros(0, np.int64)
        by_texts.append(distribution.pit_p_value(job, none, distribution.TEXT_STREAM, 8))
    low, high = stats.binom.ppf([0.0005, 0.9995], 200, 0.05)
    for values in (by_pairs, by_texts):
        assert low <= sum(value < 0.05 for value in values) <= high
    assert stats.kstest(by_texts, "uniform").pvalue > 1e-3


def test_recheck_reads_other_draws_and_passes() -> None:
    assert distribution.recheck(bench(DRAFTS["bigram"], draws=300)) > 1e-3


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_alpha_and_the_measured_acceptance_of_the_token_rule_agree(file: Path) -> None:
    options = OmegaConf.to_container(OmegaConf.load(file))
    assert isinstance(options, dict)
    plain = {str(key): value for key, value in options.items() if key != "name"}
    agree(Workbench.of(JobSpec(file.stem, plain, k=4, seed=1, tokens=24), MODEL.dtype), 40)


@pytest.mark.parametrize("name", [*DRAFTS, "same"])
def test_alpha_and_measured_acceptance_agree_on_many_rounds(name: str) -> None:
    drafts: dict[str, Any] = {**DRAFTS, "same": Same(MODEL)}
    agree(bench(drafts[name], k=4, tokens=30), 200)


def agree(job: Workbench, lanes: int) -> None:
    """Accepted tokens are a sum of coin throws whose chances are known: 4 sigma."""
    accepted, expected, variance = 0.0, 0.0, 0.0
    for step in job.speculative(Uniforms(job.spec.seed, lanes), lanes).steps:
        chance = np.minimum(step.p[:, : step.q.shape[1]], step.q).sum(axis=-1)
        tested = np.arange(step.q.shape[1]) <= step.accepted[:, None]
        accepted += float(step.accepted.sum())
        expected += float(chance[tested].sum())
        variance += float((chance * (1 - chance))[tested].sum())
    assert abs(accepted - expected) < 4 * variance**0.5 + 1e-6
    assert accepted > 0


def shown(*arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    show = Show(Console(file=out, highlight=False))
    return check_distribution.main([*arguments, "n_jobs=1"], show), out.getvalue()


@pytest.fixture
def few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_distribution, "TEXTS", 4)


@pytest.mark.usefixtures("few_texts")
def test_the_large_check_tells_all_it_found_and_passes() -> None:
    code, out = shown("draws=2000", "k=1")
    assert code == 0
    for word in ("2,000", "total variation", "G-test", "leak", "PIT", "nothing against exactness"):
        assert word in out


@pytest.mark.usefixtures("few_texts")
def test_the_large_check_fails_on_a_wrong_law(monkeypatch: pytest.MonkeyPatch) -> None:
    right = distribution.drawn_pairs

    def wrong(job: JobSpec, first: int, draws: int) -> distribution.Ints:
        return np.roll(right(job, first, draws), 1, axis=0)

    monkeypatch.setattr(distribution, "drawn_pairs", wrong)
    code, out = shown("draws=500", "k=1")
    assert code == 1 and "REJECTED" in out


def test_the_large_check_refuses_what_a_sweep_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown("draws=0")[0] == 2
    assert shown("drafts=bigram")[0] == 2
    assert "draws=0" in (told := capsys.readouterr().err) and "drafts" in told
