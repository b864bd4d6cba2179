"""Encoded audio as a log-mel spectrogram: the input of networks that are trained from scratch.

Windows of 25 ms every 10 ms at 16 kHz, 40 triangular filters of equal width and height on the mel scale (Davis and
Mermelstein, IEEE TASSP 1980; mel(f) = 2595 log10(1 + f / 700)), the logarithm to base 10, clipped 8 below the maximum
of the clip and scaled to about -1 to 1 as in Radford et al., ICML 2023 (arXiv:2212.04356), section 2.2 and code.
"""

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...benchmarks.model import Columns, Task
from ...core.errors import BadData, ModelError
from ...loaders.batching.audio import describe_audio_decoder, read_samples
from ...loaders.batching.encoded import BadAudio, is_audio, is_encoded
from .encoding import AnswerEncoding, Sizes

RATE = 16_000
"""Samples a second."""

WINDOW, STEP, BANDS = 400, 160, 40
LONGEST = 10 * RATE
"""The most samples of an audio clip that are read."""

_SHARE = 0.95
"""The fraction of training clips that are read whole, if they are no longer than the maximum."""

_LOOKED_AT = 16
"""The number of files that are checked to find out whether a column is audio: one alone may be broken."""


@cache
def make_mel_filters() -> NDArray[np.float64]:
    """The mel filters over the frequencies of a window's transform, (BANDS, WINDOW // 2 + 1)."""
    ends = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), BANDS + 2)
    low, middle, high = (700 * (10 ** (mel / 2595) - 1) for mel in (ends[:-2], ends[1:-1], ends[2:]))
    at = np.linspace(0, RATE / 2, WINDOW // 2 + 1)
    rising = (at - low[:, None]) / (middle - low)[:, None]
    falling = (high[:, None] - at) / (high - middle)[:, None]
    return np.maximum(0, np.minimum(rising, falling))


def compute_log_mel(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Samples at `RATE` (n,), at least `WINDOW` of them, as (frames, BANDS) with 1 + (n - WINDOW) // STEP frames."""
    windows = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), WINDOW)[::STEP]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    power = np.abs(np.fft.rfft(windows * hann)) ** 2
    log_power = np.log10(np.maximum(power @ make_mel_filters().T, 1e-10))
    return np.asarray((np.maximum(log_power, log_power.max() - 8) + 4) / 4, np.float32)


class SpectrogramEncoding(AnswerEncoding):
    """One audio clip as a log-mel spectrogram, (frames, BANDS), cut off or padded with silence to the 95th percentile
    of the lengths in training: a function of the clip only, whatever else is in the batch."""

    def __init__(self, task: Task, train: Columns) -> None:
        if not is_audio_task(task, train):
            raise ModelError(f"a spectrogram needs one audio input, and this task has {', '.join(task.inputs)}")
        super().__init__(task, train)
        lengths = sorted(map(len, self._decode_audio(train)))
        self.samples = min(LONGEST, max(WINDOW, lengths[int(_SHARE * (len(lengths) - 1))]))
        shape = (1 + (self.samples - WINDOW) // STEP, BANDS)
        self.sizes = Sizes(self.targets.outputs, numbers=shape[0] * shape[1], shape=shape, names=task.names)
        self.decoder = describe_audio_decoder()
        self.encoding = f"log-mel spectrograms: {task.inputs[0]} ({shape[0]} frames of 10 ms, {BANDS} bands)"

    def readable(self, batch: Columns) -> NDArray[np.bool_]:
        files = batch[self.task.inputs[0]]
        mask = np.ones(len(files), bool)
        for index, file in enumerate(files):
            try:
                read_samples(file, RATE, "")
            except BadData:
                mask[index] = False
        return mask

    def _decode_audio(self, batch: Columns) -> list[NDArray[np.float32]]:
        files, waveforms = batch[self.task.inputs[0]], []
        for index, file in enumerate(files):
            try:
                waveforms.append(read_samples(file, RATE, ""))
            except BadData as error:
                why = str(error).removeprefix(" cannot be read as WAV: ")
                raise BadAudio.at(index, len(files), why) from error
        return waveforms

    def inputs(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """No categories, (n, 0), and flattened spectrograms (n, frames * BANDS) float32."""
        waveforms = self._decode_audio(batch)
        spectrograms = np.zeros((len(waveforms), *self.sizes.shape), np.float32)
        for index, waveform in enumerate(waveforms):
            some = np.zeros(self.samples, np.float32)
            some[: len(waveform)] = waveform[: self.samples]
            spectrograms[index] = compute_log_mel(some)
        flat = torch.from_numpy(spectrograms.reshape(len(waveforms), self.sizes.numbers))
        return torch.zeros((len(waveforms), 0), dtype=torch.int64), flat


def is_audio_task(task: Task, train: Columns) -> bool:
    """Whether a task's only input is encoded audio."""
    if len(task.inputs) != 1:
        return False
    some = train[task.inputs[0]][:_LOOKED_AT]
    return is_encoded(some) and is_audio(some)
