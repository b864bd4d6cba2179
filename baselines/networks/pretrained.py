"""A pretrained network with a linear head, for fine-tuning: a transformers model (ResNet, ConvNeXt, ViT, DINOv2, CLIP's
vision side; BERT-, GPT-2-, Llama-like; wav2vec 2.0-like), or any torch module of images.

The head is 0 at first, as Dosovitskiy et al. fine-tune (ICLR 2021, arXiv:2010.11929), or CLIP's zero-shot classifier,
as Wortsman et al. do (CVPR 2022, arXiv:2109.01903, section 3): the features of the classes' names times the learned
temperature, over features of length 1. Frozen batch normalisation and
dropout before the head are DomainBed's protocol (Gulrajani and Lopez-Paz, ICLR 2021, arXiv:2007.01434); `probe_steps`
is LP-FT, and `freeze = "body"` its linear probe (Kumar et al., ICLR 2022, arXiv:2202.10054); `layer_decay` is that of
Clark et al., ICLR 2020 (arXiv:2003.10555); LoRA: `layers/lora.py`.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...benchmarks.adapters.clip import compute_text_features, load_clip_model, parse_templates
from ...core.errors import ModelError
from ..encoding.checkpoint import find_folder
from ..encoding.encoding import PAD, Sizes
from ..encoding.images import get_image_size, unflatten_images
from ..layers.dropout import Dropout
from ..layers.linear import Linear
from . import RowNetwork
from ._body import Body

TASK = "classification"
SETTINGS: dict[str, Any] = {
    "weights": "",
    "pooling": "model",
    "head": "zero",
    "templates": "single",
    "freeze": "none",
    "probe_steps": 0,
    "frozen_norm": True,
    "layer_decay": 1.0,
    "lora_rank": 0,
    "lora_alpha": 16.0,
    "dropout": 0.0,
    "seconds": 10.0,
}
"""weights: as for `--fine-tune` (`encoding/checkpoint.py`). pooling: a row's features are the model's
own pooled output (`model`; if it has none the first token's state, the last token's of a causal model, or the mean over
an audio clip's frames), the `mean` of the last states, or the `first` or `last` token's. head: `zero`, or `zero-shot`
for weights of CLIP and classes with names. templates: of the prompts with these names: a set's name (`single`,
`imagenet`, `cifar`), or templates with `|` between them. freeze: `stem` trains nothing before the first block
(embeddings, an audio model's convolutions), `body` trains the head only. probe_steps: the number of first steps that
train the head only. frozen_norm: batch normalisation by the pretrained moments in training too. layer_decay: the
learning rate of a layer is this share of that of the layer above; the head's is undiminished. lora_rank: of low-rank
updates to queries and values, with all else but the head frozen; 0 for none. lora_alpha: their scale is lora_alpha /
lora_rank. dropout: of features. seconds: the length to which audio is truncated (inputs = 'sounds')."""

TOKENS_AT_ONCE, SAMPLES_AT_ONCE, IMAGES_AT_ONCE = 2**14, 2**19, 512
"""The largest batch in evaluation: tokens, including padding; audio samples; images."""


class Network(RowNetwork):
    decay: Tensor

    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.body = Body(settings)
        if self.body.reads == "input_ids":
            if not sizes.source:
                raise ModelError(f"weights {self.body.name} read text: set inputs = 'tokens' (for one text input)")
        elif self.body.reads == "input_values":
            if len(sizes.shape) != 1:
                raise ModelError(f"weights {self.body.name} read audio: set inputs = 'sounds' (for one audio input)")
        elif sizes.source or sizes.categories:
            raise ModelError(f"weights {self.body.name} read images, and the inputs of this task are not images")
        else:
            get_image_size(sizes.shape)
        self.shape, self.width = sizes.shape, self.body.width
        self.dropout = Dropout(settings["dropout"])
        self.head = Linear(self.width, sizes.outputs)
        assert self.head.bias is not None
        nn.init.zeros_(self.head.bias)
        if self.body.projects:
            with torch.no_grad():
                self.head.weight.copy_(make_zero_shot_head(settings["weights"], sizes.names, settings["templates"]))
        else:
            nn.init.zeros_(self.head.weight)
        self.register_buffer("decay", torch.tensor([float(settings["layer_decay"])]))

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Token ids `categories` (K, n, T), unchanged; or flat images `numbers` (K, n, pixels), 0 to 1, resized and
        normalised for the model, (K, n, channels, height, width); or audio `numbers` (K, n, samples)."""
        pixels = self.body.pixels
        if pixels is None:
            return categories if self.body.reads == "input_ids" else numbers
        images = unflatten_images(numbers, self.shape)
        given, channels = images.shape[2], len(pixels.mean)
        if given > channels:
            raise ModelError(f"weights {self.body.name} read {channels} channels, and images have {given}")
        colours = (
            images.expand(-1, -1, channels, -1, -1) if given == 1 else F.pad(images, (0, 0, 0, 0, 0, channels - given))
        )
        if colours.shape[-2:] != pixels.size:
            flat = F.interpolate(colours.flatten(0, 1), pixels.size, mode="bilinear", antialias=True)
            colours = flat.view(*colours.shape[:3], *pixels.size)
        return (colours - pixels.mean.to(colours)) / pixels.deviation.to(colours)

    def encode(self, x: Tensor) -> Tensor:
        if self.body.reads == "input_ids":
            present = (x != PAD).long()
            present[..., 0] = 1  # also for a text without tokens
            features = self.body(input_ids=(x - 1).clamp(min=0), attention_mask=present)
        elif self.body.reads == "input_values":
            # Zeros at the end are padding: samples are normalised, so no others are 0 there.
            heard = (x != 0).long().flip(-1).cummax(-1).values.flip(-1)
            features = self.body(input_values=x, attention_mask=heard)
        else:
            features = self.body(pixel_values=x)
        return self.dropout(features)

    def rows_at_once(self, categories: Tensor, numbers: Tensor) -> int:
        """Rows in a batch in evaluation: fewer for long texts and audio, whose states need much memory."""
        if self.body.reads == "input_ids":
            return TOKENS_AT_ONCE // categories.shape[-1]
        return SAMPLES_AT_ONCE // numbers.shape[-1] if self.body.reads == "input_values" else IMAGES_AT_ONCE

    def depths(self) -> list[int]:
        """The layer of each parameter, from 0, in the order of `parameters()`; the head is the last layer."""
        body = self.body.depths()
        last = max(body, default=0) + 1
        return [*body, *([last] * len(list(self.head.parameters())))]

    def mark_rates(self) -> None:
        """Set on each parameter its share of the learning rate, (K,)."""
        depths = self.depths()
        decays = bool((self.decay != 1).any())
        for parameter, depth in zip(self.parameters(), depths, strict=True):
            share = self.decay.detach() ** (max(depths) - depth) if decays else None
            parameter.rate_share = share  # type: ignore[attr-defined]


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
