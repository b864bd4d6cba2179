"""Encoded sounds as samples of one channel at one rate."""

from __future__ import annotations

import io

import numpy as np
import pytest
from farshift.core.errors import BadData
from farshift.loaders.batching.audio import describe_audio_decoder, read_samples
from scipy.io import wavfile

TONE = np.sin(2 * np.pi * 5 * np.arange(800) / 800)


def wav(values: np.ndarray, rate: int = 800) -> bytes:
    out = io.BytesIO()
    wavfile.write(out, rate, values)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["int16", "int32", "uint8", "float32"])
def test_samples_of_every_width_are_between_minus_one_and_one(kind: str) -> None:
    scaled = {"int16": TONE * 2**15 * 0.99, "int32": TONE * 2**31 * 0.99, "uint8": TONE * 126 + 128, "float32": TONE}
    result = read_samples(wav(scaled[kind].astype(kind)), 800, "it")
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, TONE, atol=0.03)


def test_channels_are_averaged_and_another_rate_is_resampled() -> None:
    two = np.stack([TONE, TONE * 0.5], axis=1).astype(np.float32)
    np.testing.assert_allclose(read_samples(wav(two), 800, "it"), 0.75 * TONE, atol=1e-6)
    half = read_samples(wav(TONE.astype(np.float32)), 400, "it")
    assert half.shape == (400,)
    np.testing.assert_allclose(half[20:-20], TONE[::2][20:-20], atol=0.02)


def test_what_is_no_wav_is_named() -> None:
    with pytest.raises(BadData, match="sound 3 cannot be read as WAV"):
        read_samples(b"no sound", 800, "sound 3")
    assert describe_audio_decoder().split()[0] == "SciPy"
