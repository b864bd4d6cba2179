"""`farshift run` on tiny pretrained networks, from the command line to the run card: what each paper's method leaves.

The command runs in this process, which has transformers already: importing it takes longer than all that is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import picture_split
import pytest
import tiny_vision
from encoded_files import folder, picture
from farshift import read_run
from farshift.benchmarks.runs.run import Run
from farshift.cli import app
from typer.testing import CliRunner

pytest.importorskip("transformers")

FAST = ("--on", "photos/sketch", "--budget", "quick", "--seeds", "1", "--steps", "4")


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A benchmark of 8 x 8 pictures, and the weights of a ViT, a ResNet and a CLIP."""
    here: Path = tmp_path_factory.mktemp("own")
    names = [
        f"{position}/{kind}/{n}.png"
        for position in ("art", "photo", "sketch")
        for kind in ("jump", "run")
        for n in range(8)
    ]
    folder(here / "photos", {name: picture(number, side=8) for number, name in enumerate(names)})
    (here / "draft.toml").write_text(picture_split.DRAFT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_PATH", str(here))
        command("splits", "build", here / "draft.toml", "--out", here / "splits/manifests")
    for kind in ("vit", "resnet", "clip"):
        tiny_vision.saved(here / kind, kind)
    return here


def command(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(item) for item in arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def go(home, tmp_path, monkeypatch):
    """Run a baseline from the folder in which the weights lie, in the settings that are given as TOML; its folder."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("FARSHIFT_PATH", str(home))

    def run(*arguments: object, settings: str = "", out: str = "run") -> Path:
        if settings:
            (tmp_path / "settings.toml").write_text(settings)
            arguments = (*arguments, "--settings", tmp_path / "settings.toml")
        command("run", *arguments, *FAST, "--out", tmp_path / out)
        result: Path = tmp_path / out
        return result

    return run


def more(run: Run) -> dict[str, Any]:
    return dict(run.card.model.extra)


def test_published_methods_run_on_one_pretrained_transformer(go):
    """WiSE-FT, LiNeS, PEGO and DFR beside each other: a run folder each, with the weights on its card."""
    names = ("wise-ft", "lines", "pego", "dfr")
    out = go(*names, "--fine-tune", "./vit")
    for name in names:
        run = read_run(out / name)
        assert run.model == f"{name} (vit, fine-tuned)"
        ((weights,), changed) = more(run)["pretrained"], more(run)["recipe"]
        assert weights["name"] == "vit"
        assert (changed["network"], changed["settings"]["weights"]) == ("pretrained", "vit")
        assert run.card.spent.by_seed["seed_0"]["steps"] == 4
    assert more(read_run(out / "pego"))["recipe"]["settings"]["lr"] == 5e-4


def test_lp_ft_and_a_linear_probe_are_settings_that_are_tried_beside_each_other(go):
    run = read_run(
        go("erm", "--fine-tune", "./resnet", settings='[lp-ft]\nprobe_steps = 2\n[probe]\nfreeze = "body"\n')
    )
    assert more(run)["settings"] == {"lp-ft": {"probe_steps": 2}, "probe": {"freeze": "body"}}
    assert len(run.candidates) == 2


def test_wise_ft_starts_from_clip_s_zero_shot_head(go):
    """With alpha = 0 it is the zero-shot classifier, whatever is trained."""
    zero = '[it]\nhead = "zero-shot"\nalpha = 0.0\ntemplates = "look {} ."\n'
    slow, fast = (
        read_run(go("wise-ft", "--fine-tune", "./clip", settings=f"{zero}lr = {rate}\n", out=f"at-{rate}"))
        for rate in ("1e-5", "1e-2")
    )
    assert slow.predictions().select(["prediction"]).equals(fast.predictions().select(["prediction"]))


def test_weights_that_settings_name_are_on_the_card_with_those_of_a_teacher(go):
    both = '[other]\nweights = "./resnet"\n[taught]\nteacher_weights = "./resnet"\n'
    run = read_run(go("weak-to-strong", "--fine-tune", "./vit", settings=both))
    assert run.model == "weak-to-strong (resnet, vit, fine-tuned, 2 settings)"
    assert [item["name"] for item in more(run)["pretrained"]] == ["resnet", "vit"]
    assert len({item["digest"] for item in more(run)["pretrained"]}) == 2
    assert more(run)["settings"] == {"other": {"weights": "resnet"}, "taught": {"teacher_weights": "resnet"}}


def test_what_scikit_learn_calls_weights_is_no_pretraining(go):
    run = read_run(go("knn", "--encoder", "./resnet", settings='[it]\nweights = "distance"\n'))
    assert [item["name"] for item in more(run)["pretrained"]] == ["resnet"]
    assert more(run)["settings"] == {"it": {"weights": "distance"}}
