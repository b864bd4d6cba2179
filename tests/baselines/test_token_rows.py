"""Ragged token ids stand where a tensor of all rows, filled up to the longest, would."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from farshift.baselines.encoding.token_rows import TokenRows
from farshift.loaders.batching.tokens import Tokens

LENGTHS = [3, 0, 7, 1, 5, 2, 0, 4]


def tokens(lengths: list[int]) -> Tokens:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Tokens(offsets, np.arange(offsets[-1]).astype(np.uint16), "key", "tokenizer", 100)


@pytest.fixture
def padded() -> torch.Tensor:
    return torch.from_numpy(tokens(LENGTHS).take(np.arange(len(LENGTHS)), 0, add=1))


@pytest.mark.parametrize(
    "rows",
    [
        slice(None),
        slice(2, 5),
        slice(1, None, 2),
        torch.tensor([2, 2, 0]),
        torch.arange(8) % 2 == 0,
        torch.tensor([1, 6]),
    ],
    ids=["all", "some", "every second", "places", "mask", "empty rows"],
)
def test_rows_are_those_of_the_tensor_without_places_that_none_of_them_has(rows, padded):
    result, expected = TokenRows.of(tokens(LENGTHS))[rows], padded[rows]
    width = max(1, int((expected != 0).sum(1).max()))
    assert result.dtype == torch.int64
    assert torch.equal(result, expected[:, :width])


def test_a_batch_of_several_replicas_is_as_wide_as_its_longest_row(padded):
    rows = torch.tensor([[3, 5], [0, 1]])
    assert torch.equal(TokenRows.of(tokens(LENGTHS)).at(rows), padded[rows][..., :3])


def test_it_has_the_tensor_s_shape_lengths_and_pieces_and_a_fraction_of_its_bytes(padded):
    locked = TokenRows.of(tokens(LENGTHS))
    assert (locked.shape, locked.dtype, len(locked)) == (padded.shape, padded.dtype, len(padded))
    assert locked.lengths.tolist() == LENGTHS
    assert torch.equal(locked.to_tensor(), padded)
    assert torch.equal(locked.sum(1), padded.sum(1)), "what it lacks is asked of the whole"
    assert [len(piece) for piece in torch.split(locked, 3)] == [3, 3, 2]
    assert copy.deepcopy(locked) is locked and torch.equal(locked.to("cpu").to_tensor(), padded)
    many = TokenRows.of(tokens([200, *[10] * 999]))
    assert many.nbytes < many.to_tensor().nbytes / 30


def test_texts_without_any_token_are_one_place_of_padding():
    assert torch.equal(TokenRows.of(tokens([0, 0])).to_tensor(), torch.zeros(2, 1, dtype=torch.int64))
