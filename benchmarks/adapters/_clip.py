"""CLIP's text and image features: class names in prompts and images, embedded in one space.

Radford et al., Learning transferable visual models from natural language supervision, ICML 2021 (arXiv:2103.00020),
section 3.1.4: the features of a class are the mean over templates of its normalised text features, normalised again. An
image's logits are the products of its features with them, times the model's learned temperature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...core.errors import FarshiftError, ModelError, UnknownName
from ._transformers import load_network, read_config, read_tokenizer, silence_transformers

if TYPE_CHECKING:
    import torch

_ROWS = 64
"""Batch size for texts; it changes features by rounding only."""

_PHOTOS = (
    *("a", "the", "one", "many", "my"),
    *(
        f"{article} {kind}"
        for kind in ("clean", "cool", "dirty", "hard to see", "large", "nice", "small", "weird")
        for article in ("a", "the")
    ),
)
_MEDIA = (
    *(f"a {kind} photo" for kind in ("bad", "black and white", "blurry", "bright", "close-up", "cropped", "dark")),
    *(f"a {kind} photo" for kind in ("good", "jpeg corrupted", "low resolution", "pixelated")),
    *(f"a {kind}" for kind in ("doodle", "drawing", "painting", "rendering", "rendition", "sculpture", "sketch")),
    *("a tattoo", "art", "graffiti", "itap"),
)
_MATTERS = ("cartoon", "embroidered", "origami", "plastic", "plushie", "toy")
_CIFAR = ("", "bad ", "black and white ", "blurry ", "good ", "high contrast ", "low contrast ")
_ARTICLES = ("a", "the")

TEMPLATES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "single": ("a photo of a {}.",),
        "imagenet": (
            *(f"a photo of {which} {{}}." for which in _PHOTOS),
            *(f"{medium} of {article} {{}}." for medium in _MEDIA for article in _ARTICLES),
            *(f"{article} {matter} {{}}." for matter in _MATTERS for article in _ARTICLES),
            *(f"{article} {{}} in a video game." for article in _ARTICLES),
            "itap of my {}.",
        ),
        "cifar": (
            *(f"a {kind}photo of {article} {{}}." for kind in _CIFAR for article in _ARTICLES),
            *(f"a photo of {article} {size} {{}}." for size in ("small", "big") for article in _ARTICLES),
        ),
    }
)
"""The published template sets by name: a single one, the 80 of ImageNet, the 18 of CIFAR-10 and CIFAR-100."""


def parse_templates(spec: str) -> tuple[str, ...]:
    """Return the templates of a named set, or user-written ones separated by `|`, each with `{}` for the class.

    Raises `UnknownName` for an unknown name, `FarshiftError` for a template without exactly one `{}`."""
    if spec in TEMPLATES:
        return TEMPLATES[spec]
    if "{" not in spec:
        raise UnknownName("template set", spec, TEMPLATES, "(or write one, such as 'a drawing of a {}.')")
    templates = tuple(text.strip() for text in spec.split("|"))
    for text in templates:
        if text.count("{}") != 1 or text.replace("{}", "").strip("{}") != text.replace("{}", ""):
            raise FarshiftError(f"template {text!r}: write {{}} once, in place of the class name")
    return templates


def format_class_names(names: Sequence[str]) -> list[str]:
    """Return class names as text: `polar_bear` becomes polar bear."""
    return [" ".join(name.replace("_", " ").split()) for name in names]


def load_clip_model(folder: Path, kind: str, dtype: Any) -> Any:
    """Load a model of the transformers class `kind` from a folder with CLIP weights, in evaluation mode. `ModelError`
    if the folder has another model, or lacks weights."""
    config = read_config(folder)
    if config.model_type != "clip":
        raise ModelError(f"model {folder.name} is a {config.model_type}, and zero-shot classification needs CLIP")
    if kind == "CLIPVisionModelWithProjection":
        # For weights with both towers the width of features is in the whole model's config, not the vision config.
        width = config.projection_dim
        config = getattr(config, "vision_config", config)
        config.projection_dim = width
    return load_network(folder, kind, folder.name, config=config, dtype=dtype)


def compute_text_features(network: Any, folder: Path, names: Sequence[str], templates: Sequence[str]) -> torch.Tensor:
    """Return normalised class features, (classes, d), averaged over templates."""
    import torch

    tokenizer = read_tokenizer(folder)
    longest = network.config.text_config.max_position_embeddings
    texts = [template.replace("{}", name) for name in format_class_names(names) for template in templates]
    pieces = []
    for start in range(0, len(texts), _ROWS):
        with silence_transformers(), torch.no_grad():
            read = tokenizer(
                texts[start : start + _ROWS], padding=True, truncation=True, max_length=longest, return_tensors="pt"
            )
            ids, mask = (read[name].to(network.device) for name in ("input_ids", "attention_mask"))
            states = network.text_model(input_ids=ids, attention_mask=mask).pooler_output
            pieces.append(normalise_rows(network.text_projection(states).float()))
    each = torch.cat(pieces).view(len(names), len(templates), -1)
    return normalise_rows(each.mean(dim=1))


def compute_image_features(network: Any, pixels: torch.Tensor) -> torch.Tensor:
    """Return normalised features, (n, d), of images that the processor has preprocessed."""
    import torch

    with silence_transformers(), torch.no_grad():
        states = network.vision_model(pixel_values=pixels.to(network.device, network.dtype)).pooler_output
        return normalise_rows(network.visual_projection(states).float())


def normalise_rows(features: torch.Tensor) -> torch.Tensor:
    """Scale each row to length 1."""
    normalised: torch.Tensor = features / features.norm(dim=-1, keepdim=True)
    return normalised
