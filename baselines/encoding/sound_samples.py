"""An encoded sound as the samples that a pretrained model reads."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...benchmarks.adapters._hf_media import frame_samples
from ...benchmarks.adapters._hf_quiet import quiet
from ...benchmarks.adapters.hugging_face import from_spec
from ...benchmarks.model import Columns, Task
from ...benchmarks.parsing import named_errors
from ...core.errors import ModelError
from ...loaders.batching.sounds import samples, sound_decoder
from .encoding import ClassEncoding, Sizes
from .frozen_readers import sound_processor
from .images import is_encoded


class SoundEncoding(ClassEncoding):
    """One sound by the processor that lies beside a model's weights, its first `seconds`, filled up with zeros to the
    length of the longest in training: a function of the sound alone, whatever stands beside it in a batch."""

    def __init__(self, task: Task, train: Columns, weights: str, seconds: float) -> None:
        """weights: as `FrozenColumns` takes them."""
        from transformers import AutoConfig

        if len(task.inputs) != 1 or not is_encoded(train[task.inputs[0]]):
            raise ModelError(f"setting inputs = 'sounds' is of one sound, and this task has {', '.join(task.inputs)}")
        if seconds <= 0:
            raise ModelError(f"setting seconds = {seconds:g}: a sound's length must be above 0")
        assert task.classes, "a classification task says how many classes it has"
        folder = from_spec(weights, {}).folder
        with named_errors(f"reading the configuration of {weights}"), quiet():
            config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if not hasattr(config, "conv_kernel"):
            raise ModelError(f"weights {weights} read no sounds: give a model such as wav2vec 2.0")
        self.task, self.processor = task, sound_processor(folder)
        self.rate = int(self.processor.sampling_rate)
        self.most = max(frame_samples(config), round(seconds * self.rate))
        longest = max((len(one) for one in self._heard(train)), default=0)
        self.samples = min(self.most, max(longest, frame_samples(config)))
        self.streams, self.pictures = "", []
        self.sizes = Sizes(task.classes, numbers=self.samples, shape=(self.samples,))

    @property
    def decoder(self) -> str:
        return sound_decoder()

    def _heard(self, batch: Columns) -> list[NDArray[np.float32]]:
        files = batch[self.task.inputs[0]]
        return [samples(file, self.rate, f"sound {place} of {len(files)}") for place, file in enumerate(files)]

    def inputs(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """No categories, (n, 0), and samples (n, T) float32, normalised as the processor does, 0 after a sound's
        end."""
        heard = self._heard(batch)
        found = np.zeros((len(heard), self.samples), np.float32)
        for place, one in enumerate(heard):
            some = one[: self.samples]
            if len(some):
                given = self.processor(some, sampling_rate=self.rate, return_tensors="np")["input_values"][0]
                found[place, : len(some)] = given
        return torch.zeros((len(heard), 0), dtype=torch.int64), torch.from_numpy(found)

    def rows(self, batch: Columns) -> tuple[Tensor, Tensor]:
        return self.inputs(batch)
