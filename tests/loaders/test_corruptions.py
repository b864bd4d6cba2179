"""Common corruptions: the pixels of the reference implementation, the same for a picture wherever it stands."""

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from farshift.core.errors import BadData, BadDefinition, Unavailable, UnknownName
from farshift.loaders.corrupt import BENCHMARK, SEVERITIES, VALIDATION, corrupt
from farshift.loaders.corruptions import weather
from farshift.loaders.corruptions._draws import Draws, _compute_normal_quantiles
from farshift.loaders.corruptions.noise import draw_grains

REFERENCE = json.loads((Path(__file__).parent / "corruption_reference.json").read_text("utf-8"))
"""What hendrycks/robustness (commit 8190fe3, with OpenCV 4.8.1, scikit-image 0.22, SciPy 1.11, Pillow 10.4, ImageMagick
6.9.11) made of `made_up(32)` and `made_up(224)` when it was given the same random numbers (row id 2019): for each
severity the mean, the deviation, and eight pixels. For `saturate` and `brightness` and wherever a value is a whole
number but for a rounding error, the reference cuts off one more."""

NAMES = tuple(name for name in (*BENCHMARK, *VALIDATION) if name != "frost")
RANDOM = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "glass_blur",
    "motion_blur",
    "snow",
    "fog",
    "elastic_transform",
    "speckle_noise",
    "spatter",
)
LARGEST = {"elastic_transform": 4}
"""The largest difference of a pixel, where it is not 1."""


def made_up(side):
    """A coloured picture of gradients, waves and a disk, of 0..255, shape (side, side, 3)."""
    y, x = np.mgrid[:side, :side] * 224 // side
    red, green = x * 255 // 223, (y * y // 97 + x * 3) % 256
    blue = np.where((x - 120) ** 2 + (y - 90) ** 2 < 3600, 220, 40) + (x * 7 + y * 13) % 32
    return np.stack([red, green, blue], axis=-1).astype(np.uint8)


@pytest.mark.parametrize("side", [32, 224])
@pytest.mark.parametrize("name", NAMES)
def test_pixels_are_those_of_the_reference(name, side):
    step = side // 8
    for severity, (mean, deviation, *pixels) in zip(SEVERITIES, REFERENCE[name][str(side)], strict=True):
        built = corrupt(made_up(side)[None], name, severity, np.array([2019], np.uint64))[0]
        assert built.mean() == pytest.approx(mean, abs=0.3) and built.std() == pytest.approx(deviation, abs=0.3)
        chosen = built[step // 2 :: step * 2, step // 2 :: step * 2].reshape(-1)[::6].astype(int)
        assert np.abs(chosen - pixels).max() <= LARGEST.get(name, 1)


def test_bytes_are_the_same_on_every_machine():
    result = sha256()
    for name in NAMES:
        for severity in (1, 5):
            result.update(corrupt(made_up(32)[None], name, severity, np.array([7], np.uint64)).tobytes())
    assert result.hexdigest() == "8cc9d8591698084795e0d1e1e7d8910df846498a7c8df5e163a4f04dd9ce5523"


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_corrupted_alike_alone_or_among_many(name):
    pictures = np.stack([made_up(32), made_up(32)[::-1], made_up(32)[:, ::-1]])
    ids = np.array([5, 2**63, 99], np.uint64)
    together = corrupt(pictures, name, 4, ids)
    assert together.shape == pictures.shape and together.dtype == np.uint8
    for row in range(3):
        assert (corrupt(pictures[row : row + 1], name, 4, ids[row : row + 1])[0] == together[row]).all()
    assert (corrupt(pictures[::-1], name, 4, ids[::-1])[::-1] == together).all()


@pytest.mark.parametrize("name", RANDOM)
def test_another_row_id_draws_other_numbers(name):
    twice = np.stack([made_up(32)] * 2)
    first, second = corrupt(twice, name, 5, np.array([1, 2], np.uint64))
    assert (first != second).any()


@pytest.mark.parametrize("side", [28, 96])
@pytest.mark.parametrize("name", NAMES)
def test_grey_pictures_keep_their_one_channel(name, side):
    grey = made_up(side)[None, ..., :1]
    ids = np.array([3], np.uint64)
    built = corrupt(grey, name, 3, ids)
    assert built.shape == grey.shape
    assert (corrupt(grey[..., 0], name, 3, ids) == built[..., 0]).all()
    if name in ("contrast", "fog", "gaussian_blur", "motion_blur", "pixelate", "brightness", "elastic_transform"):
        coloured = corrupt(np.repeat(grey, 3, axis=-1), name, 3, ids)
        assert (coloured == built).all()


@pytest.mark.parametrize("name", NAMES)
def test_pictures_need_not_be_square(name):
    assert corrupt(made_up(96)[None, :40], name, 2, np.array([3], np.uint64)).shape == (1, 40, 96, 3)


def test_normal_numbers_are_normal():
    from scipy import stats

    drawn = Draws(np.arange(20, dtype=np.uint64), "test").normal("z", 1000).ravel()
    assert stats.kstest(drawn, "norm").pvalue > 0.01
    assert np.abs(stats.norm.cdf(_compute_normal_quantiles()) - (np.arange(65536) + 0.5) / 65536).max() < 2**-17
    assert abs(_compute_normal_quantiles().var() - 1) < 1e-4


def test_grains_have_the_poisson_distribution():
    from scipy import stats

    picture = made_up(32)[None]
    for white in (500, 60, 3):
        chance = (Draws(np.zeros(1, np.uint64), "test").bits("grains", *picture.shape[1:]) >> np.uint64(32)) / 2**32
        expected = stats.poisson.ppf(chance + 2.0**-34, picture / 255 * white)
        drawn = draw_grains(picture, white, Draws(np.zeros(1, np.uint64), "test"))
        assert (drawn == np.maximum(expected, 0)).all()


def test_frost_lays_a_photograph_over_the_picture(monkeypatch):
    photographs = [np.full((300, 400, 3), 10 * number, np.uint8) for number in range(5)]
    monkeypatch.setattr(weather, "_load_photograph", photographs.__getitem__)
    pictures, ids = np.full((40, 32, 32, 3), 100, np.uint8), np.arange(40, dtype=np.uint64)
    assert {*corrupt(pictures, "frost", 3, ids).ravel().tolist()} == {90, 94, 98, 102, 106}
    assert {*corrupt(pictures[..., 0], "frost", 3, ids).ravel().tolist()} == {90, 94, 98, 102, 106}
    with pytest.raises(BadData, match="images of 300x300 pixels are larger than the photographs of frost"):
        corrupt(np.zeros((1, 300, 300, 3), np.uint8), "frost", 1, ids[:1])


def test_frost_says_which_photograph_is_absent(monkeypatch, tmp_path):
    monkeypatch.setenv("FARSHIFT_CACHE", str(tmp_path))
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    with pytest.raises(Unavailable, match=r"frost1\.png is not available.*FARSHIFT_MIRRORS"):
        corrupt(np.zeros((1, 32, 32, 3), np.uint8), "frost", 1, np.zeros(1, np.uint64))


def test_what_is_no_picture_is_refused():
    ids = np.zeros(1, np.uint64)
    with pytest.raises(BadDefinition, match="severity = 6: severities are 1 to 5"):
        corrupt(made_up(32)[None], "fog", 6, ids)
    with pytest.raises(BadData, match="is not an array of images"):
        corrupt(made_up(32)[None].astype(float), "fog", 1, ids)
    with pytest.raises(BadData, match="2 row ids for 1 images"):
        corrupt(made_up(32)[None], "fog", 1, np.zeros(2, np.uint64))
    with pytest.raises(UnknownName, match="'smog'"):
        corrupt(made_up(32)[None], "smog", 1, ids)
