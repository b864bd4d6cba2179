"""`farshift run` on features of an encoder that are made once, and on pictures that lie elsewhere and are not kept whole."""

import json
import shutil
from pathlib import Path
from typing import Any

import picture_split
import pytest
import tiny_vision
from encoded_files import folder, picture
from farshift import FarshiftError, load, read_run, score
from farshift.baselines.encoding import frozen
from farshift.baselines.encoding.checkpoint import find_checkpoint
from farshift.baselines.running.published import RecipeOverrides
from farshift.baselines.running.sweep import make_budget, make_plan, run_baseline
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.model_inputs.load import remove_secrets
from farshift.cli import app
from farshift.core.files import get_cache_root
from farshift.leaderboard.submission.pack import _declare_pretraining
from farshift.leaderboard.validation.card import ModelCard
from servers import serve_folder
from typer.testing import CliRunner

DOMAINS = ("art_painting", "cartoon", "photo", "sketch")


@pytest.fixture
def home(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PACS in small: four domains, two classes, ten pictures of each."""
    pytest.importorskip("transformers")
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
    assert known.card.model.extra["pretrained"] == [
        {"name": "tiny-resnet", "digest": find_checkpoint("./tiny-resnet").digest}
    ]
    stated = [
        _declare_pretraining(ModelCard(pretraining=output), [known]).pretraining
        for output in (["unknown"], [], ["imagenet"])
    ]
    assert stated == [["unknown"], ["tiny-resnet"], ["imagenet", "tiny-resnet"]]


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


NAME = "photos/sketch"
HELD_OUT = [{"part": "train", "to": "id_test", "share": 0.3}, {"part": "train", "to": "id_val", "share": 0.2}]
HOW: dict[str, Any] = {"seeds": 2, "budget": "quick", "steps": 6}


@pytest.fixture
def exported(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The benchmark's parts as exports, each in a folder of its name; and no copy of the rows but these."""
    benchmark = picture_split.split(tmp_path, monkeypatch, holdouts=HELD_OUT)
    for name in benchmark.manifest.definition.parts:
        load(NAME, name).to_webdataset(tmp_path / "shards" / name)
    return tmp_path / "shards"


def without_a_copy(home: Path) -> None:
    """Remove the cache, and the files that the source could be read from again."""
    shutil.rmtree(get_cache_root())
    (home / "photos").rename(home / "gone")


def outcome(run: Any) -> tuple[bytes, Any]:
    return (run.path / "predictions.parquet").read_bytes(), score(run).to_dict()["views"]


def test_a_run_on_a_stream_has_the_answers_and_scores_of_one_on_the_rows_here(exported, tmp_path):
    expected = outcome(run_baseline("mlp", NAME, out=tmp_path / "here", **HOW))
    row = next(find_benchmark(NAME).part("train").batches(1, columns=["image"]))
    without_a_copy(tmp_path)
    with serve_folder(exported) as site:
        at = f"{site.url}/{{part}}"
        run = run_baseline("mlp", NAME, out=tmp_path / "there", stream=at, **HOW)
    assert run.card.model.extra["streamed"] == at
    assert outcome(run) == expected, "with the server gone, it is scored by what was kept of the rows"
    stored = list(get_cache_root().rglob("*.arrow"))
    assert {path.parent.name for path in stored if "train" in path.name}, "labels of the training rows"
    assert not any(bytes(row["image"][0]) in path.read_bytes() for path in stored), "and none of their pictures"


def test_what_cannot_be_trained_on_a_stream_is_refused_before_anything_is_read(exported, tmp_path):
    budget, changes = make_budget("quick", 2), RecipeOverrides(stream=f"{exported}/{{part}}")
    with pytest.raises(FarshiftError, match=r"an estimator reads all rows at once, .*: leave --stream out, or train a"):
        make_plan("random-forest", NAME, tmp_path / "a", budget, changes=changes)
    with pytest.raises(FarshiftError, match="scan/length: only images and audio files can be streamed, and its input"):
        make_plan("transformer", "scan/length", tmp_path / "b", budget, changes=changes)
    assert not (tmp_path / "a").exists() and not (tmp_path / "b").exists()


def test_an_address_that_holds_one_part_says_where_the_name_of_the_others_goes(exported, tmp_path):
    without_a_copy(tmp_path)
    with pytest.raises(FarshiftError, match=r"write \{part\} in place of its name"):
        run_baseline("mlp", NAME, out=tmp_path / "run", stream=str(exported / "train"), **HOW)
    shutil.rmtree(exported / "ood_test")
    with pytest.raises(FarshiftError, match="ood_test"):
        run_baseline("mlp", NAME, out=tmp_path / "run", stream=f"{exported}/{{part}}", **HOW)


def test_a_card_says_an_address_without_its_secrets():
    assert remove_secrets("https://me:key@example.org/a/{part}?token=x#y") == "https://example.org/a/{part}"
    assert remove_secrets("hf://datasets/org/name@main/{part}") == "hf://datasets/org/name@main/{part}"
    assert remove_secrets("/home/someone/shards/{part}") == "shards/{part}"
    assert remove_secrets("/home/someone/rows-*.parquet") == "rows-*.parquet"
