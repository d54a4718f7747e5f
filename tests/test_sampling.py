"""Rows, draws and addressed uniforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.sampling import PAGE, Sampling, SeedBatch, Uniforms, draw, draw_margin

LOGITS = np.random.default_rng(5).normal(size=(7, 11)) * 3


@pytest.mark.parametrize("temperature", [0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("top_k", [None, 1, 4, 50])
@pytest.mark.parametrize("top_p", [0.05, 0.8, 1.0])
def test_rows_are_probabilities_under_every_option(
    temperature: float, top_k: int | None, top_p: float
) -> None:
    rows = Sampling(temperature, top_k, top_p).rows(LOGITS)
    assert rows.dtype == np.float64
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(axis=-1), 1, atol=1e-12)
    if top_k is not None:
        assert ((rows > 0).sum(axis=-1) <= top_k).all()
    assert (rows.argmax(axis=-1) == LOGITS.argmax(axis=-1)).all()


def test_plain_sampling_is_the_softmax() -> None:
    expected = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(Sampling().rows(LOGITS), expected, rtol=1e-12)


def test_top_p_keeps_the_fewest_ids_that_hold_the_mass() -> None:
    rows = Sampling(top_p=0.6).rows(np.log([[0.1, 0.5, 0.15, 0.25]]))
    np.testing.assert_allclose(rows, [[0, 2 / 3, 0, 1 / 3]], rtol=1e-12)


def test_top_k_keeps_exactly_k_even_where_logits_tie() -> None:
    rows = Sampling(top_k=2).rows(np.zeros((1, 5)))
    np.testing.assert_array_equal(rows, [[0.5, 0.5, 0, 0, 0]])


def test_greedy_takes_token_zero_when_it_is_the_largest() -> None:
    np.testing.assert_array_equal(Sampling(0).rows(np.array([[2.0, 1.0]])), [[1.0, 0.0]])


@pytest.mark.parametrize(
    "options", [{"temperature": -1}, {"top_k": 0}, {"top_p": 0}, {"top_p": 1.5}]
)
def test_options_out_of_range_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"sampling.{next(iter(options))}"):
        Sampling(**options)


def test_a_draw_never_takes_an_id_of_probability_zero() -> None:
    rows = np.array([[0.0, 0.5, 0.0, 0.5, 0.0]])
    last = np.nextafter(1.0, 0)
    for u in (0.0, 0.25, 0.5, np.nextafter(0.5, 0), last):
        assert rows[0, draw(rows, np.array([u]))[0]] > 0
    many = np.repeat(rows, 3, axis=0)
    assert draw(many, np.array([0.0, 0.5, last])).tolist() == [1, 3, 3]


def test_a_draw_follows_its_row() -> None:
    row = np.array([0.1, 0.0, 0.6, 0.3])
    u = (np.arange(1000) + 0.5) / 1000
    ids = draw(np.repeat(row[None], 1000, axis=0), u)
    np.testing.assert_array_equal(np.bincount(ids, minlength=4), [100, 0, 600, 300])


def test_one_row_alone_draws_as_it_does_in_a_batch() -> None:
    rows = Sampling().rows(LOGITS)
    u = np.random.default_rng(1).random(len(rows))
    alone = [int(draw(rows[i : i + 1], u[i : i + 1])[0]) for i in range(len(rows))]
    assert draw(rows, u).tolist() == alone


def test_margin_is_the_way_to_the_nearest_inner_edge() -> None:
    rows = np.array([[0.25, 0.25, 0.5], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(draw_margin(rows, np.array([0.3, 0.999])), [0.05, 1.0])


def test_an_address_gives_one_number_whatever_else_is_drawn() -> None:
    lanes = np.array([2, 0])
    many = Uniforms(7, lanes=4)
    many.block("draft", 99)
    got = many.take("accept", lanes, np.array([5, 3]), 3)
    fresh = Uniforms(7, lanes=4)
    np.testing.assert_array_equal(fresh.take("accept", lanes[1:], np.array([3]), 2), got[1:, :2])
    np.testing.assert_array_equal(Uniforms(7).take("accept", lanes[1:], np.array([3]), 3), got[1:])


def test_addresses_that_differ_give_numbers_that_differ() -> None:
    seen = np.concatenate(
        [
            Uniforms(seed, lanes=4, stream=stream).block(purpose, start, page).ravel()
            for seed in (0, 1)
            for stream in (0, 1)
            for purpose in ("draft", "accept", "pit", "next")
            for start in range(6)
            for page in range(2)
        ]
    )
    assert len(np.unique(seen)) == len(seen)


def test_lanes_may_be_drawn_in_chunks() -> None:
    whole = Uniforms(3, lanes=12)
    part = Uniforms(3, lanes=4, first_lane=8)
    for purpose in ("draft", "next"):
        np.testing.assert_array_equal(whole.block(purpose, 5)[8:], part.block(purpose, 5))


def test_a_wide_round_reads_the_numbers_of_a_narrow_one_first() -> None:
    one = np.zeros(1, np.int64)
    wide = Uniforms(0).take("accept", one, one, PAGE + 5)
    assert wide.shape == (1, PAGE + 5)
    np.testing.assert_array_equal(wide[:, :4], Uniforms(0).take("accept", one, one, 4))


def test_a_batch_of_seeds_has_each_seeds_own_numbers() -> None:
    batch = SeedBatch([4, 0, 9])
    for lane, seed in enumerate((4, 0, 9)):
        np.testing.assert_array_equal(
            batch.block("draft", 2)[lane], Uniforms(seed).block("draft", 2)[0]
        )


def test_seed_zero_is_a_seed_and_a_negative_one_is_refused() -> None:
    assert Uniforms(0).block("next", 0) != Uniforms(1).block("next", 0)
    with pytest.raises(ValueError, match="seed=-1"):
        Uniforms(-1)
