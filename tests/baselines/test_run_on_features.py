"""`farshift run .. --encoder`: baselines on features that are made once, declared on the run card and on a submission."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny_hf
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

SPLIT = """
name = "photos/sketch"
version = 1
kind = "domain"
title = "Tested on sketches"
label = "kind"
rule = "domain/hold_out"
parameters = { field = "domain", ood = ["sketch"] }
data = { images = "photos/{domain}/{kind}/{file}", inputs = ["image"], labels = ["kind"], meta = ["domain"] }
benchmark = {}
"""
DOMAINS = ("art_painting", "cartoon", "photo", "sketch")


@pytest.fixture
def home(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PACS in small: four domains, two classes, ten pictures of each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    names = [f"{position}/{kind}/{n}.jpg" for position in DOMAINS for kind in ("dog", "horse") for n in range(10)]
    folder(tmp_path / "photos", {name: picture(number, side=12) for number, name in enumerate(names)})
    (tmp_path / "draft.toml").write_text(SPLIT)
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


@pytest.mark.slow
def test_several_baselines_train_a_pretrained_network_further(farshift, home):
    done = farshift("splits", "build", "draft.toml", "--json")
    assert done.returncode == 0, done.stderr
    run = ("--on", "photos/sketch", "--budget", "quick", "--seeds", "2", "--steps", "3", "--out", "runs", "--json")
    done = farshift("run", "erm", "coral", "--fine-tune", "./tiny-resnet", *run)
    assert done.returncode == 0, done.stderr
    assert [score["model"] for score in json.loads(done.stdout)] == [
        f"{name} (tiny-resnet, fine-tuned)" for name in ("erm", "coral")
    ]
    card = read_run("runs/coral").card
    assert card.model.extra["pretrained"] == [{"name": "tiny-resnet", "digest": digest_encoder("./tiny-resnet")}]
    assert card.spent.by_seed["seed_1"]["steps"] == 3
    done = farshift("run", "knn", "--fine-tune", "./tiny-resnet", *run[:-3], "--out", "knn")
    assert done.returncode == 2
    assert "is an estimator and has no network to fine-tune: try --encoder ./tiny-resnet" in done.stderr


TEXTS = """
name = "commands/there"
version = 1
kind = "domain"
title = "Tested in another town"
label = "turn"
rule = "domain/hold_out"
parameters = { field = "town", ood = ["there"] }
data = { files = ["commands.csv"], inputs = ["text"], labels = ["turn"], meta = ["town"] }
benchmark = {}
"""


@pytest.mark.slow
def test_a_decoder_only_text_model_is_trained_further_on_texts_of_ones_own(farshift, home, cache):
    words = tiny_hf.WORDS[:7]
    rows = [f"{' '.join(words[n * k % 7] for k in range(1, 2 + n % 9))},{n % 2},{n % 3}" for n in range(90)]
    towns = {"0": "here", "1": "near", "2": "there"}
    lines = [f"{row[:-1]}{towns[row[-1]]}" for row in rows]
    (home / "commands.csv").write_text("\n".join(["text,turn,town", *lines]) + "\n")
    (home / "texts.toml").write_text(TEXTS)
    tiny_hf.one_way(home / "tiny-llama", "llama")
    done = farshift("splits", "build", "texts.toml", "--json")
    assert done.returncode == 0, done.stderr
    run = ("--on", "commands/there", "--budget", "quick", "--seeds", "2", "--steps", "3", "--json")
    for out in ("first", "second"):
        done = farshift("run", "erm", "--fine-tune", "./tiny-llama", *run, "--out", out)
        assert done.returncode == 0, done.stderr
    item, other = (read_run(out) for out in ("first", "second"))
    assert item.predictions().equals(other.predictions())
    assert item.card.spent.by_seed["seed_1"]["tokenizer"].startswith("tokenizers ")
    assert item.card.model.extra["pretrained"] == [{"name": "tiny-llama", "digest": digest_encoder("./tiny-llama")}]
    assert list(cache.glob("tokens/tiny-llama-*.arrow"))


RATED = """
name = "commands/rated"
version = 1
kind = "domain"
title = "Rated in another town"
label = "rating"
rule = "domain/hold_out"
parameters = { field = "town", ood = ["there"] }
data = { files = ["ratings.csv"], inputs = ["text"], labels = ["rating"], meta = ["town"] }
benchmark = {}
"""


@pytest.mark.slow
def test_numbers_are_learnt_from_features_too(farshift, home):
    words = tiny_hf.WORDS[:7]
    texts = [" ".join(words[n * k % 7] for k in range(1, 2 + n % 9)) for n in range(90)]
    lines = [f"{text},{n % 9 + 0.25},{('here', 'near', 'there')[n % 3]}" for n, text in enumerate(texts)]
    (home / "ratings.csv").write_text("\n".join(["text,rating,town", *lines]) + "\n")
    (home / "ratings.toml").write_text(RATED)
    tiny_hf.one_way(home / "tiny-llama", "llama")
    done = farshift("splits", "build", "ratings.toml", "--json")
    assert done.returncode == 0, done.stderr
    run = ("--on", "commands/rated", "--budget", "quick", "--seeds", "2", "--steps", "30", "--out", "runs", "--json")
    done = farshift("run", "mlp", "coral", "ridge", "--encoder", "./tiny-llama", *run)
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    assert [score["model"] for score in scores] == [f"{name} (tiny-llama)" for name in ("mlp", "coral", "ridge")]
    assert all(0 < score["ood"]["value"] < 10 for score in scores)
    assert read_run("runs/ridge").card.model.extra["pretrained"] == [
        {"name": "tiny-llama", "digest": digest_encoder("./tiny-llama")}
    ]


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
