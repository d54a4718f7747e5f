"""Every draft of `conf/draft` in a whole job, from a weights folder to figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from pipeline import job
from pipeline.drafts import KINDS, PARTS
from pipeline.heads import Heads
from pipeline.model import CharTransformer, ModelConfig
from pipeline.spec import JobSpec
from pipeline.text import Vocabulary
from pipeline.weights import NgramTable, save_heads, save_model, save_table
from tests.family import HEADS
from tests.models import TINY, VOCAB

CONF = Path(__file__).resolve().parent.parent / "conf" / "draft"
FILES: dict[str, dict[str, Any]] = {
    path.stem: {str(key): value for key, value in OmegaConf.load(path).items()}
    for path in CONF.glob("*.yaml")
}
SMALL = ModelConfig(vocab=VOCAB, context=TINY.context, layers=1, heads=2, width=8)
LETTERS = Vocabulary("abcdefg")
ROW = 8 * VOCAB  # bytes of a probability row


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every part, of tiny sizes."""
    where = tmp_path_factory.mktemp("weights")
    torch.manual_seed(0)
    heads = Heads(HEADS, TINY.width)
    torch.nn.init.normal_(heads.projection.weight)
    save_model(where, "target", CharTransformer(TINY), LETTERS, {})
    save_model(where, "small", CharTransformer(SMALL), LETTERS, {})
    save_heads(where, heads, LETTERS, {})
    ids = np.random.default_rng(0).integers(0, VOCAB, 500)
    for kind, order in (("bigram", 2), ("trigram", 3)):
        save_table(where, kind, NgramTable.of(ids, VOCAB, order, 5.0), LETTERS, {})
    return where


def spec(weights: Path, draft: str, **values: Any) -> JobSpec:
    options = {name: value for name, value in FILES[draft].items() if name != "name"}
    if draft == "layerskip":
        options["skip"] = [TINY.layers - 1]
    usual: dict[str, Any] = {"k": 2, "seed": 0, "tokens": 12, "prompt": "adbad", "draws": 300}
    return JobSpec(draft, options, **{**usual, "pairs": 2, "weights": str(weights), **values})


def test_every_kind_has_a_file_that_says_what_it_is_and_how_to_call_it() -> None:
    assert {file["kind"] for file in FILES.values()} == set(KINDS) == set(PARTS)
    for name in FILES:
        comment = (CONF / f"{name}.yaml").read_text(encoding="utf-8")
        assert comment.startswith(f"# {name}:") and f"draft={name}" in comment


@pytest.mark.parametrize("draft", FILES)
def test_every_draft_is_counted_and_timed(weights: Path, draft: str) -> None:
    one = spec(weights, draft, verify="block")
    counted = job.count(one)
    assert counted.tags["exactness"] == "ok"
    assert counted.metrics["count/emitted"] == 12
    assert min(counted.metrics[f"dist/{name}"] for name in ("p_value", "pit_p_value")) > 1e-3
    assert counted.metrics == job.count(one).metrics
    done = job.clock(one, counted, {})
    assert done.metrics["time/timed_matches_counts"] == 1
    assert done.metrics["cost/v"] > 0


@pytest.mark.parametrize(
    ("draft", "weights_bytes", "cache_of_a_token", "extra_bytes"),
    [
        ("bigram", 4 * VOCAB**2, 0, 2 * 8 * VOCAB**2),
        ("trigram", 4 * (VOCAB**2 + VOCAB**3), 0, None),
        ("ngram", 0, 0, None),
        ("small", None, 4 * 2 * 8, 0),
        ("layerskip", 0, 0, 0),
        (
            "heads",
            4 * HEADS * (2 * TINY.width + 1) * TINY.width,
            0,
            4 * (HEADS * VOCAB + TINY.width),
        ),
        ("int8", None, 4 * 2 * 2 * TINY.width, 0),
    ],
)
def test_memory_is_that_of_the_tensors(
    weights: Path,
    draft: str,
    weights_bytes: int | None,
    cache_of_a_token: int,
    extra_bytes: int | None,
) -> None:
    """The last token is emitted and never read; q and p have a row for each drafted token."""
    found = job.count(spec(weights, draft)).metrics
    longest = 5 + 12 - 1
    assert found["memory/target_cache_bytes"] == 4 * 2 * 2 * TINY.width * longest
    own = found["memory/draft_cache_bytes"]
    assert own % max(cache_of_a_token, 1) == 0
    assert own <= cache_of_a_token * longest and (own > 0) == (cache_of_a_token > 0)
    if weights_bytes is not None:
        assert found["memory/draft_weight_bytes"] == weights_bytes
    rows = found["memory/extra_state_bytes"] - (extra_bytes or 0)
    assert rows == 2 * 2 * ROW if extra_bytes is not None else rows >= 0
    assert found == job.count(spec(weights, draft, draws=300)).metrics


@pytest.mark.parametrize("verify", ["token", "block", "match"])
def test_a_job_of_adaptive_length_drafts_fewer_and_stays_exact(weights: Path, verify: str) -> None:
    auto = spec(weights, "trigram", k=4, k_auto=0.3, verify=verify, tokens=30, draws=2000)
    found = job.count(auto)
    lengths = {row["k"] for row in found.rounds}
    assert len(lengths) > 1 and max(lengths) <= 4
    assert found.metrics["count/drafted"] == sum(row["k"] for row in found.rounds)
    assert min(found.metrics[f"dist/{name}"] for name in ("p_value", "pit_p_value")) > 1e-3
    assert found.params["k_auto"] == 0.3
    assert job.digest(auto) != job.digest(spec(weights, "trigram", k=4, verify=verify, tokens=30))
    assert job.clock(auto, found, {}).metrics["time/timed_matches_counts"] == 1


@pytest.mark.parametrize("draft", sorted(FILES))
def test_every_draft_is_timed_at_a_length_of_its_own_choice(weights: Path, draft: str) -> None:
    auto = spec(weights, draft, k=4, k_auto=0.3, tokens=30, draws=20)
    done = job.clock(auto, job.count(auto), {})
    assert done.metrics["time/timed_matches_counts"] == 1 and done.metrics["cost/v"] > 0


def test_adaptive_lengths_are_named() -> None:
    assert JobSpec("int8", {}, 8, 1, k_auto=0.3).name == "int8 k=auto seed=1"
    named = JobSpec("int8", {}, 6, 0, k_auto=0.2).name
    assert named == "int8 k=auto k_auto.threshold=0.2 k_auto.most=6 seed=0"


@pytest.mark.parametrize(
    ("draft", "values", "named"),
    [
        ("heads", {"k": HEADS + 1}, "k=9: draft=heads proposes at most 8"),
        ("trigram", {"k_auto": 0.0}, "k_auto.threshold=0.0"),
        ("trigram", {"k_auto": 1.5}, "k_auto.threshold=1.5"),
        ("trigram", {"k_auto": 0.5, "k": 0}, "k_auto.most=0"),
        ("layerskip", {"draft_options": {"kind": "layerskip", "skip": [2]}}, "draft.skip=[2]"),
        ("layerskip", {"draft_options": {"kind": "layerskip"}}, "skip"),
        ("ngram", {"draft_options": {"kind": "ngram", "shortest": 3, "long": 4}}, "long"),
        ("small", {"draft_options": {"kind": "smal"}}, "draft.kind=smal"),
        (
            "int8",
            {"draft_options": {"kind": "quantized", "bits": 8, "per_channel": "foo"}},
            "draft.per_channel=foo: give true or false",
        ),
        ("int8", {"draft_options": {"kind": "quantized", "bits": 7.5}}, "draft.bits=7.5"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(
    weights: Path, draft: str, values: dict[str, Any], named: str
) -> None:
    options = values.pop("draft_options", None)
    one = spec(weights, draft, **values)
    if options is not None:
        one = JobSpec(**{**one.to_dict(), "draft_options": options})
    with pytest.raises(ValueError) as refused:
        job.check(one)
    assert named in str(refused.value) and "\n" not in str(refused.value)


def test_a_part_that_was_never_trained_is_named(weights: Path, tmp_path: Path) -> None:
    save_model(tmp_path, "target", CharTransformer(TINY), LETTERS, {})
    for part in ("small", "heads", "trigram"):
        with pytest.raises(ValueError, match=f"{part}.*make train"):
            job.check(spec(tmp_path, part))
