"""Small pictures, drawn by a formula, and Pillow's change of each of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from farshift.baselines.augmentations._draws import Draws
from farshift.baselines.replicas.hyperparameters import Hyperparameters
from PIL import Image
from torch import Tensor

ROWS = 12
NEAREST, BILINEAR = Image.Resampling.NEAREST, Image.Resampling.BILINEAR


def smooth(count: int = ROWS, height: int = 24, width: int = 20, seed: int = 0) -> np.ndarray:
    """Pictures (n, height, width, 3) of waves and blots, uint8: no two alike."""
    draw = np.random.default_rng(seed)
    v, u = np.mgrid[:height, :width]
    result = np.zeros((count, height, width, 3))
    for channel in range(3):
        a, b, c = draw.uniform(0.05, 0.5, (3, count, 1, 1))
        result[..., channel] = 128 + 90 * np.sin(a * u + b * v + 9 * c) + draw.integers(-30, 30, (count, 1, 1))
    result[:, 4:9, 3:8] = draw.integers(0, 256, (count, 1, 1, 3))
    return result.clip(0, 255).astype(np.uint8)


def tensor(pictures: np.ndarray) -> Tensor:
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).to(torch.float32).div(torch.tensor(255.0))


def levels(x: Tensor) -> np.ndarray:
    return (x.permute(0, 2, 3, 1).double() * 255).numpy()


def draws(rows: int = ROWS, step: int = 0, key: int = 7, start: int = 0, **settings: Any) -> Draws:
    places = torch.arange(start, start + rows)[None]
    return Draws.of(torch.tensor([key]), step, places, "0/test", Hyperparameters([settings or {"x": 1.0}]))


def by_pillow(pictures: np.ndarray, change: Callable[[Image.Image, int], Image.Image]) -> np.ndarray:
    return np.stack(
        [np.asarray(change(Image.fromarray(item), position)) for position, item in enumerate(pictures)]
    ).astype(float)
