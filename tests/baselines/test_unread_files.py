"""Encoded files stay in their mapped column until one is read, and stand where an array of bytes would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from encoded_files import picture
from farshift.baselines.baseline import Baseline
from farshift.baselines.training.training_rows import FitInput, digest_batch
from farshift.benchmarks.model import Budget, Task
from farshift.benchmarks.model_inputs.rows import ModelInputs, ModelRows
from farshift.loaders.batching.encoded import EncodedFiles
from farshift.loaders.batching.pixels import ArrayPixels, MappedPixels, open_pixels
from farshift.loaders.cache.store import map_table, write_arrow
from farshift.loaders.part import Part
from farshift.splits.schema import Field, Schema

from .toys import recipe

TASK = Task("classification", ("image",), "kind", classes=2)
FILES = [picture(number) for number in range(12)]


def chunked() -> EncodedFiles:
    return EncodedFiles(pa.chunked_array([pa.array(FILES[:5]), pa.array([], pa.binary()), pa.array(FILES[5:])]))


def plain() -> np.ndarray:
    result = np.empty(len(FILES), object)
    result[:] = FILES
    return result


def test_places_slices_and_masks_give_what_an_array_of_bytes_gives() -> None:
    lazy, array = chunked(), plain()
    assert (len(lazy), lazy.shape, lazy.dtype) == (12, array.shape, array.dtype)
    assert [lazy[position] for position in (0, 4, 5, -1, np.int64(7))] == [
        array[position] for position in (0, 4, 5, -1, 7)
    ]
    for some in (slice(3, 9), slice(None, None, -2), np.array([7, 7, 0]), np.arange(12) % 3 == 0, [1, 2]):
        assert isinstance(lazy[some], EncodedFiles)
        assert lazy[some].tolist() == array[some].tolist() == list(np.asarray(lazy[some]))
    assert lazy[2:9][np.array([0, 6])].tolist() == [FILES[2], FILES[8]]
    with pytest.raises(IndexError):
        lazy[12]


def test_they_are_the_same_pictures_to_the_cache_and_the_same_rows_to_a_checkpoint() -> None:
    assert open_pixels(chunked(), 8).key == open_pixels(FILES, 8).key
    assert open_pixels(chunked()[3:], 8).key == open_pixels(FILES[3:], 8).key != open_pixels(FILES, 8).key
    assert digest_batch({"image": chunked()}) == digest_batch({"image": plain()})


SCHEMA = Schema((Field("image", "image", "input"), Field("kind", "int64", "label")))


def part(schema: Schema, image: pa.Array, file: Path) -> Part:
    """Twelve rows of a mapped file in reverse order."""
    ids = pa.array(np.arange(12), pa.uint64())
    write_arrow(pa.table({"row_id": ids, "image": image, "kind": np.arange(12) % 2}), file)
    return Part("a/a@1", "a", "train", schema, "kind", map_table(file), np.arange(12)[::-1], {})


def inputs_of(rows: Part) -> ModelInputs:
    observed = {"train": {"kind": rows.observed_labels(), "weight": np.ones(12, np.int64)}}
    return ModelInputs("a/a", TASK, rows.schema, {"train": rows.without_labels()}, observed)


def test_training_rows_keep_their_files_in_the_mapped_column_and_give_a_user_copies(tmp_path: Path) -> None:
    rows = inputs_of(part(SCHEMA, pa.array(FILES), tmp_path / "rows.arrow"))
    train = rows.training("train")
    assert isinstance(train.columns["image"], EncodedFiles)
    assert isinstance(rows.unlabelled("train")["image"], EncodedFiles)
    there = map_table(tmp_path / "rows.arrow")["image"].chunk(0)
    assert train.columns["image"].stored.chunk(0).buffers()[2].size == there.buffers()[2].size
    files = FILES[::-1]
    given = train.numpy()
    assert given["image"].tolist() == files
    given["image"][0] = b""
    assert train.numpy()["image"].tolist() == files
    assert [batch["image"].tolist() for batch in train.batches(5)] == [files[:5], files[5:10], files[10:]]
    assert train.select(np.arange(12) > 8).numpy()["image"].tolist() == files[9:]
    assert train.concatenate([train]).numpy()["image"].tolist() == files * 2


def test_pixels_of_training_rows_stay_in_their_file_and_a_user_s_copy_may_be_written_into(tmp_path: Path) -> None:
    pixels = np.arange(48, dtype=np.uint8).reshape(12, 2, 2)
    schema = Schema((Field("image", "uint8[2,2]", "input"), Field("kind", "int64", "label")))
    column = pa.FixedSizeListArray.from_arrays(pa.array(pixels.ravel()), 4)
    train = inputs_of(part(schema, column, tmp_path / "rows.arrow")).training("train")
    assert isinstance(train.columns["image"], MappedPixels)
    given = train.numpy()
    given["image"][:] = 0
    assert (train.numpy()["image"] == pixels[::-1]).all()


def test_rows_of_one_seed_and_epoch_come_in_the_order_of_the_part_s_own_batches(tmp_path: Path) -> None:
    rows = part(SCHEMA, pa.array(FILES), tmp_path / "rows.arrow")
    ours = [batch["kind"].tolist() for batch in inputs_of(rows).training("train").batches(5, seed=3, epoch=2)]
    assert ours == [batch["kind"].tolist() for batch in rows.batches(5, seed=3, epoch=2)]


@pytest.mark.parametrize("chunks", [1, 3])
def test_mapped_pixels_give_what_an_array_gives(chunks: int) -> None:
    array = np.random.default_rng(0).integers(0, 256, (9, 4, 5, 3), np.uint8)
    lists = [pa.FixedSizeListArray.from_arrays(pa.array(some.ravel()), 60) for some in np.array_split(array, chunks)]
    places = np.array([8, 0, 3, 3, 7, 5])
    lazy, expected = MappedPixels(pa.chunked_array(lists), (4, 5, 3), places), array[places]
    assert (lazy.shape, lazy.ndim, len(lazy), lazy.dtype) == (expected.shape, 4, 6, expected.dtype)
    for rows in (slice(1, 5), slice(None, None, -2), np.array([5, 5, 0]), expected[:, 0, 0, 0] > 99):
        assert isinstance(lazy[rows], MappedPixels)
        assert (np.asarray(lazy[rows]) == expected[rows]).all()
    assert (lazy[-1] == expected[-1]).all()
    assert (lazy.take(np.array([4, 1]), np.empty((2, 4, 5, 3), np.uint8)) == expected[[4, 1]]).all()
    assert lazy.key == ArrayPixels(expected).key


def test_a_network_trains_on_unread_files_as_on_bytes(cache: Path) -> None:
    weight = np.ones(12)
    result = []
    for column in (chunked(), plain()):
        rows = ModelRows({"image": column, "kind": np.arange(12) % 2, "weight": weight}, np.arange(12, dtype=np.uint64))
        model = Baseline(recipe("cnn", 4, batch_size=4, side=8), TASK, 0, "toy/toy")
        model.fit(rows, None, Budget())
        result.append((FitInput(rows, None).digest(), model.predict({"image": plain()}).scores.tolist()))
    assert result[0] == result[1]
