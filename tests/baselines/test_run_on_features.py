"""`farshift run .. --encoder`: baselines on features that are made once, declared on the run card and on a submission."""

from __future__ import annotations

import json
from pathlib import Path

import picture_split
import pytest
import tiny_vision
from encoded_files import folder, picture
from farshift import FarshiftError, read_run
from farshift.baselines.encoding import frozen
from farshift.baselines.encoding.frozen import digest_encoder
from farshift.cli import app
from farshift.leaderboard.submission.pack import _declare_pretraining
from farshift.leaderboard.validation.card import ModelCard
from typer.testing import CliRunner

pytest.importorskip("transformers")

DOMAINS = ("art_painting", "cartoon", "photo", "sketch")


@pytest.fixture
def home(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PACS in small: four domains, two classes, ten pictures of each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    names = [f"{position}/{kind}/{n}.jpg" for position in DOMAINS for kind in ("dog", "horse") for n in range(10)]
    folder(tmp_path / "photos", {name: picture(number, side=12) for number, name in enumerate(names)})
    (tmp_path / "draft.toml").write_text(picture_split.DRAFT)
    tiny_vision.saved(tmp_path / "tiny-resnet", "resnet")
    frozen._load_encoder.cache_clear()
    return tmp_path


@pytest.mark.slow
def test_several_baselines_train_on_features_that_are_made_once(farshift, home, cache):
    done = farshift("splits", "build", "draft.toml", "--json")
    assert done.returncode == 0, done.stderr
    run = ("--on", "photos/sketch", "--budget", "quick", "--seeds", "2", "--steps", "5", "--out", "runs", "--json")
    done = farshift("run", "mlp", "coral", "knn", "--encoder", "./tiny-resnet", *run)
    assert done.returncode == 0, done.stderr
    assert [score["model"] for score in json.loads(done.stdout)] == [
        f"{name} (tiny-resnet)" for name in ("mlp", "coral", "knn")
    ]
    (entry,) = [
        entry
        for entry in json.loads(farshift("cache", "list", "--json").stdout)["entries"]
        if entry["kind"] == "features"
    ]
    assert entry["name"].startswith("tiny-resnet-")
    built = {path: path.stat().st_mtime_ns for path in cache.glob("features/*/*.arrow")}
    done = farshift("run", "mlp", "--encoder", "./tiny-resnet", *run[:-3], "--out", "again", "--json")
    assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_mtime_ns for path in cache.glob("features/*/*.arrow")} == built
    known = read_run("runs/coral")
    assert known.card.model.extra["pretrained"] == [{"name": "tiny-resnet", "digest": digest_encoder("./tiny-resnet")}]
    stated = [
        _declare_pretraining(ModelCard(pretraining=output), [known]).pretraining
        for output in (("unknown",), (), ("imagenet",))
    ]
    assert stated == [("unknown",), ("tiny-resnet",), ("imagenet", "tiny-resnet")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("coral", "--on", "modadd97/xi35", "--diagnose", "all"), "--settings and --diagnose go with one baseline"),
        (("--suite", "core", "--encoder", "./tiny-resnet"), "--encoder goes with one benchmark"),
    ],
)
def test_what_goes_with_one_baseline_alone_is_refused_of_several(options, message, tmp_path):
    result = CliRunner().invoke(app, ["run", "mlp", *options, "--out", str(tmp_path / "runs")])
    assert isinstance(result.exception, FarshiftError)
    assert message in str(result.exception)
