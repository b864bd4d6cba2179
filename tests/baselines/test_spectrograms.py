"""Sounds as log-mel spectrograms, and what trains on them."""

from __future__ import annotations

import io

import numpy as np
import pytest
from farshift import Answers
from farshift.baselines.encoding.bad_files import answer_readable_rows, report_bad_rows
from farshift.baselines.encoding.log_mel import (
    BANDS,
    RATE,
    STEP,
    WINDOW,
    SpectrogramEncoding,
    compute_log_mel,
    make_mel_filters,
)
from farshift.baselines.encoding.token_ids import choose_encoding
from farshift.benchmarks.model import Task
from farshift.core.errors import BadData, ModelError
from scipy.io import wavfile
from scipy.signal import stft

TASK = Task("classification", ("audio",), "digit", classes=2)


def wav(values: np.ndarray, rate: int = RATE) -> bytes:
    out = io.BytesIO()
    wavfile.write(out, rate, (values * 2**15 * 0.9).astype(np.int16))
    return out.getvalue()


def tone(hertz: float, seconds: float, rate: int = RATE) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


def column(*files: bytes) -> np.ndarray:
    result = np.empty(len(files), object)
    result[:] = files
    return result


def batch(*files: bytes) -> dict[str, np.ndarray]:
    return {"audio": column(*files), "digit": np.zeros(len(files), np.int64)}


def test_a_spectrogram_is_that_of_scipys_short_time_fourier_transform_through_the_mel_filters():
    noise = np.random.default_rng(0).normal(size=RATE // 2).astype(np.float32)
    _, _, result = stft(noise, RATE, "hann", WINDOW, WINDOW - STEP, boundary=None, padded=False)
    power = np.abs(result.T * (np.hanning(WINDOW + 1)[:-1].sum())) ** 2
    expected = np.log10(np.maximum(power @ make_mel_filters().T, 1e-10))
    expected = (np.maximum(expected, expected.max() - 8) + 4) / 4
    np.testing.assert_allclose(compute_log_mel(noise), expected, atol=1e-5)


def test_the_filters_are_triangles_that_are_equally_wide_in_mel():
    pytest.importorskip("transformers")
    from transformers.audio_utils import mel_filter_bank

    theirs = mel_filter_bank(WINDOW // 2 + 1, BANDS, 0, RATE / 2, RATE, norm=None, mel_scale="htk")
    np.testing.assert_allclose(make_mel_filters(), theirs.T, atol=1e-9)


def test_a_higher_tone_lies_in_a_higher_band():
    loudest = [
        int(compute_log_mel(tone(hertz, 0.2).astype(np.float32)).mean(axis=0).argmax()) for hertz in (200, 800, 3200)
    ]
    middles = 2595 * np.log10(1 + RATE / 2 / 700) / (BANDS + 1) * (np.array(loudest) + 1)
    np.testing.assert_allclose(700 * (10 ** (middles / 2595) - 1), (200, 800, 3200), rtol=0.15)


def test_a_sound_is_cut_off_or_filled_up_to_the_length_of_nearly_all_and_stands_for_itself():
    sounds = [wav(tone(300, 0.3))] * 19 + [wav(tone(300, 5))]
    coding = SpectrogramEncoding(TASK, batch(*sounds))
    assert coding.sizes.shape == (1 + (round(0.3 * RATE) - WINDOW) // STEP, BANDS)
    assert coding.encoding == f"log-mel spectrograms: audio ({coding.sizes.shape[0]} frames of 10 ms, 40 bands)"
    short, long = wav(tone(500, 0.01)), wav(tone(500, 2))
    _, both = coding.inputs(batch(short, long))
    assert both.shape == (2, coding.sizes.numbers)
    assert both[0].equal(coding.inputs(batch(short))[1][0])
    silent = wav(np.zeros(3))
    assert coding.inputs(batch(silent))[1].unique().numel() == 1


def test_a_sound_recorded_at_another_rate_has_nearly_the_same_spectrogram():
    coding = SpectrogramEncoding(TASK, batch(wav(tone(500, 0.5))))
    _, result = coding.inputs(batch(wav(tone(500, 0.5)), wav(tone(500, 0.5, 8000), 8000)))
    bands = result.view(2, *coding.sizes.shape)[:, 5:-5].mean(dim=1)
    assert bands[0].argmax() == bands[1].argmax()
    assert abs(bands[0].max() - bands[1].max()) < 0.02


def test_sounds_are_told_from_pictures_by_their_first_bytes():
    from PIL import Image

    settings = {"inputs": "auto", "side": 4, "buckets": 8, "decoder": "pillow"}
    sounds = batch(b"", wav(tone(300, 0.3)))
    with pytest.raises(BadData, match="audio clip 0 of 2 cannot be decoded"):
        choose_encoding(TASK, sounds, settings)
    assert isinstance(choose_encoding(TASK, batch(wav(tone(300, 0.3))), settings), SpectrogramEncoding)
    out = io.BytesIO()
    Image.new("RGB", (4, 4)).save(out, "PNG")
    with pytest.raises(ModelError, match="a spectrogram needs one audio input, and this task has audio"):
        SpectrogramEncoding(TASK, batch(out.getvalue()))


def test_a_broken_sound_is_named_by_its_row_in_training_and_counts_as_wrong_in_a_test():
    good = wav(tone(300, 0.3))
    coding = SpectrogramEncoding(TASK, batch(good))

    class Rows:
        row_ids = np.array([7, 255], np.uint64)

    with (
        pytest.raises(BadData, match="row 00000000000000ff: its audio clip cannot be decoded"),
        report_bad_rows(Rows()),
    ):
        coding.encode(batch(good, b"RIFF0000WAVE"))

    def ask(some: dict[str, np.ndarray]) -> list[Answers]:
        return [Answers.all_given(np.ones(len(coding.inputs(some)[1]), np.int64))]

    (result,) = answer_readable_rows(coding, {"audio": column(good, b"cut", good)}, ask)
    assert coding.readable({"audio": column(good, b"cut", good)}).tolist() == [True, False, True]
    assert result.answered.tolist() == [True, False, True]
