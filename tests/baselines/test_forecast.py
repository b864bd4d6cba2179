"""What a run is forecast to take: each size of pictures by itself, and one's own files as no download."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from encoded_files import folder, picture
from farshift.baselines.running.forecast import Forecast, estimate_cost
from farshift.baselines.running.forecast_text import format_cost_rows
from farshift.baselines.running.resources import is_audio_input
from farshift.baselines.running.sweep import make_budget, make_plan
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.model import Task
from farshift.benchmarks.model_inputs.load import load_model_inputs
from farshift.benchmarks.model_inputs.rows import ModelRows
from farshift.cli import app
from farshift.loaders.acquire.download_size import DownloadSize, compute_download_size
from farshift.loaders.acquire.source import find_source
from farshift.loaders.batching.encoded import EncodedFiles
from farshift.splits.schema import Field, Schema
from scipy.io import wavfile
from typer.testing import CliRunner

SPLIT = """
name = "photos/sketch"
version = 1
kind = "domain"
title = "Tested elsewhere"
label = "kind"
rule = "domain/hold_out"
parameters = { field = "domain", ood = ["sketch"] }
data = { images = "photos/{domain}/{kind}/{file}", inputs = ["image"], labels = ["kind"], meta = ["domain"] }
benchmark = {}
"""
TEXTS = """
name = "reviews/long"
version = 1
kind = "length"
title = "Stars of longer reviews"
label = "stars"
rule = "length/threshold"
parameters = { field = "text", at_most = 20 }
severity = { name = "length", unit = "words" }
data = { files = ["reviews.csv"], inputs = ["text"], labels = ["stars"] }
benchmark = {}
"""


def sound(number: int) -> bytes:
    out = io.BytesIO()
    wavfile.write(out, 8000, np.random.default_rng(number).integers(-9999, 9999, 2000).astype(np.int16))
    return out.getvalue()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Benchmarks of one's own: pictures of three domains, and texts in a file."""
    here: Path = tmp_path_factory.mktemp("own")
    names = [
        f"{position}/{kind}/{n}"
        for position in ("art", "photo", "sketch")
        for kind in ("cat", "dog")
        for n in range(10)
    ]
    folder(here / "photos", {f"{name}.png": picture(number, side=12) for number, name in enumerate(names)})
    rows = [f"{' '.join(['word'] * (3 + row % 30))} {row},{row % 5}" for row in range(200)]
    (here / "reviews.csv").write_text("\n".join(["text,stars", *rows]) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_PATH", str(here))
        for text in (SPLIT, TEXTS):
            (here / "draft.toml").write_text(text)
            done = CliRunner().invoke(
                app, ["splits", "build", str(here / "draft.toml"), "--out", str(here / "splits/manifests")]
            )
            assert done.exit_code == 0, done.output
        yield here


def of(on: str, settings=None, seeds: int = 1, name: str = "cnn") -> Forecast:
    return estimate_cost(make_plan(name, on, Path("runs"), make_budget("quick", 3), seeds=seeds, settings=settings))


def needed(found: Forecast, what: str) -> int:
    return sum(need.bytes for need in found.needs if need.what == what)


def test_each_size_of_pictures_is_tried_by_itself_and_they_are_added_up(home):
    result = of("photos/sketch", {"small": {"side": 8}, "large": {"side": 24}, "fast": {"side": 8, "lr": 0.1}}, seeds=2)
    assert [item.side for item in result.probes] == [8, 24]
    assert [item.replicas for item in result.probes] == [4, 2]
    assert result.replicas == 6
    rows = sum(result.rows[name] for name in ("train", "id_val", "predicted"))
    assert needed(result, "decoded images") == 3 * (8**2 + 24**2) * rows
    small, large = result.probes
    assert needed(result, "the networks") == 4 * (4 * small.parameters + 2 * large.parameters)
    steps = 3 * (small.step_seconds + large.step_seconds)
    assert result.seconds["training"] == pytest.approx(steps)
    plain = result.to_dict()
    assert plain["measured"]["side"] == 8
    assert [item["side"] for item in plain["measured_at_other_sizes"]] == [24]
    assert sum(", at 24 x 24" in output for _, output in format_cost_rows(result)) == 1


def test_files_are_sounds_by_their_bytes(home):
    """Then they are not charged as pictures are."""

    def rows(files: list[bytes]) -> Any:
        schema = Schema((Field("heard", "image", "input"), Field("kind", "int64", "label")))
        train = ModelRows(
            {"heard": EncodedFiles(pa.chunked_array([files], pa.binary()))}, np.arange(2, dtype=np.uint64)
        )
        task = Task("classification", ("heard",), "kind", classes=2)
        return SimpleNamespace(task=task, schema=schema, part=lambda _: train)

    assert is_audio_input(rows([sound(0), b"cut off"]))
    assert not is_audio_input(rows([picture(0), picture(1)]))
    assert not is_audio_input(load_model_inputs(find_benchmark("photos/sketch")))
    assert not is_audio_input(load_model_inputs(find_benchmark("reviews/long")))


def test_one_s_own_files_are_no_download_and_their_copies_take_room(home, cache):
    size = (home / "reviews.csv").stat().st_size
    assert compute_download_size("reviews") == DownloadSize(0, (), size)
    assert compute_download_size("photos") == DownloadSize()
    result = of("reviews/long", name="mlp")
    assert needed(result, "copies of local files") == size
    output = dict(map(tuple, format_cost_rows(result)))["download"]
    assert output.startswith("nothing; ")
    assert output.endswith(" of local files are copied to the cache")


def test_a_file_in_a_folder_of_mirrors_is_no_download(tmp_path, cache, monkeypatch):
    pins = find_source("wine_quality").definition.distributions[0].files
    size = sum(pin.bytes for pin in pins)
    assert compute_download_size("wine_quality") == DownloadSize(size)
    (tmp_path / "mine" / "deep").mkdir(parents=True)
    monkeypatch.setenv("FARSHIFT_MIRRORS", str(tmp_path / "mine"))
    first = tmp_path / "mine" / "deep" / pins[0].name
    first.write_bytes(bytes(pins[0].bytes))
    assert compute_download_size("wine_quality") == DownloadSize(size - pins[0].bytes, (), pins[0].bytes)
    first.write_bytes(bytes(pins[0].bytes - 1))
    assert compute_download_size("wine_quality") == DownloadSize(size)
    before = compute_download_size("spoken_digits")
    tree = find_source("spoken_digits").definition.distributions[0].trees[0]
    assert before.unknown
    (tmp_path / "mine" / f"{tree.name}.tar").write_bytes(b"")
    assert compute_download_size("spoken_digits") == DownloadSize()
