"""Encoded pictures of one's own: unread until they are asked, decoded once, named where they are broken."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from encoded_files import picture
from farshift.baselines.baseline import Baseline
from farshift.baselines.encoding.encoding import RowEncoding
from farshift.baselines.recipe import Recipe
from farshift.baselines.training.trainer import Training
from farshift.baselines.training.training_rows import FitInput, digest_batch
from farshift.benchmarks.answers import ANSWERED, FAILED
from farshift.benchmarks.model import Budget, Task
from farshift.benchmarks.model_inputs.rows import ModelInputs, ModelRows
from farshift.core.errors import BadData
from farshift.loaders.batching import pixels
from farshift.loaders.batching.encoded import EncodedFiles
from farshift.loaders.batching.images import decode_images
from farshift.loaders.batching.pixels import ArrayPixels, open_pixels
from farshift.loaders.cache.store import map_table, write_arrow
from farshift.loaders.decoders import load_decoder
from farshift.loaders.part import Part
from farshift.splits.schema import Field, Schema

from .toys import Rows, recipe, words

TASK = Task("classification", ("image",), "kind", classes=2)


def tree() -> Recipe:
    return Recipe(name="tree", title="Tree", citation="none", estimator="sklearn.tree.DecisionTreeClassifier")


def test_encoded_pictures_are_numbers_of_one_image_shape():
    files = [picture(number) for number in range(6)]
    train = {"image": words(files), "kind": np.arange(6) % 2}
    encoding = RowEncoding(TASK, train, side=8)
    assert encoding.sizes.shape == (8, 8, 3)
    assert encoding.sizes.numbers == 8 * 8 * 3
    categories, numbers = encoding.inputs(train)
    assert categories.shape == (6, 0)
    scale = decode_images(files, 8).max()
    np.testing.assert_allclose(numbers.numpy(), decode_images(files, 8).reshape(6, -1) / scale, rtol=1e-6)
    again = encoding.inputs({"image": words(files[:2])})[1]
    assert torch.equal(again, numbers[:2])


def test_the_decoder_stands_among_what_a_seed_spent_and_a_second_run_decodes_nothing(cache, monkeypatch):
    train = Rows(image=words([picture(number) for number in range(6)]), kind=np.arange(6) % 2)
    batch = {"image": words([picture(number) for number in range(9)])}

    def run() -> tuple[dict, np.ndarray]:
        model = Baseline(recipe("cnn", 3, batch_size=2), TASK, 0, "toy/toy", {"side": 8})
        remarks = model.fit(train, None, Budget())
        return remarks, model.predict(batch).scores

    remarks, scores = run()
    assert remarks["decoder"] == load_decoder().version

    def never(*_: object) -> None:
        raise AssertionError("decoded again")

    monkeypatch.setattr(pixels, "iterate_decoded", never)
    np.testing.assert_array_equal(run()[1], scores)


class Numbered(Rows):
    """Training rows that know their ids."""

    @property
    def row_ids(self) -> np.ndarray:
        return np.arange(len(self), dtype=np.uint64) + 160


BROKEN = [picture(number) for number in range(8)]
BROKEN[5] = BROKEN[5][:200]


@pytest.mark.parametrize("limit", ["", "1kB"])
@pytest.mark.parametrize("made", [recipe("cnn", 3, batch_size=2, side=8), tree()])
def test_a_broken_training_picture_is_named_by_its_row_before_anything_is_trained(cache, monkeypatch, limit, made):
    """Whether pictures fit the cache or not."""
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", limit)
    monkeypatch.setattr(Training, "step", None)
    rows = Numbered(image=words(BROKEN), kind=np.arange(8) % 2)
    with pytest.raises(BadData, match=r"^row 00000000000000a5: its image cannot be decoded: "):
        Baseline(made, TASK, 0, "toy/toy").fit(rows, None, Budget())
    full = Numbered(image=words([picture(number) for number in range(8)]), kind=np.arange(8) % 2)
    if made.network:
        with pytest.raises(BadData, match="row 00000000000000a5: "):
            Baseline(made, TASK, 0, "toy/toy").fit(full, rows, Budget())


@pytest.mark.parametrize("made", [recipe("cnn", 3, batch_size=2, side=8), tree()])
def test_a_broken_picture_that_is_asked_about_has_no_answer_and_the_others_have_theirs(cache, made):
    full = Rows(image=words([picture(number) for number in range(8)]), kind=np.arange(8) % 2)
    model = Baseline(made, TASK, 0, "toy/toy")
    model.fit(full, None, Budget())
    clean, result = model.predict(full.only("image")), model.predict({"image": words(BROKEN)})
    here = np.arange(8) != 5
    assert result.status.tolist() == [ANSWERED] * 5 + [FAILED] + [ANSWERED] * 2
    np.testing.assert_array_equal(result.prediction[here], clean.prediction[here])
    np.testing.assert_allclose(result.scores[here], clean.scores[here], atol=1e-6)
    np.testing.assert_allclose(result.scores.sum(axis=1), 1, atol=1e-6)
    nothing = model.predict({"image": words([b"none", b""])})
    assert nothing.status.tolist() == [FAILED, FAILED]


FILES = [picture(number) for number in range(20)]


def entries(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "images").glob("*.npy"))


def fitted() -> Baseline:
    model = Baseline(recipe("mlp", 3, batch_size=2), TASK, 0, "toy/toy", {"side": 8})
    model.fit(Rows(image=words(FILES[:6]), kind=np.arange(6) % 2), None, Budget())
    return model


def in_threes(model: Baseline, files: list[bytes]) -> np.ndarray:
    batches = [{"image": words(files[start : start + 3])} for start in range(0, len(files), 3)]
    return np.concatenate([model.predict(batch).scores for batch in batches])


def test_what_does_not_fit_the_cache_is_decoded_batch_by_batch(cache, monkeypatch):
    expected, stored = in_threes(fitted(), FILES[8:]), entries(cache)
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "1kB")
    np.testing.assert_array_equal(in_threes(fitted(), FILES[8:]), expected)
    assert len(stored) > 1 and len(entries(cache)) <= len(stored)


FILES_UNREAD = [picture(number) for number in range(12)]


def chunked() -> EncodedFiles:
    return EncodedFiles(
        pa.chunked_array([pa.array(FILES_UNREAD[:5]), pa.array([], pa.binary()), pa.array(FILES_UNREAD[5:])])
    )


def plain() -> np.ndarray:
    return words(FILES_UNREAD)


def test_places_slices_and_masks_give_what_an_array_of_bytes_gives() -> None:
    lazy, array = chunked(), plain()
    assert (len(lazy), lazy.shape, lazy.dtype) == (12, array.shape, array.dtype)
    assert [lazy[position] for position in (0, 4, 5, -1, np.int64(7))] == [
        array[position] for position in (0, 4, 5, -1, 7)
    ]
    for some in (slice(3, 9), slice(None, None, -2), np.array([7, 7, 0]), np.arange(12) % 3 == 0, [1, 2]):
        assert isinstance(lazy[some], EncodedFiles)
        assert lazy[some].tolist() == array[some].tolist() == list(np.asarray(lazy[some]))
    assert lazy[2:9][np.array([0, 6])].tolist() == [FILES_UNREAD[2], FILES_UNREAD[8]]
    with pytest.raises(IndexError):
        lazy[12]


def test_they_are_the_same_pictures_to_the_cache_and_the_same_rows_to_a_checkpoint() -> None:
    assert open_pixels(chunked(), 8).key == open_pixels(FILES_UNREAD, 8).key
    assert open_pixels(chunked()[3:], 8).key == open_pixels(FILES_UNREAD[3:], 8).key != open_pixels(FILES_UNREAD, 8).key
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
    rows = inputs_of(part(SCHEMA, pa.array(FILES_UNREAD), tmp_path / "rows.arrow"))
    train = rows.training("train")
    assert isinstance(train.columns["image"], EncodedFiles)
    assert isinstance(rows.unlabelled("train")["image"], EncodedFiles)
    there = map_table(tmp_path / "rows.arrow")["image"].chunk(0)
    assert train.columns["image"].stored.chunk(0).buffers()[2].size == there.buffers()[2].size
    files = FILES_UNREAD[::-1]
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
    assert isinstance(train.columns["image"], ArrayPixels)
    given = train.numpy()
    given["image"][:] = 0
    assert (train.numpy()["image"] == pixels[::-1]).all()


def test_rows_of_one_seed_and_epoch_come_in_the_order_of_the_part_s_own_batches(tmp_path: Path) -> None:
    rows = part(SCHEMA, pa.array(FILES_UNREAD), tmp_path / "rows.arrow")
    ours = [batch["kind"].tolist() for batch in inputs_of(rows).training("train").batches(5, seed=3, epoch=2)]
    assert ours == [batch["kind"].tolist() for batch in rows.batches(5, seed=3, epoch=2)]


def test_unread_pixels_give_what_an_array_gives() -> None:
    array = np.random.default_rng(0).integers(0, 256, (9, 4, 5, 3), np.uint8)
    places = np.array([8, 0, 3, 3, 7, 5])
    lazy, expected = ArrayPixels(array, places), array[places]
    assert (lazy.shape, lazy.ndim, len(lazy), lazy.dtype) == (expected.shape, 4, 6, expected.dtype)
    for rows in (slice(1, 5), slice(None, None, -2), np.array([5, 5, 0]), expected[:, 0, 0, 0] > 99):
        assert isinstance(lazy[rows], ArrayPixels)
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
