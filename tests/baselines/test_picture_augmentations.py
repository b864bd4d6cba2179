"""Augmentations of a batch of pictures: operations are Pillow's, each row is augmented as it is alone, by what it draws."""

import colorsys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from farshift.baselines.augmentations import (
    _images,
    augmix,
    cutmix,
    domainbed,
    flip_crop,
    mixup,
    randaugment,
    specaugment,
    wilds,
    wilds_rxrx1,
    wilds_strong,
)
from farshift.baselines.augmentations._draws import Draws
from farshift.baselines.replicas.hyperparameters import Hyperparameters
from farshift.core.errors import ModelError
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from .small_pictures import BILINEAR, NEAREST, ROWS, by_pillow, draws, levels, smooth, tensor

FACTOR = torch.linspace(0.1, 1.9, ROWS, dtype=torch.float64)
DEGREES = torch.linspace(-30, 30, ROWS, dtype=torch.float64)
SHEAR = torch.linspace(-0.3, 0.3, ROWS, dtype=torch.float64)
THRESHOLD = torch.linspace(0, 256, ROWS, dtype=torch.float64)
BITS = torch.arange(ROWS) % 8 + 1


def affine(one: Image.Image, place: tuple[float, ...], how: Image.Resampling) -> Image.Image:
    return one.transform(one.size, Image.Transform.AFFINE, place, resample=how)


# What it is, the change to the batch, the change to one picture, and how far their levels may lie apart.
OPERATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Image.Image, int], Image.Image], float]] = {
    "brightness": (
        lambda x: _images.adjust_brightness(x, FACTOR),
        lambda one, n: ImageEnhance.Brightness(one).enhance(float(FACTOR[n])),
        1,
    ),
    "contrast": (
        lambda x: _images.adjust_contrast(x, FACTOR),
        lambda one, n: ImageEnhance.Contrast(one).enhance(float(FACTOR[n])),
        1.5,
    ),
    "colour": (
        lambda x: _images.adjust_colour(x, FACTOR),
        lambda one, n: ImageEnhance.Color(one).enhance(float(FACTOR[n])),
        1.5,
    ),
    "sharpness": (
        lambda x: _images.adjust_sharpness(x, FACTOR),
        lambda one, n: ImageEnhance.Sharpness(one).enhance(float(FACTOR[n])),
        1.5,
    ),
    "autocontrast": (_images.stretch_contrast, lambda one, n: ImageOps.autocontrast(one), 0),
    "equalised": (_images.equalise_histogram, lambda one, n: ImageOps.equalize(one), 0),  # codespell:ignore equalize
    "posterize": (
        lambda x: _images.posterise_images(x, BITS),
        lambda one, n: ImageOps.posterize(one, int(BITS[n])),
        0,
    ),
    "solarize": (
        lambda x: _images.solarise_images(x, THRESHOLD),
        lambda one, n: ImageOps.solarize(one, float(THRESHOLD[n])),  # type: ignore[arg-type]
        0,
    ),
    "rotate": (lambda x: _images.rotate_images(x, DEGREES), lambda one, n: one.rotate(float(DEGREES[n])), 0),
    "rotate, bilinear": (
        lambda x: _images.rotate_images(x, DEGREES, smooth=True),
        lambda one, n: one.rotate(float(DEGREES[n]), resample=BILINEAR),
        1,
    ),
    "shear x": (
        lambda x: _images.apply_affine(x, 1, SHEAR, 0, 0, 1, 0),
        lambda one, n: affine(one, (1, float(SHEAR[n]), 0, 0, 1, 0), NEAREST),
        0,
    ),
    "shear y, bilinear": (
        lambda x: _images.apply_affine(x, 1, 0, 0, SHEAR, 1, 0, smooth=True),
        lambda one, n: affine(one, (1, 0, 0, float(SHEAR[n]), 1, 0), BILINEAR),
        1,
    ),
    "translate x": (
        lambda x: _images.apply_affine(x, 1, 0, 20 * SHEAR, 0, 1, 0),
        lambda one, n: affine(one, (1, 0, 20 * float(SHEAR[n]), 0, 1, 0), NEAREST),
        0,
    ),
    "translate y, bilinear": (
        lambda x: _images.apply_affine(x, 1, 0, 0, 0, 1, 24 * SHEAR, smooth=True),
        lambda one, n: affine(one, (1, 0, 0, 0, 1, 24 * float(SHEAR[n])), BILINEAR),
        1,
    ),
    "grey": (
        lambda x: _images.to_grey(x).expand_as(x),
        lambda one, n: one.convert("L").convert("RGB"),
        1,
    ),
    "flip": (
        lambda x: _images.flip_images(x, torch.arange(ROWS) % 2 == 0),
        lambda one, n: ImageOps.mirror(one) if n % 2 == 0 else one,
        0,
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_a_batch_is_pillow_s_on_each_picture(name: str) -> None:
    batch, single, apart = OPERATIONS[name]
    pictures = smooth()
    gap = np.abs(levels(batch(tensor(pictures))) - by_pillow(pictures, single))
    if apart:
        assert gap.max() <= apart + 1e-3
    else:  # a pixel whose place falls between two may go to either
        assert (gap > 1e-3).mean() < 2e-3


def test_levels_of_one_value_stay() -> None:
    x = torch.full((2, 3, 5, 5), 100 / 255)
    torch.testing.assert_close(_images.stretch_contrast(x), x)
    torch.testing.assert_close(_images.equalise_histogram(x), x)


def test_hue_is_turned_as_colorsys_does() -> None:
    x = tensor(smooth(4, 6, 5)).double()
    turn = torch.tensor([-0.3, 0.0, 0.2, 0.5], dtype=torch.float64)
    result = _images.adjust_hue(x, turn)
    for n in range(4):
        for v in range(6):
            for u in range(5):
                h, s, value = colorsys.rgb_to_hsv(*x[n, :, v, u].tolist())
                expected = colorsys.hsv_to_rgb((h + float(turn[n])) % 1, s, value)
                np.testing.assert_allclose(result[n, :, v, u].numpy(), expected, atol=1e-9)


def test_windows_have_the_areas_and_ratios_that_they_should() -> None:
    top, left, height, width = domainbed.draw_windows(draws(20000), (96, 96), 0.7)
    area, ratio = (height * width).double() / 96**2, width.double() / height.double()
    assert 0.69 < area.min() < 0.71
    assert area.max() <= 1
    assert 0.74 < ratio.min() < ratio.max() < 1.35
    assert abs(float(ratio.log().mean())) < 0.005
    assert ((top >= 0) & (left >= 0) & (top + height <= 96) & (left + width <= 96)).all()
    # Of windows that hardly fit, those that do are no longer uniform: of small ones they are.
    small = domainbed.draw_windows(draws(20000), (96, 96), 0.1, 0.5)
    share = (small[2] * small[3]).double() / 96**2
    assert float(share.mean()) == pytest.approx(0.3, abs=0.005)
    assert float(share.std()) == pytest.approx(0.4 / 12**0.5, abs=0.003)


def test_where_no_window_fits_the_picture_stays() -> None:
    x = torch.rand(3, 1, 40, 4)
    window = domainbed.draw_windows(draws(3), (40, 4), 1.0)
    torch.testing.assert_close(_images.crop_images(x, *window), x)


ALL = {
    item.__name__.rpartition(".")[2]: item
    for item in (augmix, domainbed, flip_crop, randaugment, wilds, wilds_rxrx1, wilds_strong)
}


def defaults(name: str, **more: Any) -> dict[str, Any]:
    return dict(ALL[name].SETTINGS) | more


def test_jitter_draws_its_factors_uniformly_and_its_order_at_random() -> None:
    given = draws(20000)
    bright, contrast, saturation, turn = domainbed.draw_factors(given, 0.3)
    for item in (bright, contrast, saturation):
        assert 0.7 <= item.min() < 0.701
        assert 1.299 < item.max() < 1.3
        assert float(item.std()) == pytest.approx(0.6 / 12**0.5, abs=0.003)
    assert -0.3 <= turn.min() < -0.299
    assert 0.299 < turn.max() < 0.3
    assert abs(float(torch.corrcoef(torch.stack([bright, contrast]))[0, 1])) < 0.03
    _, counts = given.order("order", 4).unique(dim=0, return_counts=True)
    assert len(counts) == 24
    assert counts.min() > 20000 / 24 * 0.85


def test_domainbed_s_is_its_operations_one_after_the_other() -> None:
    """Each picture alone, by Pillow, with the parameters that were drawn."""
    pictures, given = smooth(side := 24, side, side, seed=3), draws(24, **defaults("domainbed"))
    result = levels(domainbed.changed(tensor(pictures), given))
    top, left, height, width = (item.tolist() for item in domainbed.draw_windows(given, (side, side), 0.7))
    flips, greys = given.chance("flip", 0.5).tolist(), given.chance("grey", 0.1).tolist()
    factors = [item.tolist() for item in domainbed.draw_factors(given.named("jitter"), 0.3)]
    order = given.named("jitter").order("order", 4).tolist()

    def one(picture: Image.Image, n: int) -> Image.Image:
        box = (left[n], top[n], left[n] + width[n], top[n] + height[n])
        picture = picture.crop(box).resize((side, side), BILINEAR)
        if flips[n]:
            picture = ImageOps.mirror(picture)
        for number in order[n]:
            if number == 3:
                h, s, v = picture.convert("HSV").split()
                turned = (np.asarray(h, np.int16) + round(factors[3][n] * 255)) % 256
                picture = Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8)), s, v)).convert("RGB")
            else:
                kind = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)[number]
                picture = kind(picture).enhance(factors[number][n])
        return picture.convert("L").convert("RGB") if greys[n] else picture

    gap = np.abs(result - by_pillow(pictures, one))
    assert sum(greys) > 0
    assert np.quantile(gap, 0.99) < 8, "Pillow keeps a hue in 8 bits"
    assert gap.mean() < 2
    colourless = result[np.array(greys)]
    assert np.ptp(colourless, axis=-1).max() == 0


@pytest.mark.parametrize("name", ALL)
def test_a_picture_is_augmented_the_same_alone_or_among_many(name: str) -> None:
    x = tensor(smooth(ROWS, 24, 24))
    settings = defaults(name)
    many = ALL[name].changed(x, draws(**settings))
    for position in range(ROWS):
        alone = ALL[name].changed(x[position : position + 1], draws(1, start=position, **settings))
        assert torch.equal(alone[0], many[position])


@pytest.mark.parametrize("name", ALL)
def test_pictures_stay_within_black_and_white_and_differ_by_step_and_replica(name: str) -> None:
    x, settings = tensor(smooth(ROWS, 24, 24)), defaults(name)
    first = ALL[name].changed(x, draws(**settings))
    assert first.shape == x.shape
    assert first.dtype == x.dtype
    assert first.min() >= 0
    assert first.max() <= 1 + 1e-6
    assert torch.equal(first, ALL[name].changed(x, draws(**settings)))
    assert not torch.equal(first, ALL[name].changed(x, draws(step=1, **settings)))
    assert not torch.equal(first, ALL[name].changed(x, draws(key=8, **settings)))


@pytest.mark.parametrize("name", ["augmix", "domainbed", "randaugment", "wilds_strong"])
def test_pictures_of_one_channel_are_augmented_too(name: str) -> None:
    x = tensor(smooth(ROWS, 24, 24))[:, :1]
    assert ALL[name].changed(x, draws(**defaults(name))).shape == x.shape


def test_a_setting_of_a_replica_is_that_of_its_rows() -> None:
    settings = Hyperparameters(
        [defaults("domainbed", jitter=0.0, crop_least=1.0, grey_chance=0.0), defaults("domainbed")]
    )
    keys, rows = torch.tensor([1, 2]), torch.arange(4).repeat(2, 1)
    given = Draws.of(keys, 0, rows, "0/domainbed", settings)
    x = tensor(smooth(4, 24, 24)).repeat(2, 1, 1, 1)
    result = domainbed.changed(x, given)
    plain = _images.flip_images(x, given.chance("flip", 0.5))
    torch.testing.assert_close(result[:4], plain[:4], atol=1e-5, rtol=0)
    assert (result[4:] - plain[4:]).abs().amax((1, 2, 3)).min() > 0.01


@pytest.mark.parametrize(("module", "count"), [(randaugment, 14), (wilds_strong, 14)])
def test_operations_are_drawn_evenly(module: Any, count: int) -> None:
    assert len(module.OPERATIONS) == count
    which = draws(28000).named("operation 0").below("operation", count)
    assert torch.bincount(which).min() > 1850
    assert torch.bincount(which).max() < 2150


def test_the_magnitude_turns_a_picture_as_far_as_it_says() -> None:
    x = tensor(smooth())
    own = draws(operations=1, magnitude=5.0)
    rotate = randaugment.OPERATIONS[3]
    degrees = torch.where(own.chance("direction", 0.5), 15.0, -15.0)
    assert torch.equal(rotate(x, own), _images.rotate_images(x, degrees))
    assert len(degrees.unique()) == 2


def test_a_rectangle_of_wilds_is_the_one_that_pillow_draws() -> None:
    from PIL import ImageDraw

    given, black = draws(200), np.zeros((200, 32, 32, 3), np.uint8)
    result = levels(wilds_strong.cut_out(tensor(black), given))
    side = (given.uniform("side", 0, 0.5) * 32).tolist()
    middle = [given.uniform(f"middle {axis}", 0, 32).tolist() for axis in "xy"]

    def one(picture: Image.Image, n: int) -> Image.Image:
        x0, y0 = (int(max(0, at[n] - side[n] / 2)) for at in middle)
        corner = (x0, y0, min(32, x0 + side[n]), min(32, y0 + side[n]))
        ImageDraw.Draw(picture).rectangle(corner, (125, 123, 114))
        return picture

    gap = np.abs(result - by_pillow(black, one)).max((1, 2, 3))
    assert (gap > 0.01).mean() < 0.02


def test_augmix_is_the_mixture_of_its_chains() -> None:
    x, given = tensor(smooth()), draws(**defaults("augmix", chain_depth=1))
    result = augmix.changed(x, given)
    share = augmix.draw_chain_weights(given, 3)
    torch.testing.assert_close(share.sum(1), torch.ones(ROWS, dtype=torch.float64))
    stored = given.uniform("kept")
    expected = torch.zeros_like(x)
    for n in range(ROWS):
        for chain in range(3):
            at = given.named(f"chain {chain}").named("operation 0").picked(torch.tensor([n]))
            operation = augmix.OPERATIONS[int(at.below("operation", 9))]
            expected[n] += float(share[n, chain]) * operation(x[n : n + 1], at)[0]
        expected[n] = float(stored[n]) * x[n] + (1 - float(stored[n])) * expected[n]
    torch.testing.assert_close(result, expected)


def test_augmix_s_weights_and_depths_are_those_of_its_distributions() -> None:
    given = draws(30000)
    share = augmix.draw_chain_weights(given, 3)
    # Each of Dirichlet(1, 1, 1) is Beta(1, 2).
    assert share.mean(0).tolist() == pytest.approx([1 / 3] * 3, abs=0.01)
    assert share.var(0).tolist() == pytest.approx([1 / 18] * 3, abs=0.002)
    level = augmix.draw_level(draws(30000, **defaults("augmix")), 10)
    assert 0.1 <= level.min() < 0.101
    assert 2.999 < level.max() < 3
    assert torch.bincount(given.named("chain 0").below("depth", 3)).tolist() == pytest.approx([10000] * 3, rel=0.03)


def test_turns_of_cells_are_numpy_s() -> None:
    x, given = tensor(smooth(24, 16, 16)), draws(24)
    quarters, flips = given.below("quarters", 4), given.chance("flip", 0.5)
    result = wilds_rxrx1.changed(x, given)
    for n in range(24):
        turned = np.rot90(x[n].numpy(), int(quarters[n]), (1, 2))
        assert np.array_equal(result[n].numpy(), turned[..., ::-1] if flips[n] else turned)
    assert len(quarters.unique()) == 4
    with pytest.raises(ModelError, match="it needs square images, and these are 4 x 5"):
        wilds_rxrx1.changed(torch.zeros(1, 3, 4, 5), draws(1))


def test_shifts_are_windows_of_a_picture_with_a_black_border() -> None:
    x, given = tensor(smooth(200, 16, 16)), draws(200, shift=0.125)
    result = flip_crop.changed(x, given)
    padded = torch.nn.functional.pad(_images.flip_images(x, given.chance("flip", 0.5)), (2, 2, 2, 2))
    down, across = (given.below(name, 5) for name in ("down", "across"))
    for n in range(200):
        v, u = int(down[n]), int(across[n])
        assert torch.equal(result[n], padded[n, :, v : v + 16, u : u + 16])
    assert len(down.unique()) == len(across.unique()) == 5


def test_a_wilds_window_has_the_share_that_is_asked() -> None:
    x, given = tensor(smooth(ROWS, 24, 24)), draws(wilds_crop=0.75)
    result = wilds.changed(x, given)
    top, left = (given.below(name, 7) for name in ("top", "left"))
    flip = _images.flip_images(x, given.chance("flip", 0.5))
    for n in range(ROWS):
        v, u = int(top[n]), int(left[n])
        item = Image.fromarray((levels(flip)[n]).round().astype(np.uint8)).crop((u, v, u + 18, v + 18))
        assert np.abs(levels(result)[n] - np.asarray(item.resize((24, 24), BILINEAR), float)).max() <= 1.001


def test_mixup_is_a_line_between_a_row_and_its_partner() -> None:
    x = torch.rand(2, 6, 5)
    given = Draws.of(
        torch.tensor([3, 4]),
        0,
        torch.zeros(2, 1, dtype=torch.int64),
        "0/mixup",
        Hyperparameters([{"mixup_alpha": 0.4}, {"mixup_alpha": 2.0}]),
    )
    result, partner, share = mixup.mixed(x, given)
    for replica in range(2):
        assert sorted(partner[replica].tolist()) == list(range(6))
        assert len(share[replica].unique()) == 1
        for n in range(6):
            stored = float(share[replica, n])
            expected = stored * x[replica, n] + (1 - stored) * x[replica, int(partner[replica, n])]
            torch.testing.assert_close(result[replica, n], expected)


@pytest.mark.parametrize(("module", "setting"), [(mixup, "mixup_alpha"), (cutmix, "cutmix_alpha")])
def test_shares_are_drawn_from_the_beta_distribution(module: Any, setting: str) -> None:
    from farshift.baselines.augmentations.mixup import draw_beta_shares

    given = draws(4000, **{setting: 0.5})
    share = draw_beta_shares(given, setting)
    assert float(share.mean()) == pytest.approx(0.5, abs=0.02)
    assert float(share.var()) == pytest.approx(0.125, abs=0.01)
    with pytest.raises(ModelError, match=f"{setting} = 0: use a number above 0"):
        draw_beta_shares(draws(1, **{setting: 0.0}), setting)


def test_cutmix_pastes_a_rectangle_whose_area_is_the_labels_share() -> None:
    seen = []
    for key in range(60):
        given = Draws.of(
            torch.tensor([key]),
            0,
            torch.zeros(1, 1, dtype=torch.int64),
            "0/cutmix",
            Hyperparameters([dict(cutmix.SETTINGS)]),
        )
        x = torch.arange(5.0).view(1, 5, 1, 1, 1).expand(1, 5, 2, 20, 30)
        result, partner, share = cutmix.mixed(x, given)
        for n in range(5):
            other = result[0, n, 0] == partner[0, n]
            if int(partner[0, n]) != n:
                assert float(1 - other.double().mean()) == pytest.approx(float(share[0, n]))
                rows, columns = other.any(1).nonzero(), other.any(0).nonzero()
                area = len(rows) * len(columns)
                assert area == int(other.sum()), "it is a rectangle"
        seen.append(float(share[0, 0]))
    assert np.mean(seen) > 0.5, "what lies outside the picture is cut off"
    assert len(set(seen)) > 20


def test_a_batch_is_mixed_as_often_as_is_said() -> None:
    given = draws(4000, cutmix_alpha=1.0, cutmix_chance=0.5)
    top, left, bottom, right = cutmix.draw_rectangle(given, 64, 64)
    assert float(((bottom - top) * (right - left) == 0).double().mean()) == pytest.approx(0.5, abs=0.05)


SPECTROGRAMS: dict[str, Any] = dict(specaugment.SETTINGS) | {"time_warp": 5, "frequency_width": 4, "time_width": 9}


def test_bands_are_blanked_to_the_mean_and_no_wider_than_they_may_be() -> None:
    x = torch.rand(300, 40, 16)
    settings = SPECTROGRAMS | {"time_warp": 0, "frequency_bands": 1, "time_bands": 1}
    result = specaugment.changed(x, draws(300, **settings))
    blank = result != x
    mean = x.double().mean((1, 2)).float()
    torch.testing.assert_close(result[blank], mean[:, None, None].expand_as(x)[blank])
    frequency, time = blank.all(1).sum(1), blank.all(2).sum(1)
    assert frequency.min() == 0
    assert frequency.max() == 4
    assert time.max() == 9
    assert torch.bincount(frequency, minlength=5).min() > 35, "every width from 0 to the largest is as likely"
    narrow = specaugment.changed(x, draws(300, **(settings | {"time_share": 0.1})))
    assert (narrow != x).all(2).sum(1).max() == 4


def test_time_is_bent_about_one_point() -> None:
    line = torch.arange(40.0)[None, :, None].expand(200, 40, 3)
    result = specaugment.warp_time(line, draws(200), 5)
    assert (result[:, 0] == 0).all()
    assert (result[:, -1] == 39).all()
    steps = result[:, 1:, 0] - result[:, :-1, 0]
    assert steps.min() > 0
    assert all(len(item.round(decimals=3).unique()) <= 3 for item in steps), "two slopes, and the step where they meet"
    assert 3 < (result - line).abs().amax((1, 2)).max() < 5


def test_a_spectrogram_is_augmented_the_same_alone_or_among_many() -> None:
    x = torch.rand(8, 30, 12)
    many = specaugment.changed(x, draws(8, **SPECTROGRAMS))
    for n in range(8):
        assert torch.equal(specaugment.changed(x[n : n + 1], draws(1, start=n, **SPECTROGRAMS))[0], many[n])
