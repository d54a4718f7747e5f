"""target.compile=true: compiled passes compute the same, once for all, and only what is timed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._dynamo.utils import counters

from pipeline import job, programs
from pipeline.compiled_text import CompiledText, compile_reads, up_to
from pipeline.model import CharTransformer, ModelConfig
from pipeline.reading import open_texts
from pipeline.records import JobRecord
from pipeline.spec import JobSpec
from pipeline.text import Vocabulary
from pipeline.weights import load_target, save_model

TINY = ModelConfig(vocab=7, context=48, layers=1, heads=2, width=16)
ONE = np.zeros(1, np.int64)


def has_compiler() -> bool:
    try:
        programs.check_compiler()
    except ValueError:
        return False
    return True


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a tiny target; programs are kept in another, empty at first."""
    where, kept = tmp_path_factory.mktemp("weights"), tmp_path_factory.mktemp("programs")
    torch.manual_seed(0)
    model = CharTransformer(TINY)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 2:
                weight.mul_(6.0)
    save_model(where, "target", model, Vocabulary("abcdefg"), {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "folder", lambda: kept)
        yield where


def spec(weights: Path | str, **values: Any) -> JobSpec:
    options = {"kind": "quantized", "bits": 8}
    usual: dict[str, Any] = {"k": 1, "seed": 0, "tokens": 30, "prompt": "adbad", "draws": 200}
    usual |= {"pairs": 2, "weights": str(weights), "compile": True}
    return JobSpec("int8", options, **{**usual, **values})


@pytest.fixture(scope="module")
def timed(weights: Path) -> tuple[JobRecord, JobRecord, int]:
    """A compiled job, counted and timed, and how many programs that took."""
    before, counted = programs.built, job.count(spec(weights))
    assert programs.built == before  # the exact side stays plain torch
    return counted, job.clock(spec(weights), counted, {}), programs.built - before


@needs_compiler
def test_a_compiled_job_writes_the_counted_text_and_has_the_plain_jobs_counts(
    weights: Path, timed: tuple[JobRecord, JobRecord, int]
) -> None:
    counted, done, built = timed
    plain = job.count(spec(weights, compile=False))
    assert plain.tags["counts.digest"] == counted.tags["counts.digest"]
    assert plain.metrics == counted.metrics and plain.digest != counted.digest
    assert done.metrics["time/timed_matches_counts"] == 1
    assert {"cost/c", "cost/v", "cost/o"} <= set(done.metrics)
    assert built == 2  # of one and two tokens; the draft is of the target's architecture


@needs_compiler
def test_nothing_is_compiled_again_in_a_later_decode_job_or_process(
    weights: Path, timed: tuple[JobRecord, JobRecord, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, traced = programs.built, str(counters)
    job.clock(spec(weights, seed=1), job.count(spec(weights, seed=1)), {})
    job.null(spec(weights))
    assert programs.built == before
    monkeypatch.setattr(programs, "_loaded", {})  # as in a new process
    job.clock(spec(weights, seed=1), job.count(spec(weights, seed=1)), {})
    assert programs.built == before and str(counters) == traced


@needs_compiler
def test_compiled_reads_are_plain_reads_to_float32_rounding(
    weights: Path, timed: tuple[JobRecord, JobRecord, int]
) -> None:
    plain, other = load_target(weights)[0], load_target(weights)[0]
    compile_reads(other, (2,))
    rng, prompt = np.random.default_rng(0), np.array([0, 3, 1, 0, 3])
    texts = [open_texts(model, prompt, 40, None) for model in (plain, other)]
    assert isinstance(texts[1], CompiledText)
    for _ in range(60):
        count = int(rng.integers(1, 5))  # up to twice the longest program
        ids = rng.integers(0, TINY.vocab, (1, count))
        rows, compiled = (text.read(ONE, ids) for text in texts)
        np.testing.assert_allclose(compiled, rows, rtol=1e-4, atol=1e-4)
        states, kept = (text.states(ONE, count).numpy() for text in texts)
        np.testing.assert_allclose(kept, states, rtol=1e-4, atol=1e-4)
        length = texts[0].lengths - rng.integers(0, count + 1)
        length = np.minimum(length, 30) if length[0] > 34 else length
        for text in texts:
            text.crop(ONE, length)
        assert texts[0].lengths == texts[1].lengths
        assert texts[0].cache_bytes() == texts[1].cache_bytes()
    with pytest.raises(ValueError, match="beyond the cache's 40"):
        texts[1].read(ONE, np.zeros((1, 41), np.int64))
    with pytest.raises(ValueError, match="cannot crop"):
        texts[1].crop(ONE, texts[1].lengths + 1)


@needs_compiler
def test_a_compiled_model_is_read_as_it_is_in_float64(
    weights: Path, timed: tuple[JobRecord, JobRecord, int]
) -> None:
    model = load_target(weights)[0]
    compile_reads(model, (2,))
    text = open_texts(model.double(), np.array([0, 3]), 40, None)
    assert not isinstance(text, CompiledText)
    assert text.read(ONE, np.array([[1]])).dtype == np.float64


def test_a_few_lengths_of_programs_cover_every_read() -> None:
    assert [up_to(most) for most in (1, 2, 5, 6, 9)] == [
        (1,), (1, 2), (1, 2, 3, 5), (1, 2, 3, 5, 6), (1, 2, 3, 5, 9),
    ]  # fmt: skip


def test_a_compiled_job_is_named_so() -> None:
    assert spec("shipped", k=4).name.endswith("k=4 seed=0 compiled")


def test_a_machine_without_a_compiler_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.delenv("CXX", raising=False)
    one = spec("shipped", prompt="The ")
    with pytest.raises(ValueError, match=r"needs a C\+\+ compiler.*install one") as refused:
        job.check(one)
    assert "\n" not in str(refused.value)
    job.check(replace(one, compile=False))


def test_a_compiler_that_fails_is_named_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("cc1plus: out of memory\nand much more")

    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", fails)
    monkeypatch.setattr(programs, "check_compiler", lambda: None)
    monkeypatch.setattr(programs, "folder", lambda: tmp_path)
    example = (torch.zeros(2),)
    with pytest.raises(ValueError, match=r"cannot compile here \(RuntimeError: cc1plus") as told:
        programs.program("nothing", torch.nn.Identity(), example, ())
    assert "\n" not in str(told.value) and not list(tmp_path.iterdir())


def test_trees_are_not_compiled_and_that_is_said() -> None:
    with pytest.raises(ValueError, match="target.compile=true: passes over trees"):
        spec("shipped", k=2, proposal="tree", tree=(2, 1), verify="sequoia").validate()
