"""Encoders of transformers as functions from texts, images or audio to one vector each.

Weights are read from safetensors files only, and no code that came with a model is run. The mean over all last hidden
states is a sentence's vector in Reimers and Gurevych, EMNLP 2019 (arXiv:1908.10084), and needs no special token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from ...benchmarks.adapters._transformers import (
    ImageProcessor,
    compute_context_length,
    count_frame_samples,
    find_pad_token,
    read_audio_processor,
    read_tokenizer,
    silence_transformers,
)
from ...benchmarks.parsing import wrap_user_errors
from ...core.documents import read_json
from ...core.errors import ModelError
from ...loaders.batching.audio import describe_audio_decoder, read_samples
from ...loaders.batching.encoded import is_encoded
from ...loaders.batching.transform import Transform
from .checkpoint import Checkpoint, FolderCheckpoint, ModuleCheckpoint
from .images import unflatten_images

ROWS = 32
"""Rows read at once; features depend on it by rounding only."""

Advance = Callable[[int], None]
"""Told how many rows are done, after each batch."""


def make_reader(checkpoint: Checkpoint, device: str) -> EncoderReader:
    """The reader of pretrained weights. `ModelError` for a folder without weights, tokenizer or processor, or a model
    that reads neither texts, images nor audio."""
    network = load_model(checkpoint).to(device).eval().requires_grad_(False)
    if isinstance(checkpoint, ModuleCheckpoint):
        network.to(memory_format=torch.channels_last)  # convolutions are up to twice as fast; the same up to rounding
    if network.main_input_name == "pixel_values":
        return ImageReader(network, checkpoint)
    assert isinstance(checkpoint, FolderCheckpoint)
    folder = checkpoint.folder
    if network.main_input_name == "input_ids":
        return TextReader(network, folder)
    if network.main_input_name == "input_values":
        return AudioReader(network, folder)
    raise ModelError(f"encoder {folder.name} reads {network.main_input_name}, not texts, images or audio")


def load_model(checkpoint: Checkpoint) -> Any:
    """The model of pretrained weights without a head, in float32; for one that reads texts and images, its image part.
    A pooling layer that the weights lack is left out. `ModelError` if they lack more."""
    if isinstance(checkpoint, ModuleCheckpoint):
        return checkpoint.load_model()
    from transformers import AutoModel

    folder = checkpoint.folder
    # A head that the file lacks is initialised at random: not from a stream that training draws from.
    with wrap_user_errors(f"loading {folder}"), silence_transformers(), torch.random.fork_rng(devices=[]):
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
            raise ModelError(f"encoder {folder.name} reads texts and images together: give a model of one of them")
    return network


@dataclass(frozen=True)
class Moments:
    """An image processor's parameters for arrays. mean and deviation: (channels, 1, 1); size: (height, width)."""

    mean: Tensor
    deviation: Tensor
    size: tuple[int, int]


def read_moments(checkpoint: Checkpoint, channels: int) -> Moments:
    """Read a module's preprocessing or a folder's `preprocessor_config.json`; `ModelError` for one without it."""
    if isinstance(checkpoint, ModuleCheckpoint):
        mean, deviation = (torch.from_numpy(moment).view(-1, 1, 1) for moment in checkpoint.transform.moments)
        return Moments(mean, deviation, checkpoint.transform.size)
    folder = checkpoint.folder
    file = folder / "preprocessor_config.json"
    if not file.is_file():
        raise ModelError(f"encoder {folder.name} has no {file.name}: save its image processor beside it")
    with wrap_user_errors(f"reading {file}"):
        config = read_json(file)
        even = [0.0] * channels, [1.0] * channels
        given = (config["image_mean"], config["image_std"]) if config.get("do_normalize", True) else even
        mean, deviation = (torch.tensor(moment, dtype=torch.float32).view(-1, 1, 1) for moment in given)
        return Moments(mean, deviation, _parse_size(config.get("crop_size") or config["size"]))


def reads_audio(checkpoint: Checkpoint) -> bool:
    """Whether a model's processor is for audio."""
    if isinstance(checkpoint, ModuleCheckpoint):
        return False
    file = checkpoint.folder / "preprocessor_config.json"
    with wrap_user_errors(f"reading {file}"):
        return file.is_file() and "sampling_rate" in read_json(file)


def read_image_side(checkpoint: Checkpoint) -> int | None:
    """The longer side of an image model's input; None for a model without an image processor."""
    if isinstance(checkpoint, FolderCheckpoint) and (
        not (checkpoint.folder / "preprocessor_config.json").is_file() or reads_audio(checkpoint)
    ):
        return None
    return max(read_moments(checkpoint, 3).size)


class TextReader:
    """The mean of the last hidden states over a text's tokens; 0 for a text without tokens."""

    what = "texts"
    decides: tuple[str, ...] = ()
    """What the features depend on besides the model, transformers and torch."""

    def reads(self, column: NDArray[Any]) -> bool:
        """Whether a column has texts."""
        return column.dtype == object and not is_encoded(column)

    def __init__(self, network: Any, folder: Path) -> None:
        tokenizer = read_tokenizer(folder)
        find_pad_token(tokenizer)
        tokenizer.padding_side = "right"
        self.tokenizer, self.window = tokenizer, compute_context_length(network.config, tokenizer, None)
        self.network = network.get_encoder() if network.config.is_encoder_decoder else network
        self.width: int = network.config.hidden_size

    @torch.no_grad()
    def read(self, texts: NDArray[Any], advance: Advance) -> NDArray[np.float32]:
        """Features (n, width) of texts (n,). Texts of similar length are read together."""
        features = np.zeros((len(texts), self.width), np.float32)
        order = np.argsort([len(text) for text in texts], kind="stable")
        for start in range(0, len(order), ROWS):
            rows = order[start : start + ROWS]
            with silence_transformers():
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
                features[rows] = (total / present.sum(dim=1).clamp(min=1)).cpu().numpy()
            advance(start + len(rows))
        return features


class ImageReader:
    """The mean of the last hidden states over an image's positions (and class token, if a model has one)."""

    what = "images (encoded, or arrays of two or three axes)"

    def __init__(self, network: Any, checkpoint: Checkpoint) -> None:
        self.network, self.name = network, checkpoint.name
        self._checkpoint = checkpoint
        moments = read_moments(checkpoint, network.config.num_channels)
        self.mean, self.deviation, self.size = moments.mean, moments.deviation, moments.size
        self.width: int = self._states(torch.zeros(1, len(self.mean), *self.size)).shape[1]

    def reads(self, column: NDArray[Any]) -> bool:
        """Whether a column has encoded images, or images as arrays."""
        return is_encoded(column) if column.dtype == object else column.ndim in (3, 4)

    @cached_property
    def processor(self) -> ImageProcessor | Transform:
        """The model's own, for encoded images."""
        return self._checkpoint.make_processor()

    @property
    def decides(self) -> tuple[str, ...]:
        return tuple(self.processor.decides)

    def read(self, images: NDArray[Any], advance: Advance) -> NDArray[np.float32]:
        """Features (n, width) of encoded images (n,), by the model's own processor; or of images (n, ..) as arrays from
        0 to 1, with one, two or three channels, first or last.

        A grey image is repeated in all channels, missing colour channels are 0. Images are resized to the model's own
        size and normalised as its processor does."""
        if images.dtype == object:
            return self._files(images.tolist(), advance)
        shape = images.shape[1:]
        pixels = unflatten_images(torch.from_numpy(np.ascontiguousarray(images, np.float32)).flatten(1), shape)
        given, channels = pixels.shape[1], len(self.mean)
        if given > channels:
            raise ModelError(f"encoder {self.name} reads {channels} channels, and images of shape {shape} have {given}")
        features = np.zeros((len(images), self.width), np.float32)
        for start in range(0, len(images), ROWS):
            some = pixels[start : start + ROWS]
            colours = (
                some.expand(-1, channels, -1, -1) if given == 1 else F.pad(some, (0, 0, 0, 0, 0, channels - given))
            )
            resized = F.interpolate(colours, self.size, mode="bilinear", antialias=True)
            features[start : start + ROWS] = self._states((resized - self.mean) / self.deviation).cpu().numpy()
            advance(start + len(some))
        return features

    def _files(self, files: list[bytes], advance: Advance) -> NDArray[np.float32]:
        features = np.zeros((len(files), self.width), np.float32)
        for start in range(0, len(files), ROWS):
            pixels = torch.from_numpy(self.processor.pixels(files[start : start + ROWS]))
            features[start : start + ROWS] = self._states(pixels).cpu().numpy()
            advance(start + len(pixels))
        return features

    @torch.no_grad()
    def _states(self, pixels: Tensor) -> Tensor:
        states: Tensor = self.network(pixel_values=pixels.to(self.network.device)).last_hidden_state
        return states.mean(dim=1) if states.ndim == 3 else states.flatten(2).mean(dim=2)


class AudioReader:
    """The mean of the last hidden states over an audio clip's frames. Each clip is read alone: most audio models were
    trained without a padding mask, and features must not depend on the rest of the batch."""

    what = "encoded audio"

    def __init__(self, network: Any, folder: Path) -> None:
        self.processor = read_audio_processor(folder)
        self.network, self.rate = network, int(self.processor.sampling_rate)
        self.width: int = network.config.hidden_size
        self._least = count_frame_samples(network.config)

    def reads(self, column: NDArray[Any]) -> bool:
        """Whether a column has audio files."""
        return is_encoded(column)

    @property
    def decides(self) -> tuple[str, ...]:
        return (describe_audio_decoder(),)

    @torch.no_grad()
    def read(self, files: NDArray[Any], advance: Advance) -> NDArray[np.float32]:
        """Features (n, width) of encoded audio clips (n,). One shorter than a frame is padded with silence."""
        features = np.zeros((len(files), self.width), np.float32)
        for index, content in enumerate(files):
            waveform = read_samples(content, self.rate, f"recording {index} of {len(files)}")
            waveform = np.pad(waveform, (0, max(0, self._least - len(waveform))))
            given = self.processor(waveform, sampling_rate=self.rate, return_tensors="pt")["input_values"]
            states = self.network(given.to(self.network.device)).last_hidden_state
            features[index] = states[0].mean(dim=0).cpu().numpy()
            advance(index + 1)
        return features


EncoderReader = TextReader | ImageReader | AudioReader


def _parse_size(size: Any) -> tuple[int, int]:
    """The output size (height, width) of a processor, which its configuration writes in one of three ways."""
    if isinstance(size, dict):
        side = size.get("shortest_edge")
        return (side, side) if side else (size["height"], size["width"])
    return (size, size)
