"""Pictures in folders of one's own: a split, a benchmark and a trained baseline."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from encoded_files import picture
from farshift.baselines.baseline import Baseline
from farshift.baselines.encoding.encoding import RowEncoding
from farshift.baselines.recipe import Recipe
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.answers import ANSWERED, FAILED
from farshift.benchmarks.model import Budget, Task
from farshift.core.errors import BadData
from farshift.loaders.batching import pixels
from farshift.loaders.batching.images import decode_images
from farshift.loaders.decoders import load_decoder

from .toys import Rows, recipe

TASK = Task("classification", ("image",), "kind", classes=2)


def tree() -> Recipe:
    return Recipe(name="tree", title="Tree", citation="none", estimator="sklearn.tree.DecisionTreeClassifier")


def column(files: list[bytes]) -> np.ndarray:
    result = np.empty(len(files), object)
    result[:] = files
    return result


def test_encoded_pictures_are_numbers_of_one_image_shape():
    files = [picture(number) for number in range(6)]
    train = {"image": column(files), "kind": np.arange(6) % 2}
    encoding = RowEncoding(TASK, train, side=8)
    assert encoding.sizes.shape == (8, 8, 3)
    assert encoding.sizes.numbers == 8 * 8 * 3
    categories, numbers = encoding.inputs(train)
    assert categories.shape == (6, 0)
    scale = decode_images(files, 8).max()
    np.testing.assert_allclose(numbers.numpy(), decode_images(files, 8).reshape(6, -1) / scale, rtol=1e-6)
    again = encoding.inputs({"image": column(files[:2])})[1]
    assert torch.equal(again, numbers[:2])


def test_the_decoder_stands_among_what_a_seed_spent_and_a_second_run_decodes_nothing(cache, monkeypatch):
    train = Rows(image=column([picture(number) for number in range(6)]), kind=np.arange(6) % 2)
    batch = {"image": column([picture(number) for number in range(9)])}

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
    rows = Numbered(image=column(BROKEN), kind=np.arange(8) % 2)
    with pytest.raises(BadData, match=r"^row 00000000000000a5: its image cannot be decoded: "):
        Baseline(made, TASK, 0, "toy/toy").fit(rows, None, Budget())
    full = Numbered(image=column([picture(number) for number in range(8)]), kind=np.arange(8) % 2)
    if made.network:
        with pytest.raises(BadData, match="row 00000000000000a5: "):
            Baseline(made, TASK, 0, "toy/toy").fit(full, rows, Budget())


@pytest.mark.parametrize("made", [recipe("cnn", 3, batch_size=2, side=8), tree()])
def test_a_broken_picture_that_is_asked_about_has_no_answer_and_the_others_have_theirs(cache, made):
    full = Rows(image=column([picture(number) for number in range(8)]), kind=np.arange(8) % 2)
    model = Baseline(made, TASK, 0, "toy/toy")
    model.fit(full, None, Budget())
    clean, result = model.predict(full.only("image")), model.predict({"image": column(BROKEN)})
    here = np.arange(8) != 5
    assert result.status.tolist() == [ANSWERED] * 5 + [FAILED] + [ANSWERED] * 2
    np.testing.assert_array_equal(result.prediction[here], clean.prediction[here])
    np.testing.assert_allclose(result.scores[here], clean.scores[here], atol=1e-6)
    np.testing.assert_allclose(result.scores.sum(axis=1), 1, atol=1e-6)
    nothing = model.predict({"image": column([b"none", b""])})
    assert nothing.status.tolist() == [FAILED, FAILED]
