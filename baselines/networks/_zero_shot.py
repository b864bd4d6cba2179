"""CLIP's zero-shot classifier as the weights of a linear head over features of length 1."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from ...benchmarks.adapters.clip import compute_text_features, load_clip_model, parse_templates
from ...core.errors import ModelError
from ..encoding.checkpoint import find_folder


def make_zero_shot_head(weights: str, names: tuple[str, ...], templates: str) -> Tensor:
    """Weights (1, classes, d) whose products with an image's features are CLIP's logits. `ModelError` for classes
    without names, and for weights that are not CLIP's."""
    if not names:
        raise ModelError("setting head = 'zero-shot': the classes of this benchmark have no names: use head = 'zero'")
    checkpoint = find_folder(weights)
    return _build_head(checkpoint.folder, checkpoint.digest, names, parse_templates(templates))


@lru_cache(maxsize=4)
def _build_head(folder: Path, code: str, names: tuple[str, ...], templates: tuple[str, ...]) -> Tensor:
    """The head for the weights of a folder whose digest is `code`, computed once for all replicas of a process."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        network = load_clip_model(folder, "CLIPModel", torch.float32)
        scaled: Tensor = network.logit_scale.exp() * compute_text_features(network, folder, names, templates)
        return scaled[None]
