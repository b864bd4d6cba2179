"""Encoded sounds as samples: one channel, at the rate that a model asks for."""

from __future__ import annotations

import io
import warnings
from math import gcd

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, MissingExtra, get_first_line


def read_samples(content: bytes, rate: int, named: str) -> NDArray[np.float32]:
    """A WAV file as samples from -1 to 1, (n,), at `rate` a second: the mean of its channels, resampled by a polyphase
    filter where it was recorded at another rate (`scipy.signal.resample_poly`, whose defaults decide the last bits:
    `describe_audio_decoder` names it).

    Raises `BadData`, which begins with `named`, for a file that cannot be read, and `MissingExtra` without SciPy."""
    try:
        from scipy.io import wavfile
        from scipy.signal import resample_poly
    except ImportError as error:
        raise MissingExtra("decoding sounds", "train") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # chunks that hold no samples
            recorded_rate, values = wavfile.read(io.BytesIO(content))
    except MemoryError:  # says nothing of the sound
        raise
    except Exception as error:  # a damaged file raises anything
        raise BadData(f"{named} cannot be read as WAV: {get_first_line(error)}") from error
    loud = np.iinfo(values.dtype).max + 1.0 if values.dtype.kind in "iu" else 1.0
    quiet = loud / 2 if values.dtype == np.uint8 else 0.0  # 8 bits are written around 128
    signal = (values.astype(np.float64) - quiet) / (loud - quiet)
    signal = signal.mean(axis=1) if signal.ndim == 2 else signal
    if recorded_rate != rate and len(signal):
        shared = gcd(recorded_rate, rate)
        signal = resample_poly(signal, rate // shared, recorded_rate // shared)
    return np.ascontiguousarray(signal, np.float32)


def describe_audio_decoder() -> str:
    """What reads sounds, with its version."""
    import scipy

    return f"SciPy {scipy.__version__}"
