"""Zero-shot classification with CLIP, by class names in prompts: `clip:org/name[@revision]`, or `clip:./folder`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np
from pydantic import Field

from ...core.canonical import compute_identity
from ...core.errors import ModelError
from ..answers import Answers
from ..model import Columns, Model, Task
from ._clip import compute_image_features, compute_text_features, load_clip_model, parse_templates
from ._options import Options, read_options
from ._transformers import ImageProcessor
from .hugging_face import HuggingFaceFactory, iterate_images
from .hugging_face import from_spec as hugging_face

SCHEME = "clip"


class ClipOptions(Options):
    """Values of `--option`. templates: the name of a set in `_clip.TEMPLATES`, or user-written templates separated by
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
        remarks: dict[str, str | int] = {"pictures": str(self.processor), "decoder": ", ".join(self.processor.decides)}
        return remarks | {"templates": self._factory.options.templates[:100], "prompts": len(self._factory.templates)}
