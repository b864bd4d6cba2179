"""Decode audio files to mono samples at a given sampling rate."""

from __future__ import annotations

import io
import warnings
from math import gcd

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, MissingExtra, get_first_line
from ...core.limits import SAMPLES, SAMPLING_RATE


def read_samples(content: bytes, rate: int, named: str) -> NDArray[np.float32]:
    """Decode a WAV file to samples from -1 to 1, shape (n,), at `rate` Hz: the mean of its channels, resampled by a
    polyphase filter if it was recorded at another rate (`scipy.signal.resample_poly`, whose defaults determine the last
    bits: `describe_audio_decoder` names its version).

    Raises `BadData`, whose message begins with `named`, for a file that cannot be read, and `MissingExtra` without
    SciPy."""
    try:
        from scipy.io import wavfile
        from scipy.signal import resample_poly
    except ImportError as error:
        raise MissingExtra("decoding audio", "train") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about chunks without samples
            recorded_rate, values = wavfile.read(io.BytesIO(content))
    except MemoryError:  # not a fault of the file
        raise
    except Exception as error:  # a damaged file may raise any exception
        raise BadData(f"{named} cannot be read as WAV: {get_first_line(error)}") from error
    if recorded_rate > SAMPLING_RATE or len(values) * rate > SAMPLES * recorded_rate:
        raise BadData(
            f"{named} has {len(values):,} samples at {recorded_rate:,} Hz; read are up to {SAMPLING_RATE:,} Hz, and up "
            f"to {SAMPLES:,} samples at {rate:,} Hz"
        )
    loud = np.iinfo(values.dtype).max + 1.0 if values.dtype.kind in "iu" else 1.0
    quiet = loud / 2 if values.dtype == np.uint8 else 0.0  # 8-bit samples are centred at 128
    signal = (values.astype(np.float64) - quiet) / (loud - quiet)
    signal = signal.mean(axis=1) if signal.ndim == 2 else signal
    if recorded_rate != rate and len(signal):
        shared = gcd(recorded_rate, rate)
        signal = resample_poly(signal, rate // shared, recorded_rate // shared)
    return np.ascontiguousarray(signal, np.float32)


def describe_audio_decoder() -> str:
    """Return the name and version of the library that decodes audio."""
    import scipy

    return f"SciPy {scipy.__version__}"
