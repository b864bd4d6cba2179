"""MNIST: its files, and what is drawn from it: colours that mislead, turned digits, dominoes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.acquire.source import find_source
from farshift.loaders.readers.digits import coloured_digits, dominoes, read_idx, rotate_images, rotated_digits
from farshift.loaders.readers.digits import idx as read
from hypothesis import given
from hypothesis import strategies as st
from idx_files import digits, idx
from scipy import ndimage

PAIR = ["some-images", "some-labels"]


def pixels(table, *shape: int):
    return table["image"].combine_chunks().flatten().to_numpy().reshape(-1, *shape)


def coloured(tmp_path, count: int = 4000, stride: int = 2, side: int = 8, **changes):
    options = {"pairs": [PAIR], "noise": 0.25, "stride": stride, "seed": "s"}
    options["deals"] = [
        {"rows": [0, count // 2], "environments": {"20 %": 0.2, "10 %": 0.1}},
        {"rows": [count // 2, count], "take": 900, "environments": {"90 %": 0.9}},
    ]
    return coloured_digits(digits(tmp_path, count, side=side), **(options | changes))


def test_label_and_colour_are_wrong_at_the_rates_of_their_environment(tmp_path):
    table = coloured(tmp_path, 20000, side=2)
    digit, label = np.array(table["digit"]), np.array(table["label"])
    green, environment = np.array(table["colour"]) == "green", np.array(table["environment"])
    assert Counter(environment.tolist()) == {"20 %": 5000, "10 %": 5000, "90 %": 900}
    assert abs(((digit < 5) != label).mean() - 0.25) < 0.02
    for name, rate in (("20 %", 0.2), ("10 %", 0.1), ("90 %", 0.9)):
        rows = environment == name
        assert abs((green != label)[rows].mean() - rate) < 0.035, name
        # The colour knows of the label, not of the digit: given the label it says nothing more.
        wrong = rows & ((digit < 5) != label)
        assert abs((green != label)[wrong].mean() - rate) < 0.08, name


def test_a_colour_is_the_one_channel_that_has_the_digit(tmp_path):
    table = coloured(tmp_path, 100, deals=[{"rows": [0, 100], "environments": {"even": 0.5}}])
    inks = pixels(table, 2, 4, 4)
    green = np.array(table["colour"]) == "green"
    assert (inks[green, 0] == 0).all()
    assert (inks[~green, 1] == 0).all()
    assert 0 < green.sum() < 100
    grey = inks.max(1)
    raw = np.frombuffer((tmp_path / "some-images").read_bytes()[16:], np.uint8).reshape(100, 8, 8)[:, ::2, ::2]
    assert Counter(x.tobytes() for x in grey) == Counter(x.tobytes() for x in np.ascontiguousarray(raw))


def test_no_image_is_dealt_out_twice_and_a_smaller_take_is_part_of_a_larger_one(tmp_path):
    def deal(take: int):
        deals = [{"rows": [0, 300], "take": take, "environments": {"a": 0.1, "b": 0.2, "c": 0.9}}]
        return coloured(tmp_path, 300, stride=1, deals=deals)

    def rows(table):
        names = zip(pixels(table, 2, 64), table["label"].to_pylist(), table["environment"].to_pylist(), strict=True)
        return {(image.tobytes(), label, name) for image, label, name in names}

    small, large = rows(deal(60)), rows(deal(300))
    assert len(large) == 300
    assert small < large


def test_places_beyond_the_images_are_refused(tmp_path):
    with pytest.raises(BadDefinition, match="there are 100 images"):
        coloured(tmp_path, 100, deals=[{"rows": [0, 101], "environments": {"a": 0.5}}])


IMAGE = np.random.default_rng(0).integers(0, 256, (2, 28, 28), dtype=np.uint8)


@pytest.mark.parametrize("angle", [15, 30, 45, 60, 75, -20, 100])
def test_a_turn_is_that_of_scipy_within_one_grey_level(angle):
    expected = ndimage.rotate(IMAGE.astype(float), angle, axes=(2, 1), reshape=False, order=1, prefilter=False)
    # SciPy's sense depends on the order of the axes: counter-clockwise is the quarter turn that numpy.rot90 makes.
    quarter = ndimage.rotate(IMAGE.astype(float), 90, axes=(2, 1), reshape=False, order=1)
    if not np.allclose(quarter, np.rot90(IMAGE, axes=(1, 2)), atol=1e-6):
        expected = ndimage.rotate(IMAGE.astype(float), -angle, axes=(2, 1), reshape=False, order=1, prefilter=False)
    inside = np.hypot(*np.meshgrid(np.arange(28) - 13.5, np.arange(28) - 13.5)) < 12
    difference = np.abs(rotate_images(IMAGE, angle) - expected)[:, inside]
    assert difference.max() <= 1


@given(st.integers(-4, 4), st.integers(1, 3).map(lambda half: 2 * half + 1))
def test_quarter_turns_are_exact(quarters, side):
    image = np.arange(side * side, dtype=np.uint8).reshape(1, side, side)
    assert (rotate_images(image, 90 * quarters) == np.rot90(image, quarters, axes=(1, 2))).all()


def test_no_turn_leaves_a_digit_and_each_angle_has_as_many(tmp_path):
    files = digits(tmp_path, 60)
    table = rotated_digits(files, pairs=[PAIR], angles=[0, 15, 75], take=30, seed="s")
    assert Counter(table["angle"].to_pylist()) == {"0": 10, "15": 10, "75": 10}
    raw = np.frombuffer(files["some-images"].read_bytes()[16:], np.uint8).reshape(60, 28, 28)
    known = {image.tobytes(): number % 10 for number, image in enumerate(raw)}
    rows = zip(pixels(table, 28, 28), table["digit"].to_pylist(), table["angle"].to_pylist(), strict=True)
    upright = [(image.tobytes(), digit) for image, digit, angle in rows if angle == "0"]
    assert len({image for image, _ in upright}) == 10
    assert all(known[image] == digit for image, digit in upright)
    with pytest.raises(BadDefinition, match="take = 61, but there are 60 images"):
        rotated_digits(files, pairs=[PAIR], angles=[0], take=61, seed="s")


def test_dominoes_have_the_label_of_the_lower_half_and_each_pair_of_classes_equally_often(tmp_path):
    files = digits(tmp_path, 400, "up", side=4) | digits(tmp_path, 300, "down", side=4)
    upper = {"pair": ["up-images", "up-labels"], "classes": {"zero": 0, "one": 1}}
    lower = {"pair": ["down-images", "down-labels"], "classes": {"dress": 3, "coat": 4}}
    table = dominoes(files, upper=upper, lower=lower, rows=60, seed="s")
    pairs = Counter(zip(table["label"].to_pylist(), table["above"].to_pylist(), strict=True))
    assert pairs == {(label, above): 15 for label in (0, 1) for above in ("zero", "one")}
    halves = pixels(table, 2, 4, 4)
    for half, name, classes in ((0, "up", {"zero": 0, "one": 1}), (1, "down", {0: 3, 1: 4})):
        raw = np.frombuffer(files[f"{name}-images"].read_bytes()[16:], np.uint8).reshape(-1, 4, 4)
        number = {image.tobytes(): position for position, image in enumerate(raw)}
        used = [number[image.tobytes()] for image in halves[:, half]]
        assert len(set(used)) == 60, "no picture twice"
        output = table["above" if half == 0 else "label"].to_pylist()
        assert [position % 10 for position in used] == [classes[value] for value in output]
    with pytest.raises(BadDefinition, match="images of dress are needed, but there are 30"):
        dominoes(files, upper=upper, lower=lower, rows=64, seed="s")
    with pytest.raises(BadDefinition, match="a multiple of 4"):
        dominoes(files, upper=upper, lower=lower, rows=62, seed="s")


@pytest.mark.parametrize(
    "name", ["colored_mnist_irm", "colored_mnist", "colored_mnist_even", "rotated_mnist", "dominoes"]
)
def test_a_derived_source_is_made_of_the_files_that_mnist_pins(name):
    def pins(source: str) -> set[tuple[str, int]]:
        files = [pin for item in find_source(source).definition.distributions for pin in item.files]
        return {(pin.sha256, pin.bytes) for pin in files}

    assert pins(name)
    assert pins(name) <= pins("mnist") | pins("fashion_mnist")


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
