"""Drafts that look up: ngram in the text itself, trigram in a table with back-off."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.drafts.ngram import NgramDraft
from pipeline.drafts.table import TableDraft, shorter
from pipeline.sampling import Sampling
from pipeline.text import Vocabulary
from pipeline.weights import NgramTable
from tests.family import MODEL, table
from tests.models import VOCAB, decode

ONE = np.zeros(1, np.int64)


def lookup(text: str, **options: int) -> tuple[str, int]:
    """What ngram proposes after `text`, and how many characters in all; "" for nothing."""
    letters = Vocabulary("abcdefgh ")
    draft = NgramDraft(len(letters), **options)
    reader = draft.open(letters.encode(text[:-1]), len(text) + 8, None, torch.float64)
    row = Sampling().rows(reader.read(ONE, letters.encode(text[-1])[None]))[0, 0]
    limit = reader.limit(ONE, 8)
    assert limit is not None
    assert row.max() == 1.0 if limit[0] else (row == 1 / len(letters)).all()
    return letters.decode([int(row.argmax())]) if limit[0] else "", int(limit[0])


def test_ngram_proposes_what_followed_the_longest_most_recent_match() -> None:
    assert lookup("abcd abce abc", shortest=2, longest=4) == ("e", 5)  # the more recent
    assert lookup("abcd bce abc", shortest=2, longest=4) == ("d", 8)  # the longer
    assert lookup("abcd bce abc", shortest=2, longest=2) == ("e", 5)
    assert lookup("abab", shortest=1, longest=4) == ("a", 2)  # the match runs out
    assert lookup("abcdefgh", shortest=1, longest=4) == ("", 0)
    assert lookup("abcdefga", shortest=2, longest=4) == ("", 0)  # too short a match
    assert lookup("a", shortest=1, longest=4) == ("", 0)


def test_a_round_without_a_match_is_a_plain_target_step() -> None:
    plain, *_ = decode(MODEL, None, tokens=20, prompt=(0, 1, 2, 3, 4, 5, 6))
    never = NgramDraft(VOCAB, 30, 30)
    texts, steps, _, _ = decode(MODEL, never, 4, tokens=20, prompt=(0, 1, 2, 3, 4, 5, 6))
    assert all(step.drafted.shape == (1, 0) for step in steps) and len(steps) == 20
    np.testing.assert_array_equal(texts.emitted(), plain.emitted())


def test_ngram_rounds_are_of_unequal_length() -> None:
    _, steps, _, _ = decode(MODEL, NgramDraft(VOCAB, 2, 4), 4, tokens=40, lanes=8)
    lengths = {step.drafted.shape[1] for step in steps}
    assert {0, 4} <= lengths and lengths & {1, 2, 3}
    assert all((step.q.max(axis=-1) == 1).all() for step in steps if step.q.size)


@pytest.mark.parametrize("given", [(0, 3), (4, 3)])
def test_lengths_of_suffixes_that_cannot_be_are_named(given: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"draft\.shortest="):
        NgramDraft(VOCAB, *given)


def test_the_shorter_table_is_that_of_the_same_text() -> None:
    ids = np.random.default_rng(4).integers(0, VOCAB, 500)
    full, pairs = (NgramTable.of(ids[start:], VOCAB, n, 5.0) for start, n in ((0, 3), (1, 2)))
    np.testing.assert_array_equal(shorter(full).cells(), pairs.cells())


def test_trigram_backs_off_where_a_pair_is_new_or_a_text_begins() -> None:
    counted = table()
    pairs, rows = counted.cells().sum(axis=-1), counted.rows()
    bigram = shorter(counted).rows()
    a, b = (int(x) for x in np.argwhere(pairs == 0)[0])
    reader = TableDraft(counted).open(ONE[:0], 4, None, torch.float64)
    read = Sampling().rows(reader.read(ONE, np.array([[a, b, a]])))[0]
    np.testing.assert_allclose(read[0], bigram[a], atol=1e-12)
    np.testing.assert_allclose(read[1], bigram[b], atol=1e-12)  # the pair a, b is new
    np.testing.assert_allclose(read[2], rows[b, a], atol=1e-12)
    reader.crop(ONE, np.array([1]))
    again = Sampling().rows(reader.read(ONE, np.array([[b]])))[0, 0]
    np.testing.assert_allclose(again, read[1], atol=1e-12)


def test_a_table_of_any_order_reads_the_last_characters() -> None:
    counted = table(4)
    reader = TableDraft(counted).open(np.array([1, 2]), 9, 3, torch.float64)
    read = reader.read(np.arange(3), np.array([[0, 4], [5, 5], [6, 1]]))
    expected = np.log(counted.rows()[2, [0, 5, 6], [4, 5, 1]])
    np.testing.assert_allclose(read[:, 1], expected, atol=1e-12)
