"""Tiny vision, sound and two-sided models with seeded random weights, saved to folders as real ones are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tiny_hf

MOMENTS = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.5]}
SAID: dict[str, dict[str, Any]] = {
    "vit": {"image_processor_type": "ViTImageProcessor", "size": {"height": 8, "width": 8}, "resample": 2},
    "dinov2": {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 10}, "crop_size": 8},
    "resnet": {
        "image_processor_type": "ConvNextImageProcessor",
        "size": {"shortest_edge": 8},
        "crop_pct": 0.8,
        "resample": 3,
    },
    "convnext": {
        "image_processor_type": "ConvNextImageProcessor",
        "size": {"shortest_edge": 8},
        "crop_pct": 0.8,
        "resample": 3,
    },
    "clip": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 9}, "crop_size": 8},
}
"""What each model's own processor says, beside the moments."""

_SMALL = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}


def network(kind: str, classes: int = 0, names: tuple[str, ...] = ()) -> Any:
    """A model for 8 x 8 pictures in colour, of the kinds of `SAID`; with `classes`, one with a classification head."""
    import torch
    import transformers as hf

    torch.manual_seed(0)
    labels: dict[str, Any] = {}
    if classes or names:
        labels = {"num_labels": len(names) or classes}
        labels |= {"id2label": dict(enumerate(names)), "label2id": {n: i for i, n in enumerate(names)}} if names else {}
    sort = "ForImageClassification" if labels else "Model"
    if kind == "clip":
        words = len(tiny_hf.SPECIAL + tiny_hf.WORDS)
        text = _SMALL | {"vocab_size": words, "max_position_embeddings": 16, "eos_token_id": 4, "bos_token_id": 2}
        sides = {"text_config": text, "vision_config": _SMALL | {"image_size": 8, "patch_size": 4}}
        return hf.CLIPModel(hf.CLIPConfig(**sides, projection_dim=6))
    if kind in ("vit", "dinov2"):
        name, more = ("ViT", {"intermediate_size": 8}) if kind == "vit" else ("Dinov2", {"mlp_ratio": 2})
        shape = {name: size for name, size in _SMALL.items() if name != "intermediate_size"} | more
        config: Any = getattr(hf, f"{name}Config")(image_size=8, patch_size=4, **shape, **labels)
    elif kind == "convnext":
        name = "ConvNext"
        config = hf.ConvNextConfig(patch_size=2, hidden_sizes=[6, 10], depths=[1, 1], num_stages=2, **labels)
    else:
        name, shape = "ResNet", {"embedding_size": 4, "hidden_sizes": [6, 10], "depths": [1, 1]}
        config = hf.ResNetConfig(layer_type="basic", **shape, **labels)
    return getattr(hf, name + sort)(config).eval()


def saved(folder: Path, kind: str, classes: int = 0, names: tuple[str, ...] = ()) -> Path:
    """`network`, its processor's file and, of CLIP, its tokenizer, in a folder."""
    from farshift.benchmarks.adapters._transformers import silence_transformers

    with silence_transformers():
        network(kind, classes, names).save_pretrained(folder)
        if kind == "clip":
            tiny_hf.tokenizer(ends=True).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(SAID[kind] | MOMENTS))
    return folder


def sounds(folder: Path, rate: int = 4000, classes: int = 0, norm: str = "group") -> Path:
    """A wav2vec 2.0 whose frames are 10 samples, and its processor's file; with `classes`, one with a head. norm:
    `group`, as of the base model, which knows of no padding, or `layer`."""
    import torch
    from farshift.benchmarks.adapters._transformers import silence_transformers
    from transformers import Wav2Vec2Config, Wav2Vec2ForSequenceClassification, Wav2Vec2Model

    torch.manual_seed(0)
    convolutions = {"conv_dim": [8, 8], "conv_kernel": [6, 3], "conv_stride": [2, 2], "num_feat_extract_layers": 2}
    places = {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}
    labels = {"num_labels": classes} if classes else {}
    kind: Any = Wav2Vec2ForSequenceClassification if classes else Wav2Vec2Model
    built = kind(Wav2Vec2Config(**_SMALL, **convolutions, **places, **labels, feat_extract_norm=norm))
    with silence_transformers():
        built.save_pretrained(folder)
    output = {"feature_extractor_type": "Wav2Vec2FeatureExtractor", "sampling_rate": rate, "do_normalize": True}
    (folder / "preprocessor_config.json").write_text(
        json.dumps(output | {"feature_size": 1, "padding_value": 0.0, "return_attention_mask": False})
    )
    return folder
