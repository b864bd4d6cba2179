"""The format of MNIST and Fashion-MNIST."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.readers.digits import idx as read
from farshift.loaders.readers.digits import read_idx
from idx_files import digits, idx

OPTIONS = {"image": "image", "label": "digit", "origin": "published"}


def test_images_labels_and_the_published_part_are_read_zipped_or_not(tmp_path):
    files = digits(tmp_path, 20, "a") | digits(tmp_path, 10, "b", zipped=True)
    parts = {"train": ["a-images", "a-labels"], "test": ["b-images", "b-labels"]}
    table = read(files, **OPTIONS, parts=parts)
    assert Counter(table["published"].to_pylist()) == {"train": 20, "test": 10}
    assert table["digit"].to_pylist() == [*range(10), *range(10), *range(10)]
    raw = np.frombuffer(files["a-images"].read_bytes()[16:], np.uint8).reshape(20, 784)
    assert (np.array(table["image"].to_pylist()[:20]) == raw).all()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not an IDX file"),
        (b"PK\x03\x04", "not an IDX file"),
        (b"\0\0\x0d\x01\0\0\0\x01\0", "not an IDX file of unsigned bytes"),
        (idx(np.zeros((3, 2), np.uint8))[:-1], "says 3x2 values, but it holds 5"),
        (idx(np.zeros((3, 2), np.uint8)) + b"\0", "says 3x2 values, but it holds 7"),
        (b"\0\0\x08\x03\0\0\0\x01", "header says"),
        (b"\x1f\x8b\x08\0", "cannot be read, or is cut off"),
    ],
)
def test_a_file_that_is_no_idx_file_is_refused(tmp_path, content, complaint):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(BadData, match=f"x.*{complaint}"):
        read_idx("x", tmp_path / "x")


def test_images_without_their_labels_are_refused(tmp_path):
    files = digits(tmp_path, 20, "a") | digits(tmp_path, 10, "b")
    with pytest.raises(BadData, match=r"a-images holds \(20, 28, 28\), b-labels \(10,\)"):
        read(files, **OPTIONS, parts={"train": ["a-images", "b-labels"]})
    with pytest.raises(BadDefinition, match="no file c-labels"):
        read(files, **OPTIONS, parts={"train": ["a-images", "c-labels"]})
