"""Pictures whose shape and texture are of two things, and their source's own definition."""

from __future__ import annotations

import pytest
from farshift.core.errors import BadData
from farshift.loaders.acquire.archive_files import open_archive
from farshift.loaders.acquire.source import find_source
from farshift.loaders.readers.image_sets import cue_conflict
from twins import laid, picture

FILES = {
    "edges/dog/dog1.png": picture(1),
    "filled-silhouettes/airplane/airplane10.png": picture(2),
    "style-transfer-preprocessed-512/dog/dog1-airplane3.png": picture(3),
    "style-transfer-preprocessed-512/dog/dog2-dog3.png": picture(4),
}


def rows(folder, files):
    laid(folder, files)
    (distribution,) = find_source("texture_shape").definition.distributions
    trees = {pin.name: open_archive(folder / pin.name) for pin in distribution.trees}
    tables = list(cue_conflict(trees, **distribution.options))
    return [row for table in tables for row in table.to_pylist()]


def test_a_picture_has_the_label_of_its_shape_and_the_name_of_its_texture(tmp_path):
    result = {(row["kind"], row["shape"], row["texture"], row["photograph"]) for row in rows(tmp_path, FILES)}
    assert result == {
        ("edges", 10, "none", "dog1"),
        ("silhouettes", 0, "none", "airplane10"),
        ("cue conflict", 10, "airplane", "dog1"),
        ("no conflict", 10, "dog", "dog2"),
    }


@pytest.mark.parametrize(
    "name",
    [
        "edges/dog/cat1.png",
        "edges/wolf/wolf1.png",
        "style-transfer-preprocessed-512/dog/dog1.png",
        "style-transfer-preprocessed-512/dog/dog1-wolf2.png",
    ],
)
def test_a_picture_of_nothing_that_is_known_is_named(tmp_path, name):
    with pytest.raises(BadData, match=f"{name.partition('/')[2]} is not an image of one of airplane"):
        rows(tmp_path, FILES | {name: picture(5)})
