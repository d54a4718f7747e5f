"""Promises of `pipeline.weights`: what is written is read back, and nothing doubtful is read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.heads import Heads
from pipeline.model import CharTransformer, ModelConfig
from pipeline.text import Vocabulary
from pipeline.weights import (
    NgramTable,
    digest,
    load_heads,
    load_small,
    load_table,
    load_target,
    save_heads,
    save_model,
    save_table,
)

TEXT = "to be, or not to be, that is the question"
VOCABULARY = Vocabulary.of(TEXT)


def tiny(seed: int = 0) -> CharTransformer:
    torch.manual_seed(seed)
    return CharTransformer(ModelConfig(len(VOCABULARY), context=16, layers=1, heads=2, width=8))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(tmp_path, "target", tiny(), VOCABULARY, {})
    save_model(tmp_path, "small", tiny(1), VOCABULARY, {})
    table = NgramTable.of(VOCABULARY.encode(TEXT), len(VOCABULARY), 2, strength=1.0)
    save_table(tmp_path, "bigram", table, VOCABULARY, {})
    return tmp_path


def one_sentence(error: pytest.ExceptionInfo[ValueError]) -> str:
    said = str(error.value)
    assert "\n" not in said and len(said) < 400
    return said


def test_a_saved_model_is_read_back_equal_frozen_and_in_float32(folder: Path) -> None:
    model, vocabulary, card = load_target(folder)
    ids = torch.from_numpy(VOCABULARY.encode(TEXT[:16]))[None]
    assert torch.equal(model(ids), tiny()(ids))
    assert vocabulary == VOCABULARY and card["kind"] == "target"
    assert all(p.dtype == torch.float32 and not p.requires_grad for p in model.parameters())


def test_a_missing_folder_is_named_with_the_way_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no weights folder .*nowhere.*make train") as error:
        load_target(tmp_path / "nowhere")
    one_sentence(error)


@pytest.mark.parametrize("name", ["card.json", "model.safetensors"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / "target" / name).unlink()
    with pytest.raises(ValueError, match=f"no target/{name}") as error:
        load_target(folder)
    one_sentence(error)


def test_a_file_cut_off_or_changed_by_one_bit_is_called_damaged(folder: Path) -> None:
    path = folder / "target" / "model.safetensors"
    whole = path.read_bytes()
    for data in (whole[:-100], b"", whole[:-1] + bytes([whole[-1] ^ 1])):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="damaged") as error:
            load_target(folder)
        one_sentence(error)


@pytest.mark.parametrize("name", ["model.safetensors", "card.json"])
def test_a_folder_in_the_place_of_a_file_is_named(folder: Path, name: str) -> None:
    (folder / "target" / name).unlink()
    (folder / "target" / name).mkdir()
    with pytest.raises(ValueError) as refused:
        load_target(folder)
    assert f"{name} cannot be read (a folder)" in one_sentence(refused)


def test_a_card_that_is_not_json_is_called_damaged(folder: Path) -> None:
    (folder / "target" / "card.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="card.json is damaged") as error:
        load_target(folder)
    one_sentence(error)


def test_weights_of_another_program_are_called_so(folder: Path) -> None:
    (folder / "target" / "card.json").write_text('{"model": "gpt2"}', encoding="utf-8")
    with pytest.raises(ValueError, match="another program") as error:
        load_target(folder)
    one_sentence(error)


def test_a_part_in_the_place_of_another_is_found(folder: Path) -> None:
    shutil.rmtree(folder / "small")
    shutil.copytree(folder / "target", folder / "small")
    with pytest.raises(ValueError, match="describes 'target'.*'small'") as error:
        load_small(folder, VOCABULARY)
    one_sentence(error)


def test_another_architecture_is_found_before_it_is_run(folder: Path) -> None:
    path = folder / "target" / "card.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    for sizes in ({**card["sizes"], "layers": 2}, {**card["sizes"], "vocab": 3}, {"n_layer": 1}):
        path.write_text(json.dumps({**card, "sizes": sizes}), encoding="utf-8")
        with pytest.raises(ValueError, match="not the architecture") as error:
            load_target(folder)
        one_sentence(error)


def test_a_draft_of_other_characters_is_refused(folder: Path) -> None:
    other = Vocabulary("abc")
    for load in (lambda: load_small(folder, other), lambda: load_table(folder, "bigram", other)):
        with pytest.raises(ValueError, match="knows other characters") as error:
            load()
        one_sentence(error)


def test_heads_of_another_target_are_refused(folder: Path) -> None:
    save_heads(folder, Heads(2, 8), VOCABULARY, {})
    assert load_heads(folder).count == 2
    save_model(folder, "target", tiny(seed=7), VOCABULARY, {})
    with pytest.raises(ValueError, match="trained on another target") as error:
        load_heads(folder)
    one_sentence(error)


def test_weights_that_are_not_finite_are_never_saved(tmp_path: Path) -> None:
    model = tiny()
    with torch.no_grad():
        model.transformer.ln_f.bias[0] = float("nan")
    with pytest.raises(ValueError, match="ln_f.bias is not finite"):
        save_model(tmp_path, "target", model, VOCABULARY, {})


def test_the_digest_follows_the_weights_and_the_parts_asked_for(folder: Path) -> None:
    before = digest(folder)
    assert before == digest(folder) and len(before) == 64
    assert digest(folder, ("target", "bigram")) != before
    save_model(folder, "target", tiny(seed=5), VOCABULARY, {})
    assert digest(folder) != before


@pytest.mark.parametrize("order", [2, 3])
def test_rows_of_a_table_are_distributions_without_a_zero(order: int) -> None:
    table = NgramTable.of(VOCABULARY.encode(TEXT), len(VOCABULARY), order, strength=2.0)
    rows = table.rows()
    assert rows.shape == (len(VOCABULARY),) * order
    assert rows.min() > 0
    np.testing.assert_allclose(rows.sum(axis=-1), 1.0, rtol=1e-12)


def test_a_bigram_row_is_the_counts_backed_off_to_single_characters() -> None:
    table = NgramTable.of(np.array([0, 1, 0, 1, 1]), vocab=3, order=2, strength=2.0)
    single = np.array([1 + 1, 3 + 1, 0 + 1]) / (4 + 3)  # the first character follows nothing
    np.testing.assert_allclose(table.rows()[0], (np.array([0, 2, 0]) + 2 * single) / 4)
    np.testing.assert_allclose(table.rows()[2], single)


def test_a_table_is_read_back_equal(folder: Path) -> None:
    table = load_table(folder, "bigram", VOCABULARY)
    made = NgramTable.of(VOCABULARY.encode(TEXT), len(VOCABULARY), 2, strength=1.0)
    np.testing.assert_array_equal(table.rows(), made.rows())


def test_a_vocabulary_too_large_for_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="400 different characters"):
        NgramTable.of(np.arange(400), vocab=400, order=3, strength=1.0)


def test_the_shipped_parts_load_and_know_the_same_characters() -> None:
    model, vocabulary, card = load_target("shipped")
    assert model.cfg.vocab == len(vocabulary) == 84
    assert 2.4e6 <= model.weight_bytes() <= 2.7e6
    assert card["result"]["loss"] <= 1.55
    for kind, order in (("bigram", 2), ("trigram", 3)):
        assert load_table("shipped", kind, vocabulary).order == order
