"""Image and audio classifiers of transformers, with their own processors."""

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
from ._hf_classifier import match_outputs
from ._hf_images import ImageProcessor
from ._transformers import read_audio_processor, silence_transformers


def get_image_column(batch: Columns, task: Task, model: str) -> NDArray[Any]:
    """Return the only input of an image task, encoded or as uint8 arrays; `ModelError` for another input."""
    if len(task.inputs) != 1:
        raise ModelError(f"model {model} reads a single image, and this task has {len(task.inputs)} inputs")
    column = batch[task.inputs[0]]
    if not (is_encoded(column) and not is_audio(column)) and not is_pixels(column):
        raise ModelError(f"input {task.inputs[0]!r} is not an image, and {model} reads only images")
    return column


def iterate_slices(count: int, size: int) -> Iterator[slice]:
    """Yield slices of `size` rows that cover `count` rows."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


class ImageClassifier:
    """A vision network with a classification head; images are preprocessed by the model's own processor."""

    def __init__(self, network: Any, processor: ImageProcessor, task: Task, name: str, batch_size: int) -> None:
        self.network, self.processor, self.task, self.batch_size = network, processor, task, batch_size
        self.outputs, self.name = match_outputs(network.config.id2label, task, name), name

    def predict(self, batch: Columns) -> Answers:
        """Return predictions with class probabilities. `BadImage` for an image that cannot be decoded."""
        import torch

        images = get_image_column(batch, self.task, f"hf:{self.name}")
        scores = np.empty((len(images), len(self.outputs)), np.float32)
        for rows in iterate_slices(len(images), self.batch_size):
            pixels = torch.from_numpy(self.processor.pixels(images[rows]))
            with silence_transformers(), torch.no_grad():
                given = pixels.to(self.network.device, self.network.dtype)
                logits = self.network(pixel_values=given).logits[:, self.outputs]
            scores[rows] = logits.double().softmax(dim=1).float().cpu().numpy()
        return Answers.all_given(scores.argmax(axis=1).astype(np.int64), scores)

    def remarks(self) -> dict[str, str]:
        """What decodes and resizes images, for the run card."""
        return {"pictures": str(self.processor), "decoder": ", ".join(self.processor.decides)}


class AudioClassifier:
    """An audio network with a classification head. Recordings are passed one by one: most of these networks were
    trained without a padding mask, and the rest of a batch must not change a prediction."""

    def __init__(self, network: Any, folder: Path, task: Task, name: str) -> None:
        self.processor = read_audio_processor(folder)
        if len(task.inputs) != 1:
            raise ModelError(f"model hf:{name} reads a single recording, and this task has {len(task.inputs)} inputs")
        self.network, self.task, self.name = network, task, name
        self.outputs = match_outputs(network.config.id2label, task, name)
        self.rate = int(self.processor.sampling_rate)
        self.forms = InputFormat(audio=self.rate)
        self._least = count_frame_samples(network.config)

    def predict(self, batch: Columns) -> Answers:
        """Return predictions with class probabilities for samples at the model's rate. A recording shorter than a frame
        is padded with silence."""
        import torch

        recordings = batch[self.task.inputs[0]]
        if recordings.dtype != object or not all(isinstance(samples, np.ndarray) for samples in recordings):
            raise ModelError(f"input {self.task.inputs[0]!r} is not audio, and hf:{self.name} reads only audio")
        scores = np.empty((len(recordings), len(self.outputs)), np.float32)
        for row, heard in enumerate(recordings):
            padded = np.pad(heard, (0, max(0, self._least - len(heard))))
            given = self.processor(padded, sampling_rate=self.rate, return_tensors="pt")[self.network.main_input_name]
            with silence_transformers(), torch.no_grad():
                logits = self.network(given.to(self.network.device, self.network.dtype)).logits[:, self.outputs]
            scores[row] = logits.double().softmax(dim=1).float().cpu().numpy()[0]
        return Answers.all_given(scores.argmax(axis=1).astype(np.int64), scores)


def count_frame_samples(config: Any) -> int:
    """The number of samples per frame, from the kernels and strides of the model's convolutions; 1 without them."""
    sizes = zip(getattr(config, "conv_kernel", ()), getattr(config, "conv_stride", ()), strict=True)
    least = 1
    for kernel, stride in reversed(list(sizes)):
        least = (least - 1) * stride + kernel
    return least
