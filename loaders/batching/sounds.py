"""Encoded sounds as samples: one channel, at the rate that a model asks for."""

from __future__ import annotations

import io
import warnings
from math import gcd

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, MissingExtra, first_line


def samples(content: bytes, rate: int, named: str) -> NDArray[np.float32]:
    """A WAV file as samples from -1 to 1, (n,), at `rate` a second: the mean of its channels, resampled by a polyphase
    filter where it was recorded at another rate (`scipy.signal.resample_poly`, whose defaults decide the last bits:
    `sound_decoder` names it).

    Raises `BadData`, which begins with `named`, for a file that cannot be read, and `MissingExtra` without SciPy."""
    try:
        from scipy.io import wavfile
        from scipy.signal import resample_poly
    except ImportError as error:
        raise MissingExtra("decoding sounds", "train") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # chunks that hold no samples
            recorded, found = wavfile.read(io.BytesIO(content))
    except MemoryError:  # says nothing of the sound
        raise
    except Exception as error:  # a damaged file raises anything
        raise BadData(f"{named} cannot be read as WAV: {first_line(error)}") from error
    loud = np.iinfo(found.dtype).max + 1.0 if found.dtype.kind in "iu" else 1.0
    quiet = loud / 2 if found.dtype == np.uint8 else 0.0  # 8 bits are written around 128
    one = (found.astype(np.float64) - quiet) / (loud - quiet)
    one = one.mean(axis=1) if one.ndim == 2 else one
    if recorded != rate and len(one):
        shared = gcd(recorded, rate)
        one = resample_poly(one, rate // shared, recorded // shared)
    return np.ascontiguousarray(one, np.float32)


def sound_decoder() -> str:
    """What reads sounds, with its version."""
    import scipy

    return f"SciPy {scipy.__version__}"
