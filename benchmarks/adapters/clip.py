"""Zero-shot classification with CLIP, by class names in prompts: `clip:org/name[@revision]`, or `clip:./folder`.

Class names in prompts and images are embedded in one space (Radford et al., Learning transferable visual models from
natural language supervision, ICML 2021, arXiv:2103.00020, section 3.1.4): the features of a class are the mean over
templates of its normalised text features, normalised again. An image's logits are the products of its features with
them, times the model's learned temperature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from ...core.canonical import compute_identity
from ...core.errors import FarshiftError, ModelError, UnknownName
from ..answers import Answers
from ..model import Columns, Model, Task
from . import Options, read_options
from ._transformers import ImageProcessor, load_network, read_config, read_tokenizer, silence_transformers
from .hugging_face import HuggingFaceFactory, iterate_images
from .hugging_face import from_spec as hugging_face

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


SCHEME = "clip"


class ClipOptions(Options):
    """Values of `--option`. templates: the name of a set in `TEMPLATES`, or user-written templates separated by
    `|`. names: class names separated by `|`, if the benchmark has none or others fit better. dtype: of the weights.
    batch_size: images per batch; it changes predictions by rounding only."""

    templates: str = "single"
    names: str = ""
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    batch_size: int = Field(32, ge=1)


def from_spec(rest: str, options: Mapping[str, str]) -> ClipFactory:
    """Return the factory of `clip:REST`. Weights are loaded as for `hf:REST`, with the same errors; `UnknownName` or
    `FarshiftError` for invalid templates."""
    read = read_options(ClipOptions, SCHEME, options)
    templates = parse_templates(read.templates)
    return ClipFactory(hugging_face(rest, {}), read, templates)


class ClipFactory:
    """Makes zero-shot classifiers of one pinned set of weights; they share the network. `code` is a digest of the
    weights, the templates and the options that change predictions."""

    def __init__(self, weights: HuggingFaceFactory, options: ClipOptions, templates: tuple[str, ...]) -> None:
        self.folder, self.name, self.options, self.templates = weights.folder, weights.name, options, templates
        self.pretrained = weights.pretrained
        self.code = compute_identity(
            {"weights": weights.code, "templates": templates, "names": options.names, "dtype": options.dtype}
        )

    def __call__(self, seed: int, task: Task, device: str, prompt: object = None) -> Model:
        """Return a zero-shot classifier; the seed has no effect. `ModelError` for other tasks, and for classes without
        names."""
        if task.type != "classification":
            raise ModelError(f"model clip:{self.name} classifies images, and this is a {task.type} task")
        names = [name.strip() for name in self.options.names.split("|")] if self.options.names else list(task.names)
        if len(names) != task.classes or not all(names):
            had = f"{len(names)} names for {task.classes} classes" if names else "no class names"
            raise ModelError(f"model clip:{self.name} has {had}: give them in order, --option 'names=cat|dog'")
        network = self._network.to(device)
        features = compute_text_features(network, self.folder, names, self.templates)
        return ZeroShotClassifier(network, features, ImageProcessor(self.folder), task, self)

    @cached_property
    def _network(self) -> Any:
        return load_clip_model(self.folder, "CLIPModel", self.options.dtype)


class ZeroShotClassifier:
    """Predicts the class whose text features are nearest to the image's."""

    def __init__(self, network: Any, texts: Any, processor: ImageProcessor, task: Task, factory: ClipFactory) -> None:
        """texts: class features, (classes, d)."""
        self.network, self.texts, self.processor, self.task, self._factory = network, texts, processor, task, factory

    def predict(self, batch: Columns) -> Answers:
        """Return predictions with class probabilities. `BadImage` for an image that cannot be decoded."""
        import torch

        scores = np.empty((len(batch[self.task.inputs[0]]), len(self.texts)), np.float32)
        scale = self.network.logit_scale.detach().float().exp()
        name, size = f"clip:{self._factory.name}", self._factory.options.batch_size
        for rows, images in iterate_images(batch, self.task, name, size):
            features = compute_image_features(self.network, torch.from_numpy(self.processor.pixels(images)))
            logits = scale * features @ self.texts.T
            scores[rows] = logits.double().softmax(dim=1).float().cpu().numpy()
        return Answers.all_given(scores.argmax(axis=1).astype(np.int64), scores)

    def remarks(self) -> dict[str, str | int]:
        """Settings of the prediction, for the run card."""
        templates = self._factory.options.templates[:100]
        return {**self.processor.remarks(), "templates": templates, "prompts": len(self._factory.templates)}
