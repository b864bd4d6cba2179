"""The pictures of a part that is asked about make one entry of the cache, however many batches ask."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import picture_split
import pyarrow as pa
import pytest
from encoded_files import picture
from farshift.baselines.baseline import Baseline
from farshift.baselines.running.sweep import run_baseline
from farshift.benchmarks.harness import predictor
from farshift.benchmarks.model import Budget, Task
from farshift.loaders.batching.encoded import EncodedFiles

from .toys import Rows, recipe

TASK = Task("classification", ("image",), "kind", classes=2)
FILES = [picture(number) for number in range(20)]


def column(files: list[bytes]) -> np.ndarray:
    result = np.empty(len(files), object)
    result[:] = files
    return result


def entries(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "images").glob("*.npy"))


def fitted() -> Baseline:
    model = Baseline(recipe("mlp", 3, batch_size=2), TASK, 0, "toy/toy", {"side": 8})
    model.fit(Rows(image=column(FILES[:6]), kind=np.arange(6) % 2), None, Budget())
    return model


def in_threes(model: Baseline, files: list[bytes]) -> np.ndarray:
    batches = [{"image": column(files[start : start + 3])} for start in range(0, len(files), 3)]
    return np.concatenate([model.predict(batch).scores for batch in batches])


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "one cut off"])
def test_announced_files_are_one_entry_and_have_the_answers_of_files_that_were_not(broken, cache):
    requested = [*FILES[8:13], FILES[13][:90] if broken else FILES[13], *FILES[14:], FILES[9]]
    expected, before = in_threes(fitted(), requested), entries(cache)
    assert len(before) == 1 + 5, "training rows, and each batch"
    model = fitted()
    model.farshift_announce({"image": EncodedFiles(pa.chunked_array([pa.array(requested)]))})
    announced = entries(cache)
    np.testing.assert_array_equal(in_threes(model, requested), expected)
    assert len(announced) == len(before) + 1
    assert entries(cache) == announced, "a batch adds none"


def test_what_does_not_fit_the_cache_is_decoded_batch_by_batch(cache, monkeypatch):
    expected = in_threes(fitted(), FILES[8:])
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "1kB")
    model = fitted()
    model.farshift_announce({"image": EncodedFiles(pa.chunked_array([pa.array(FILES[8:])]))})
    np.testing.assert_array_equal(in_threes(model, FILES[8:]), expected)


def test_a_run_leaves_an_entry_for_each_part(tmp_path, cache, monkeypatch):
    picture_split.split(tmp_path, monkeypatch)
    plain = predictor.Predictor.of
    monkeypatch.setattr(predictor.Predictor, "of", lambda benchmark, **more: plain(benchmark, 3, **more))
    run = run_baseline("mlp", "photos/sketch", seeds=2, budget="quick", steps=2, out=tmp_path / "run")
    parts = set(run.predictions()["part"].to_pylist())
    assert len(entries(cache)) == len(parts | {"train"})
