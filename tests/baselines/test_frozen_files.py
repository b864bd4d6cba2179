"""Encoded pictures and sounds become features of a frozen encoder through the model's own processor."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_hf
import tiny_vision
import torch
from encoded_files import folder as in_folder
from encoded_files import picture, sound
from farshift.baselines.encoding.frozen import FrozenColumns
from farshift.benchmarks.adapters._transformers import silence_transformers
from farshift.benchmarks.model import Task
from farshift.core.errors import BadData, ModelError
from farshift.loaders.batching.audio import read_samples
from PIL import Image

from .toys import words

pytest.importorskip("transformers")

SEEN = Task("classification", ("image",), "kind", classes=2)
HEARD = Task("classification", ("audio",), "kind", classes=2)


def column(files: list[bytes]) -> Any:
    result = np.empty(len(files), object)
    result[:] = files
    return result


def rows(files: list[bytes], name: str = "image") -> dict[str, Any]:
    return {name: column(files), "kind": np.arange(len(files)) % 2}


@pytest.fixture
def pacs(tmp_path: Path) -> list[bytes]:
    """Pictures as PACS has them: a folder for each domain and class, JPEGs beside PNGs, of several sizes and modes."""
    grey = io.BytesIO()
    Image.fromarray(np.arange(300, dtype=np.uint8).reshape(15, 20)).save(grey, "PNG")
    wide = io.BytesIO()
    Image.fromarray(np.random.default_rng(3).integers(0, 256, (9, 21, 3), np.uint8)).save(wide, "PNG")
    home = in_folder(
        tmp_path / "kfold",
        {
            "photo/dog/1.jpg": picture(1, side=20),
            "sketch/dog/2.png": grey.getvalue(),
            "art_painting/horse/3.png": wide.getvalue(),
            "cartoon/horse/4.jpg": picture(4, side=8),
        },
    )
    return [path.read_bytes() for path in sorted(home.rglob("*.*"))]


def resized(one: Image.Image, short: int) -> Image.Image:
    """The shorter side `short` pixels, the longer one in proportion."""
    width, height = one.size
    sides = (short, int(short * height / width)) if width < height else (int(short * width / height), short)
    return one.resize(sides, Image.Resampling.BICUBIC)


def cut(one: Image.Image, side: int) -> np.ndarray:
    pixels = np.asarray(one)
    top, left = (pixels.shape[0] - side) // 2, (pixels.shape[1] - side) // 2
    return pixels[top : top + side, left : left + side]


def by_hand(content: bytes, kind: str) -> torch.Tensor:
    """What a model's processor does, step by step with Pillow and NumPy."""
    item = Image.open(io.BytesIO(content)).convert("RGB")
    if kind == "vit":
        pixels = np.asarray(item.resize((8, 8), Image.Resampling.BILINEAR))
    elif kind in ("resnet", "convnext"):
        # Under 384 pixels ConvNeXT's processor resizes to size / crop_pct, then cuts the middle out.
        pixels = cut(resized(item, int(8 / 0.8)), 8)
    else:
        pixels = cut(resized(item, 10 if kind == "dinov2" else 9), 8)
    mean, deviation = (np.array(tiny_vision.MOMENTS[name]) for name in ("image_mean", "image_std"))
    return torch.from_numpy(((pixels / 255 - mean) / deviation).transpose(2, 0, 1)).float()


@pytest.mark.parametrize("kind", tiny_vision.SAID)
def test_a_pictures_features_are_those_of_the_models_own_size_crop_and_moments(
    kind: str, tmp_path: Path, pacs: list[bytes]
) -> None:
    encoder = FrozenColumns(str(tiny_vision.saved(tmp_path / kind, kind)), SEEN, rows(pacs))
    result = encoder.columns(rows(pacs))["image"]
    with silence_transformers(), torch.no_grad():
        network = tiny_vision.network(kind).eval()
        network = network.vision_model if kind == "clip" else network
        for features, content in zip(result, pacs, strict=True):
            states = network(pixel_values=by_hand(content, kind)[None]).last_hidden_state[0]
            expected = states.mean(dim=(1, 2)) if states.ndim == 3 else states.mean(dim=0)
            np.testing.assert_allclose(features, expected.numpy(), atol=1e-5)
    assert np.ptp(result, axis=0).max() > 1e-4


def test_a_picture_that_cannot_be_decoded_is_named(tmp_path: Path) -> None:
    encoder = FrozenColumns(str(tiny_vision.saved(tmp_path / "vit", "vit")), SEEN, rows([picture(1)]))
    with pytest.raises(BadData, match="image 1 of 3 cannot be decoded"):
        encoder.columns(rows([picture(1), picture(2)[:200], picture(3)]))


def test_a_sounds_features_are_the_mean_over_its_frames_at_the_models_rate(tmp_path: Path) -> None:
    files = [sound(0), sound(7), sound(300, rate=4000)]
    encoder = FrozenColumns(str(tiny_vision.sounds(tmp_path / "heard")), HEARD, rows(files, "audio"))
    result = encoder.columns(rows(files, "audio"))["audio"]
    from transformers import AutoModel

    with silence_transformers(), torch.no_grad():
        network = AutoModel.from_pretrained(tmp_path / "heard").eval()
        for features, content in zip(result, files, strict=True):
            heard = read_samples(content, 4000, "it")
            heard = np.pad(heard, (0, max(0, 10 - len(heard))))
            normal = (heard - heard.mean()) / np.sqrt(heard.var() + 1e-7)
            states = network(torch.from_numpy(normal)[None]).last_hidden_state[0]
            np.testing.assert_allclose(features, states.mean(dim=0).numpy(), atol=1e-5)
    assert result.shape == (3, 12)


def test_files_that_an_encoder_cannot_read_are_refused(tmp_path: Path) -> None:
    bert = tiny_hf.classifier(tmp_path / "bert")
    with pytest.raises(ModelError, match="reads texts, and the input 'image' is encoded files"):
        FrozenColumns(str(bert), SEEN, rows([picture(1)]))
    vit = tiny_vision.saved(tmp_path / "vit", "vit")
    with pytest.raises(ModelError, match="reads images.*and the input 'image' is text"):
        FrozenColumns(str(vit), SEEN, {"image": words(["walk", "run"])})
    heard = tiny_vision.sounds(tmp_path / "heard")
    encoder = FrozenColumns(str(heard), HEARD, rows([sound(0)], "audio"))
    with pytest.raises(BadData, match="recording 0 of 1 cannot be read as WAV"):
        encoder.columns(rows([picture(1)], "audio"))
