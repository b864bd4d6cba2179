"""A pretrained model as part of a network: plain code for one replica, parameters for all replicas.

The model's parameters and saved buffers get the replica axis, so that stacking, picking, optimisers and checkpoints
treat them like any others. It is called once for each replica with that replica's slices
(`torch.func.functional_call`): the operations are the same alone and among many, for any model. Stacking brings no
speed, and the trainer stacks no networks of this size.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ...benchmarks.adapters.clip import load_clip_model, normalise_rows
from ...core.errors import ModelError
from ..encoding.checkpoint import Checkpoint, find_checkpoint, find_folder
from ..encoding.frozen_readers import Moments, load_model, read_moments
from ..layers.lora import add_lora
from ..replicas.rng import Rng

POOLS = ("model", "mean", "first", "last")
FROZEN = ("none", "stem", "body")
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_ADAPTED = re.compile(r"(^|\.)(query|value|q_proj|v_proj|q_lin|v_lin|c_attn|query_key_value|qkv_proj)$")
"""Names of the layers for queries and values of attention; with the keys, where one layer computes all three."""


class Body(nn.Module):
    """A model with a replica axis, from its inputs to one vector a row."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__()
        if not settings["weights"]:
            raise ModelError("setting weights: name pretrained weights, such as org/name[@revision] or ./folder")
        if settings["pooling"] not in POOLS:
            raise ModelError(f"setting pooling = {settings['pooling']!r}: use {', '.join(POOLS)}")
        if settings["freeze"] not in FROZEN:
            raise ModelError(f"setting freeze = {settings['freeze']!r}: use {', '.join(FROZEN)}")
        checkpoint = find_checkpoint(settings["weights"])
        if settings["head"] not in ("zero", "zero-shot"):
            raise ModelError(f"setting head = {settings['head']!r}: use zero or zero-shot")
        self.projects = settings["head"] == "zero-shot"
        """Whether features are CLIP's projected image features, normalised to length 1."""
        if self.projects and settings["pooling"] != "model":
            raise ModelError("setting head = 'zero-shot' needs the model's own features: leave pooling at model")
        model: Any = _add_replica_axis(copy.deepcopy(_read_model(settings["weights"], checkpoint, self.projects)))
        self.model = model
        self.name, self.pool, self.frozen_norm = checkpoint.name, settings["pooling"], settings["frozen_norm"]
        self.frozen, self.probe_steps = settings["freeze"] == "body", settings["probe_steps"]
        config: Any = model.config
        self.reads: str = model.main_input_name
        if self.reads not in ("input_ids", "pixel_values", "input_values"):
            raise ModelError(f"weights {self.name} read {self.reads}: use a model of images, text or audio")
        self.pixels: Moments | None = None
        if self.reads == "pixel_values":
            self.pixels = read_moments(checkpoint, config.num_channels)
        self.one_way = self.reads == "input_ids" and is_one_way(config)
        self.masked = getattr(config, "feat_extract_norm", "") != "group"
        """Whether the model is given a padding mask. wav2vec 2.0 with group normalisation was trained without."""
        # No token-by-token generation, and no draws of audio models from NumPy's global generator.
        for name, value in (("use_cache", False), ("apply_spec_augment", False), ("layerdrop", 0.0)):
            if hasattr(config, name):
                setattr(config, name, value)
        if settings["freeze"] == "stem":
            for parameter, depth in zip(model.parameters(), self.depths(), strict=True):
                parameter.requires_grad_(depth > 0)
        if settings["lora_rank"]:
            if not self.adaptable:
                raise ModelError(f"weights {self.name} have no attention for LoRA to adapt: leave lora_rank at 0")
            add_lora(self.model, list(self.adaptable), settings["lora_rank"], settings["lora_alpha"])
        self.rng: Rng | None = None
        self.width: int = config.hidden_sizes[-1] if hasattr(config, "hidden_sizes") else config.hidden_size
        if self.projects:
            self.width = config.projection_dim

    @property
    def adaptable(self) -> dict[str, nn.Module]:
        """The linear maps to queries and values, by name."""
        return {
            name: module
            for name, module in self.model.named_modules()
            if (isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D") and _ADAPTED.search(name)
        }

    def train(self, mode: bool = True) -> Body:
        """With `frozen_norm`, batch normalisation uses its pretrained moments in training too."""
        super().train(mode)
        if self.frozen_norm:
            for module in self.modules():
                if isinstance(module, NORMS):
                    module.eval()
        return self

    def forward(self, **given: Tensor) -> Tensor:
        """The model's inputs, each (K, n, ..), to features (K, n, width)."""
        if self.frozen or self._probing:
            with torch.no_grad():
                return self._features(given)
        return self._features(given)

    @property
    def _probing(self) -> bool:
        return self.rng is not None and not self.rng.silent and int(self.rng.step) < self.probe_steps

    def _features(self, given: Mapping[str, Tensor]) -> Tensor:
        saved = {name for name, _ in self.model.named_parameters()} | set(self.model.state_dict())
        parameters = {name: value.unbind(0) for name, value in self.model.named_parameters()}
        buffers = {name: value for name, value in self.model.named_buffers() if name in saved}
        seeds = self._seeds()
        features = []
        for replica in range(len(next(iter(given.values())))):
            own = {name: value[replica] for name, value in parameters.items()}
            own |= {name: value[replica] for name, value in buffers.items()}
            rows = {name: value[replica] for name, value in given.items()}
            rows = _strip_padding(rows) if self.reads == "input_ids" else rows
            model_inputs = rows if self.masked else {self.reads: rows[self.reads]}
            if seeds is None:
                features.append(self._pooled(functional_call(self.model, own, (), model_inputs), rows))
                continue
            # The model's own dropout draws from torch's generators: seeded by the replica's key and the step.
            devices = [own[name].device for name in list(own)[:1] if own[name].is_cuda]
            with torch.random.fork_rng(devices=devices):
                torch.manual_seed(seeds[replica])
                features.append(self._pooled(functional_call(self.model, own, (), model_inputs), rows))
        return torch.stack(features)

    def _seeds(self) -> list[int] | None:
        if not self.training or self.rng is None or self.rng.silent:
            return None
        return (self.rng.fresh() & ((1 << 62) - 1)).tolist()

    def _pooled(self, out: Any, rows: Mapping[str, Tensor]) -> Tensor:
        if self.projects:
            return normalise_rows(out.image_embeds)
        states: Tensor = out.last_hidden_state
        own = getattr(out, "pooler_output", None)
        if self.pool == "model" and own is not None:
            return own.flatten(1)
        if states.ndim == 4:
            return states.flatten(2).mean(dim=2)
        pool = self.pool
        if pool == "model":
            pool = "last" if self.one_way else "mean" if self.reads == "input_values" else "first"
        if pool == "first":
            return states[:, 0]
        if "attention_mask" not in rows:
            return states.mean(dim=1) if pool == "mean" else states[:, -1]
        lengths = rows["attention_mask"].sum(dim=1)
        if self.reads == "input_values":
            lengths = count_frames(lengths, self.model.config)
        lengths = lengths.clamp(1, states.shape[1])
        if pool == "last":
            return states[torch.arange(len(states), device=states.device), lengths - 1]
        present = torch.arange(states.shape[1], device=states.device) < lengths[:, None]
        return torch.where(present[..., None], states, 0.0).sum(dim=1) / lengths[:, None]

    def depths(self) -> list[int]:
        """The layer of each of the model's parameters: 0 before the first block, then 1 to L, L + 1 after the last. A
        block is an element of the longest list of modules that is in no other: a layer of a Transformer, a stage of a
        convolutional network; or without lists a child of the module."""
        lists = [
            (name, len(module)) for name, module in self.model.named_modules() if isinstance(module, nn.ModuleList)
        ]
        outer = [(name, size) for name, size in lists if not any(name.startswith(f"{other}.") for other, _ in lists)]
        # The last of several of equal length: an audio model's convolutions come before its layers.
        prefix, blocks = max(reversed(outer), key=lambda entry: entry[1], default=("", 0))
        within = re.compile(re.escape(prefix) + r"\.(\d+)\.")
        if not lists:  # a module without lists: each of its children is a block, the first one the stem
            children = [name.split(".")[2] for name, _ in self.named_parameters()]
            return [list(dict.fromkeys(children)).index(child) for child in children]
        depths, last = [], 0
        for name, _ in self.named_parameters():
            match = within.match(name.removeprefix("model."))
            last = int(match[1]) + 1 if match else last and blocks + 1
            depths.append(last)
        return depths


def is_one_way(config: Any) -> bool:
    """Whether a text model is causal, so that only its last token attends to all others: transformers has it as a
    causal language model and not as a masked one."""
    from transformers.models.auto import modeling_auto

    writes, fills = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return config.model_type in writes and config.model_type not in fills


def count_frames(lengths: Tensor, config: Any) -> Tensor:
    """The number of frames to which an audio model's convolutions reduce `lengths` samples, (n,)."""
    for kernel, stride in zip(config.conv_kernel, config.conv_stride, strict=True):
        lengths = (lengths - kernel).div(stride, rounding_mode="floor") + 1
    return lengths


def _strip_padding(rows: dict[str, Tensor]) -> dict[str, Tensor]:
    """Remove the places at the end that are padding in all rows, except one; only texts have them."""
    if "attention_mask" not in rows:
        return rows
    longest = max(1, int((rows["attention_mask"] > 0).any(dim=0).sum()))
    return {name: value[:, :longest] for name, value in rows.items()}


@lru_cache(maxsize=1)
def _read_model(spec: str, checkpoint: Checkpoint, projects: bool) -> Any:
    """The model of pretrained weights, read once for all replicas of a process; with `projects`, CLIP's vision side
    with its projection."""
    if not projects:
        return load_model(checkpoint)
    with torch.random.fork_rng(devices=[]):
        return load_clip_model(find_folder(spec).folder, "CLIPVisionModelWithProjection", torch.float32)


def _add_replica_axis(model: nn.Module) -> nn.Module:
    """The model, each parameter and saved buffer with a replica axis of 1."""
    for module in model.modules():
        for name, value in module._parameters.items():
            if value is not None:
                module._parameters[name] = nn.Parameter(value.detach().unsqueeze(0))
        for name, buffer in module._buffers.items():
            if buffer is not None and name not in module._non_persistent_buffers_set:
                module._buffers[name] = buffer.unsqueeze(0)
    return model
