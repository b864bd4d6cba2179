"""Encoders of transformers as functions from texts, from images or from sounds, to one vector each.

Weights are read from safetensors files alone, and no code that came with a model is run. The mean over all last states
is a sentence's vector in Reimers and Gurevych, EMNLP 2019 (arXiv:1908.10084), and asks no model for a token of its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from ...benchmarks.adapters._hf_media import frame_samples
from ...benchmarks.adapters._hf_pictures import PictureProcessor
from ...benchmarks.adapters._hf_quiet import quiet
from ...benchmarks.adapters._hf_tokens import pad_token, window
from ...benchmarks.parsing import named_errors
from ...core.errors import ModelError
from ...loaders.batching.sounds import samples, sound_decoder
from .images import is_encoded, planes

ROWS = 32
"""Rows read at once; features depend on it by rounding alone."""


def reader(folder: Path, device: str) -> Reader:
    """The model that `save_pretrained` wrote to a folder. `ModelError` for one that lacks weights, its tokenizer or its
    processor, or reads neither texts, images nor sounds."""
    network = loaded(folder).to(device).eval().requires_grad_(False)
    if network.main_input_name == "pixel_values":
        return ImageReader(network, folder)
    if network.main_input_name == "input_ids":
        return TextReader(network, folder)
    if network.main_input_name == "input_values":
        return SoundReader(network, folder)
    raise ModelError(f"encoder {folder.name} reads {network.main_input_name}, not texts, images or sounds")


def loaded(folder: Path) -> Any:
    """The model of a folder without a head, in float32; of one that reads texts and images, the part that reads images.
    A pooling layer that the weights lack is left out. `ModelError` where they lack more."""
    from transformers import AutoModel

    # A head that the file lacks is drawn at random: from no stream that training draws from.
    with named_errors(f"loading {folder}"), quiet(), torch.random.fork_rng(devices=[]):
        network, report = AutoModel.from_pretrained(
            folder,
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
    missing = sorted(report["missing_keys"])
    lacking = [name for name in missing if not name.startswith("pooler.")]
    if lacking:
        raise ModelError(f"encoder {folder.name} lacks weights of a {type(network).__name__}: {', '.join(lacking[:3])}")
    if missing:
        network.pooler = None
    if hasattr(network.config, "vision_config"):
        network = getattr(network, "vision_model", None)
        if network is None:
            raise ModelError(f"encoder {folder.name} reads texts and images at once: give a model of one of them")
    return network


@dataclass(frozen=True)
class Moments:
    """What an image model's processor says of arrays. mean and deviation: (channels, 1, 1); size: (height, width)."""

    mean: Tensor
    deviation: Tensor
    size: tuple[int, int]


def moments_of(folder: Path, channels: int) -> Moments:
    """By `preprocessor_config.json`; `ModelError` for a folder without it."""
    file = folder / "preprocessor_config.json"
    if not file.is_file():
        raise ModelError(f"encoder {folder.name} has no {file.name}: save its image processor beside it")
    with named_errors(f"reading {file}"):
        said = json.loads(file.read_text(encoding="utf-8"))
        even = [0.0] * channels, [1.0] * channels
        given = (said["image_mean"], said["image_std"]) if said.get("do_normalize", True) else even
        mean, deviation = (torch.tensor(moment, dtype=torch.float32).view(-1, 1, 1) for moment in given)
        return Moments(mean, deviation, _size(said.get("crop_size") or said["size"]))


def hears(folder: Path) -> bool:
    """Whether a model's processor is one of sounds."""
    file = folder / "preprocessor_config.json"
    with named_errors(f"reading {file}"):
        return file.is_file() and "sampling_rate" in json.loads(file.read_text(encoding="utf-8"))


def side_of(folder: Path) -> int | None:
    """The longer side of what an image model reads; None of a model without an image processor."""
    if not (folder / "preprocessor_config.json").is_file() or hears(folder):
        return None
    return max(moments_of(folder, 3).size)


class TextReader:
    """The mean of the last states over a text's tokens; 0 for a text without tokens."""

    what = "texts"
    decides: tuple[str, ...] = ()
    """What features depend on besides the model, transformers and torch."""

    def reads(self, column: NDArray[Any]) -> bool:
        """Whether a column is texts."""
        return column.dtype == object and not is_encoded(column)

    def __init__(self, network: Any, folder: Path) -> None:
        from transformers import AutoTokenizer

        with named_errors(f"loading the tokenizer of {folder}"), quiet():
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        pad_token(tokenizer)
        tokenizer.padding_side = "right"
        self.tokenizer, self.window = tokenizer, window(network.config, tokenizer, None)
        self.network = network.get_encoder() if network.config.is_encoder_decoder else network
        self.width: int = network.config.hidden_size

    @torch.no_grad()
    def read(self, texts: NDArray[Any]) -> NDArray[np.float32]:
        """Features (n, width) of texts (n,). Texts of like length are read together."""
        found = np.zeros((len(texts), self.width), np.float32)
        order = np.argsort([len(text) for text in texts], kind="stable")
        for start in range(0, len(order), ROWS):
            rows = order[start : start + ROWS]
            with quiet():
                tokens = self.tokenizer(
                    list(texts[rows]),
                    padding=True,
                    truncation=self.window is not None,
                    max_length=self.window,
                    return_attention_mask=True,
                    return_token_type_ids=False,
                    return_tensors="pt",
                ).to(self.network.device)
            present = tokens["attention_mask"][..., None] > 0
            if present.shape[1]:
                states = self.network(**tokens).last_hidden_state
                total = torch.where(present, states, 0.0).sum(dim=1)
                found[rows] = (total / present.sum(dim=1).clamp(min=1)).cpu().numpy()
        return found


class ImageReader:
    """The mean of the last states over an image's places (and class token, where a model has one)."""

    what = "images: encoded, or arrays of two or three axes"

    def __init__(self, network: Any, folder: Path) -> None:
        self.network, self.name = network, folder.name
        self._folder = folder
        found = moments_of(folder, network.config.num_channels)
        self.mean, self.deviation, self.size = found.mean, found.deviation, found.size
        self.width: int = self._states(torch.zeros(1, len(self.mean), *self.size)).shape[1]

    def reads(self, column: NDArray[Any]) -> bool:
        """Whether a column is files of pictures, or images as arrays."""
        return is_encoded(column) if column.dtype == object else column.ndim in (3, 4)

    @cached_property
    def processor(self) -> PictureProcessor:
        """The model's own, for encoded pictures."""
        return PictureProcessor(self._folder)

    @property
    def decides(self) -> tuple[str, ...]:
        return tuple(self.processor.decides)

    def read(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Features (n, width) of encoded pictures (n,), by the model's own processor; or of images (n, ..) as arrays
        from 0 to 1, one, two or three channels, first or last.

        A grey image is repeated in all channels, colours that are missing are 0; images are resized to the model's own
        size and normalised as its processor says."""
        if images.dtype == object:
            return self._files(images.tolist())
        shape = images.shape[1:]
        pixels = planes(torch.from_numpy(np.ascontiguousarray(images, np.float32)).flatten(1), shape)
        given, wanted = pixels.shape[1], len(self.mean)
        if given > wanted:
            raise ModelError(f"encoder {self.name} reads {wanted} channels, and images of shape {shape} have {given}")
        found = np.zeros((len(images), self.width), np.float32)
        for start in range(0, len(images), ROWS):
            some = pixels[start : start + ROWS]
            colours = some.expand(-1, wanted, -1, -1) if given == 1 else F.pad(some, (0, 0, 0, 0, 0, wanted - given))
            resized = F.interpolate(colours, self.size, mode="bilinear", antialias=True)
            found[start : start + ROWS] = self._states((resized - self.mean) / self.deviation).cpu().numpy()
        return found

    def _files(self, files: list[bytes]) -> NDArray[np.float32]:
        found = np.zeros((len(files), self.width), np.float32)
        for start in range(0, len(files), ROWS):
            pixels = torch.from_numpy(self.processor.pixels(files[start : start + ROWS]))
            found[start : start + ROWS] = self._states(pixels).cpu().numpy()
        return found

    @torch.no_grad()
    def _states(self, pixels: Tensor) -> Tensor:
        states: Tensor = self.network(pixel_values=pixels.to(self.network.device)).last_hidden_state
        return states.mean(dim=1) if states.ndim == 3 else states.flatten(2).mean(dim=2)


def sound_processor(folder: Path) -> Any:
    """What a sound model's own `preprocessor_config.json` makes; `ModelError` for a folder without it."""
    from transformers import AutoFeatureExtractor

    if not (folder / "preprocessor_config.json").is_file():
        raise ModelError(f"encoder {folder.name} has no preprocessor_config.json: save its processor beside it")
    kind: Any = AutoFeatureExtractor
    with named_errors(f"reading the processor of {folder}"), quiet():
        return kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


class SoundReader:
    """The mean of the last states over a sound's frames. Each sound is read alone: most such models were trained
    without a mask for padding, and what stands beside a sound must not change its features."""

    what = "encoded sounds"

    def __init__(self, network: Any, folder: Path) -> None:
        self.processor = sound_processor(folder)
        self.network, self.rate = network, int(self.processor.sampling_rate)
        self.width: int = network.config.hidden_size
        self._least = frame_samples(network.config)

    def reads(self, column: NDArray[Any]) -> bool:
        """Whether a column is files of sounds."""
        return is_encoded(column)

    @property
    def decides(self) -> tuple[str, ...]:
        return (sound_decoder(),)

    @torch.no_grad()
    def read(self, files: NDArray[Any]) -> NDArray[np.float32]:
        """Features (n, width) of encoded sounds (n,). One that is shorter than a frame is filled up with silence."""
        found = np.zeros((len(files), self.width), np.float32)
        for place, content in enumerate(files):
            heard = samples(content, self.rate, f"sound {place} of {len(files)}")
            heard = np.pad(heard, (0, max(0, self._least - len(heard))))
            given = self.processor(heard, sampling_rate=self.rate, return_tensors="pt")["input_values"]
            states = self.network(given.to(self.network.device)).last_hidden_state
            found[place] = states[0].mean(dim=0).cpu().numpy()
        return found


Reader = TextReader | ImageReader | SoundReader


def _size(said: Any) -> tuple[int, int]:
    """(height, width) of what a processor gives, which writes it in one of three ways."""
    if isinstance(said, dict):
        side = said.get("shortest_edge")
        return (side, side) if side else (said["height"], said["width"])
    return (said, said)
