"""Pictures in folders of one's own: a split, a benchmark and a trained baseline."""

from __future__ import annotations

import numpy as np
import torch
from encoded_files import picture
from farshift.baselines.baseline import Baseline
from farshift.baselines.encoding.encoding import ClassEncoding
from farshift.benchmarks.model import Budget, Task
from farshift.loaders.batching import pixels
from farshift.loaders.batching.pictures import decoded
from farshift.loaders.decoders import decoder

from .toys import Rows, recipe

TASK = Task("classification", ("image",), "kind", classes=2)


def column(files: list[bytes]) -> np.ndarray:
    found = np.empty(len(files), object)
    found[:] = files
    return found


def test_encoded_pictures_are_numbers_of_one_image_shape():
    files = [picture(number) for number in range(6)]
    train = {"image": column(files), "kind": np.arange(6) % 2}
    encoding = ClassEncoding(TASK, train, side=8)
    assert encoding.sizes.shape == (8, 8, 3)
    assert encoding.sizes.numbers == 8 * 8 * 3
    categories, numbers = encoding.inputs(train)
    assert categories.shape == (6, 0)
    scale = decoded(files, 8).max()
    np.testing.assert_allclose(numbers.numpy(), decoded(files, 8).reshape(6, -1) / scale, rtol=1e-6)
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
    assert remarks["decoder"] == decoder().version

    def never(*_: object) -> None:
        raise AssertionError("decoded again")

    monkeypatch.setattr(pixels, "decoded_pieces", never)
    np.testing.assert_array_equal(run()[1], scores)
