"""Encoded audio as the samples that a pretrained model reads.

Training clips are decoded once: their lengths and samples are stored in the cache, each row's by its content
(`features`, `feature_store.py`) and by everything else that determines them: processor, rate, length and decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...benchmarks.adapters._hf_logging import silence_transformers
from ...benchmarks.adapters._hf_media import count_frame_samples
from ...benchmarks.model import Columns, Task
from ...benchmarks.parsing import wrap_user_errors
from ...core.errors import BadData, FarshiftError, ModelError
from ...loaders.batching.audio import describe_audio_decoder, read_samples
from .checkpoint import find_folder
from .encoding import RowEncoding, Sizes
from .feature_store import DIGEST, FeatureStore
from .frozen_readers import load_audio_processor
from .images import is_encoded
from .targets import make_targets

KEPT_BYTES = 2**30
"""Bytes of one column's samples that the cache may store."""


class AudioEncoding(RowEncoding):
    """One audio clip by the processor that is stored with a model's weights: its first `seconds`, padded with zeros to
    the longest in training. A function of the clip only, whatever else is in the batch."""

    def __init__(self, task: Task, train: Columns, weights: str, seconds: float) -> None:
        """weights: see `FrozenColumns`."""
        from transformers import AutoConfig

        if len(task.inputs) != 1 or not is_encoded(train[task.inputs[0]]):
            raise ModelError(f"setting inputs = 'sounds' needs one audio input; this task has {', '.join(task.inputs)}")
        if seconds <= 0:
            raise ModelError(f"setting seconds = {seconds:g}: the length of audio must be above 0")
        folder = find_folder(weights).folder
        with wrap_user_errors(f"reading the configuration of {weights}"), silence_transformers():
            config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if not hasattr(config, "conv_kernel"):
            raise ModelError(f"weights {weights} read no audio: give a model such as wav2vec 2.0")
        self.task, self.targets, self.processor = task, make_targets(task, train), load_audio_processor(folder)
        self.rate = int(self.processor.sampling_rate)
        self.most = max(count_frame_samples(config), round(seconds * self.rate))
        self._decides = {
            "processor": str(self.processor.to_dict()),
            "rate": self.rate,
            "decoder": describe_audio_decoder(),
        }
        longest = int(self._lengths(train[task.inputs[0]]).max(initial=0))
        self.samples = min(self.most, max(longest, count_frame_samples(config)))
        self.streams, self.images = "", []
        self.sizes = Sizes(self.targets.outputs, numbers=self.samples, shape=(self.samples,))

    @property
    def decoder(self) -> str:
        return describe_audio_decoder()

    def _decode_audio(self, files: NDArray[Any], index: int) -> NDArray[np.float32]:
        return read_samples(bytes(files[index]), self.rate, f"recording {index} of {len(files)}")

    def _lengths(self, files: NDArray[Any]) -> NDArray[np.float32]:
        """The number of samples of each clip, (n,), whole numbers."""

        def read(places: Sequence[int]) -> NDArray[np.float32]:
            return np.array([[len(self._decode_audio(files, index))] for index in places], np.float32).reshape(-1, 1)

        return self._read_cached("lengths", files, 1, read)[:, 0]

    def _samples(self, files: NDArray[Any], places: Sequence[int]) -> NDArray[np.float32]:
        """The clips with the indices `places`, normalised by the processor, 0 after a clip's end: (places, T)."""
        values = np.zeros((len(places), self.samples), np.float32)
        for row, index in enumerate(places):
            some = self._decode_audio(files, index)[: self.samples]
            if len(some):
                given = self.processor(some, sampling_rate=self.rate, return_tensors="np")["input_values"][0]
                values[row, : len(some)] = given
        return values

    def _read_cached(
        self, what: str, files: NDArray[Any], width: int, read: Callable[[Sequence[int]], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """`read`'s values of clips, `width` each, through the cache; without it if they would not fit."""
        if 4 * width * len(files) > KEPT_BYTES:
            return read(range(len(files)))
        store = FeatureStore(f"sounds-{what}", self._decides | {"what": what, "width": width}, width)
        digests = [blake2b(file, digest_size=DIGEST).digest() for file in files]
        try:
            return store.of(digests, read)
        except BadData:
            raise
        except FarshiftError:  # the cache cannot be written
            return read(range(len(files)))

    def inputs(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """No categories, (n, 0), and samples (n, T) float32, normalised by the processor, 0 after a clip's end."""
        files = batch[self.task.inputs[0]]
        values = self._samples(files, range(len(files)))
        return torch.zeros((len(values), 0), dtype=torch.int64), torch.from_numpy(values)

    def rows(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """As `inputs`, through the cache."""
        files = batch[self.task.inputs[0]]
        values = self._read_cached("samples", files, self.samples, lambda places: self._samples(files, places))
        return torch.zeros((len(values), 0), dtype=torch.int64), torch.from_numpy(values)
