"""Pretrained image networks of other packages, which are imported when they are named: `timm:NAME`, `open_clip:NAME`
(or `NAME@PRETRAINED`) and `torchvision:NAME`. Each package downloads and caches its weights itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from torch import nn

from ...benchmarks.parsing import wrap_user_errors
from ...core.errors import FarshiftError


def _import_library(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise FarshiftError(f"weights {name}:..: the package {package} cannot be imported: pip install it") from error


def _describe(resize: int, interpolation: str, crop: int, mean: Iterable[float], deviation: Iterable[float]) -> str:
    moments = " / ".join(" ".join(f"{float(value):.17f}" for value in values) for values in (mean, deviation))
    return f"resize {resize} {interpolation}, crop {crop}, normalise {moments}"


def _load_timm(name: str) -> tuple[nn.Module, str]:
    """A network of timm without its head, with the preprocessing of its weights."""
    timm = _import_library("timm", "timm")
    with wrap_user_errors(f"loading timm:{name}"):
        module = timm.create_model(name, pretrained=True, num_classes=0)
        data = timm.data.resolve_model_data_config(module)
    side = data["input_size"][-1]
    resize = int(side / data["crop_pct"])
    return module, _describe(resize, data["interpolation"], side, data["mean"], data["std"])


def _load_open_clip(name: str) -> tuple[nn.Module, str]:
    """The image encoder of a CLIP model."""
    library = _import_library("open_clip", "open-clip-torch")
    architecture, _, tag = name.partition("@")
    with wrap_user_errors(f"loading open_clip:{name}"):
        tags = library.list_pretrained_tags_by_model(architecture)
        if (tag or not tags) and tag not in tags:
            raise FarshiftError(f"open_clip:{name}: name its weights, NAME@{'|'.join(tags) or 'PRETRAINED'}")
        visual = library.create_model(architecture, pretrained=tag or tags[0]).visual
    side = visual.image_size if isinstance(visual.image_size, int) else visual.image_size[0]
    return visual, _describe(side, "bicubic", side, visual.image_mean, visual.image_std)


def _load_torchvision(name: str) -> tuple[nn.Module, str]:
    """A classifier of torchvision with its default weights, without its last layer."""
    models = _import_library("torchvision.models", "torchvision")
    with wrap_user_errors(f"loading torchvision:{name}"):
        weights = models.get_model_weights(name).DEFAULT
        module, preset = models.get_model(name, weights=weights), weights.transforms()
    last = [key for key, _ in module.named_children()][-1]
    setattr(module, last, nn.Identity())
    return module, _describe(
        preset.resize_size[0], preset.interpolation.value, preset.crop_size[0], preset.mean, preset.std
    )


LIBRARIES: Mapping[str, Callable[[str], tuple[nn.Module, str]]] = MappingProxyType(
    {"open_clip": _load_open_clip, "timm": _load_timm, "torchvision": _load_torchvision}
)
"""By the scheme of a name, the function that loads a network and its preprocessing (`Transform`)."""
