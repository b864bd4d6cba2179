"""Encoded files stay in their mapped column until one is read, and stand where an array of bytes would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from encoded_files import picture
from farshift.baselines.baseline import Baseline
from farshift.baselines.training.training_rows import FitInput, digest_batch
from farshift.benchmarks.blind.rows import ModelInputs
from farshift.benchmarks.blind.training_table import TrainingTable
from farshift.benchmarks.model import Budget, Task
from farshift.loaders.batching.encoded_files import EncodedFiles
from farshift.loaders.batching.pixels import open_pixels
from farshift.loaders.cache.store import map_table, write_arrow

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


def blind(folder: Path) -> ModelInputs:
    columns = {"image": FILES, "kind": np.arange(12) % 2, "weight": np.ones(12, np.int64), "row_id": np.arange(12)}
    table = pa.table(columns)
    for name in ("train", "ood_test"):
        write_arrow(table.set_column(3, "row_id", table["row_id"].cast(pa.uint64())), folder / f"{name}.arrow")
    return ModelInputs(folder, TASK, {"streams": {"train": "a/train", "ood_test": "a/ood_test"}, "shapes": {}})


def test_training_rows_keep_their_files_in_the_mapped_column_and_give_a_user_copies(tmp_path: Path) -> None:
    rows = blind(tmp_path)
    train = rows.training("train")
    assert isinstance(train.columns["image"], EncodedFiles)
    assert isinstance(rows.unlabelled("ood_test")["image"], EncodedFiles)
    there = map_table(tmp_path / "train.arrow")["image"].chunk(0)
    assert train.columns["image"].stored.chunk(0).buffers()[2].size == there.buffers()[2].size
    given = train.numpy()
    assert given["image"].tolist() == FILES
    given["image"][0] = b""
    assert train.numpy()["image"].tolist() == FILES
    assert [batch["image"].tolist() for batch in train.batches(5)] == [FILES[:5], FILES[5:10], FILES[10:]]
    assert train.select(np.arange(12) > 8).numpy()["image"].tolist() == FILES[9:]
    assert train.concatenate([train]).numpy()["image"].tolist() == FILES * 2


def test_a_tensor_of_training_rows_is_a_view_of_its_file_and_a_user_s_copy_may_be_written_into(tmp_path: Path) -> None:
    pixels = np.arange(48, dtype=np.uint8)
    column = pa.FixedSizeListArray.from_arrays(pa.array(pixels), 4)
    table = pa.table({"image": column, "kind": np.arange(12) % 2, "row_id": np.arange(12, dtype=np.uint64)})
    write_arrow(table, tmp_path / "train.arrow")
    rows = ModelInputs(tmp_path, TASK, {"streams": {"train": "a/train"}, "shapes": {"image": [2, 2]}})
    train = rows.training("train")
    assert train.columns["image"].base is not None
    assert not train.columns["image"].flags.writeable
    given = train.numpy()
    given["image"][:] = 0
    assert (train.numpy()["image"].ravel() == pixels).all()


def test_a_network_trains_on_unread_files_as_on_bytes(cache: Path) -> None:
    weight = np.ones(12)
    result = []
    for column in (chunked(), plain()):
        rows = TrainingTable(
            {"image": column, "kind": np.arange(12) % 2, "weight": weight}, np.arange(12, dtype=np.uint64)
        )
        model = Baseline(recipe("cnn", 4, batch_size=4, side=8), TASK, 0, "toy/toy")
        model.fit(rows, None, Budget())
        result.append((FitInput(rows, None).digest(), model.predict({"image": plain()}).scores.tolist()))
    assert result[0] == result[1]
