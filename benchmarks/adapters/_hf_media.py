"""Classifiers of transformers that read pictures or sounds, by their own processors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ModelError
from ...loaders.batching.encoded import is_audio, is_encoded, is_pixels
from ...loaders.batching.input_format import InputFormat
from ..answers import Answers
from ..model import Columns, Task
from ..parsing import wrap_user_errors
from ._hf_classifier import match_outputs
from ._hf_images import FILE, ImageProcessor
from ._hf_logging import silence_transformers


def get_image_column(batch: Columns, task: Task, model: str) -> NDArray[Any]:
    """The one input of a task that a model of pictures reads: encoded, or uint8 arrays; `ModelError` for others."""
    if len(task.inputs) != 1:
        raise ModelError(f"model {model} reads a picture, and this task has {len(task.inputs)} inputs")
    column = batch[task.inputs[0]]
    if not (is_encoded(column) and not is_audio(column)) and not is_pixels(column):
        raise ModelError(f"input {task.inputs[0]!r} is not pictures, and {model} reads nothing else")
    return column


def iterate_slices(count: int, size: int) -> Iterator[slice]:
    """Slices of `size` rows each, over all rows."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


class ImageClassifier:
    """Asks a vision network with a classification head: each picture by the model's own size, crop and moments."""

    def __init__(self, network: Any, processor: ImageProcessor, task: Task, name: str, batch_size: int) -> None:
        self.network, self.processor, self.task, self.batch_size = network, processor, task, batch_size
        self.outputs, self.name = match_outputs(network.config.id2label, task, name), name

    def predict(self, batch: Columns) -> Answers:
        """Answers with scores. `BadImage` for a picture that cannot be decoded."""
        import torch

        pictures = get_image_column(batch, self.task, f"hf:{self.name}")
        scores = np.empty((len(pictures), len(self.outputs)), np.float32)
        for rows in iterate_slices(len(pictures), self.batch_size):
            pixels = torch.from_numpy(self.processor.pixels(pictures[rows]))
            with silence_transformers(), torch.no_grad():
                given = pixels.to(self.network.device, self.network.dtype)
                logits = self.network(pixel_values=given).logits[:, self.outputs]
            scores[rows] = logits.double().softmax(dim=1).float().cpu().numpy()
        return Answers.all_given(scores.argmax(axis=1).astype(np.int64), scores)

    def remarks(self) -> dict[str, str]:
        """What decodes and resizes, for the run card."""
        return {"pictures": str(self.processor), "decoder": ", ".join(self.processor.decides)}


class AudioClassifier:
    """Asks a network of sounds with a classification head, each sound alone: most were trained without a mask for
    padding, and what stands beside a sound must not change its answer."""

    def __init__(self, network: Any, folder: Path, task: Task, name: str) -> None:
        from transformers import AutoFeatureExtractor

        if not (folder / FILE).is_file():
            raise ModelError(f"model hf:{name} has no {FILE}: save its processor beside it")
        kind: Any = AutoFeatureExtractor
        with wrap_user_errors(f"reading the processor of {folder}"), silence_transformers():
            self.processor = kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if len(task.inputs) != 1:
            raise ModelError(f"model hf:{name} reads a sound, and this task has {len(task.inputs)} inputs")
        self.network, self.task, self.name = network, task, name
        self.outputs = match_outputs(network.config.id2label, task, name)
        self.rate = int(self.processor.sampling_rate)
        self.forms = InputFormat(audio=self.rate)
        self._least = count_frame_samples(network.config)

    def predict(self, batch: Columns) -> Answers:
        """Answers with scores, to samples at the model's rate. A sound that is shorter than a frame is filled up with
        silence."""
        import torch

        sounds = batch[self.task.inputs[0]]
        if sounds.dtype != object or not all(isinstance(sound, np.ndarray) for sound in sounds):
            raise ModelError(f"input {self.task.inputs[0]!r} is not sounds, and hf:{self.name} reads nothing else")
        scores = np.empty((len(sounds), len(self.outputs)), np.float32)
        for row, heard in enumerate(sounds):
            padded = np.pad(heard, (0, max(0, self._least - len(heard))))
            given = self.processor(padded, sampling_rate=self.rate, return_tensors="pt")[self.network.main_input_name]
            with silence_transformers(), torch.no_grad():
                logits = self.network(given.to(self.network.device, self.network.dtype)).logits[:, self.outputs]
            scores[row] = logits.double().softmax(dim=1).float().cpu().numpy()[0]
        return Answers.all_given(scores.argmax(axis=1).astype(np.int64), scores)


def count_frame_samples(config: Any) -> int:
    """The samples that one frame is made of, by the kernels and strides of a model's convolutions; 1 without them."""
    sizes = zip(getattr(config, "conv_kernel", ()), getattr(config, "conv_stride", ()), strict=True)
    least = 1
    for kernel, stride in reversed(list(sizes)):
        least = (least - 1) * stride + kernel
    return least
