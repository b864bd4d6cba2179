"""Pictures in folders of one's own: a split, a benchmark and a trained baseline."""

from __future__ import annotations

import numpy as np
import torch
from encoded_files import picture
from farshift.baselines.encoding.encoding import ClassEncoding
from farshift.benchmarks.model import Task
from farshift.loaders.batching.pictures import decoded

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
