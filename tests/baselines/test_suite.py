"""What suits what: suites of baselines and benchmarks, other networks, published settings."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.baselines.recipe import (
    Recipe,
    find_recipe,
    load_recipes,
    make_fine_tuned,
    replace_network,
    resolve_settings,
)
from farshift.baselines.running import plan as suites
from farshift.baselines.running.plan import explain_unfit, get_run_folder, make_suite_plans
from farshift.baselines.running.published import (
    RecipeOverrides,
    apply_published,
    find_published,
    list_published,
    load_all_published,
)
from farshift.baselines.running.search import draw_settings
from farshift.baselines.running.sweep import make_budget, make_plan, run_baseline
from farshift.baselines.schedules import geometric
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.model import Budget
from farshift.benchmarks.model_inputs.load import load_model_inputs
from farshift.cli import app
from farshift.core.errors import BadDefinition, ModelError, UnknownName
from typer.testing import CliRunner, Result

ON = ("modadd97/xi35", "modadd97/xi20")


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite of two benchmarks that need no download."""
    monkeypatch.setattr(suites, "load_suite", lambda name: [find_benchmark(on) for on in ON])


def ran(out: Path, *more: str, baselines: tuple[str, ...] = ("mlp",)) -> Result:
    command = ["run", *baselines, "--suite", "two", "--out", str(out), "--seeds", "2", "--steps", "2", *more]
    return CliRunner().invoke(app, command)


def fails_for(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Replicas whose name holds this text lose their numbers."""
    import torch

    full = Training.step

    def poisoned(self: Training) -> None:
        for position, name in enumerate(self.stack.algorithm.about.names):
            if text in name:
                with torch.no_grad():
                    next(self.stack.network.parameters())[position] = torch.nan
        full(self)

    monkeypatch.setattr(Training, "step", poisoned)


def test_a_suite_is_one_run_folder_for_each_pair_and_a_line_of_scores(tmp_path: Path, two: None) -> None:
    result = ran(tmp_path)
    assert result.exit_code == 0, result.output
    assert all((get_run_folder(tmp_path, on, "mlp") / "run.toml").is_file() for on in ON)
    assert f"2 runs: {tmp_path}" in result.stdout
    assert all(on in result.stdout for on in ON)


def test_steps_are_announced_once_as_of_no_use_for_estimators(tmp_path: Path, two: None) -> None:
    notes = " ".join(ran(tmp_path, baselines=("knn", "naive-bayes", "mlp")).stderr.split())
    assert notes.count("an estimator stops by its own rule") == 1
    assert "knn, naive-bayes: an estimator stops by its own rule, and steps change nothing but the protocol" in notes


def test_a_replica_that_fails_stops_no_other_and_is_listed_with_exit_code_1(
    tmp_path: Path, two: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fails_for(patch, f"{ON[0]}/1")
        result = ran(tmp_path, "--json")
    assert result.exit_code == 1
    assert [record["benchmark"] for record in json.loads(result.stdout)] == [ON[1]]
    failed = [text for text in result.stderr.splitlines() if text.startswith("failed: ")]
    assert len(failed) == 1
    assert failed[0].startswith(f"failed: mlp on {ON[0]}, seed 1: mlp/{ON[0]}/1: the loss is not finite at step 1 of 2")
    assert not (get_run_folder(tmp_path, ON[0], "mlp") / "run.toml").exists()
    assert (get_run_folder(tmp_path, ON[0], "mlp") / "shards" / "seed-0.json").is_file(), "its other replica is kept"


def test_the_same_command_goes_on_where_the_suite_stopped(
    tmp_path: Path, two: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fails_for(patch, f"{ON[0]}/1")
        assert ran(tmp_path).exit_code == 1
    done = (get_run_folder(tmp_path, ON[1], "mlp") / "run.toml").read_bytes()
    # Checkpoints hold what failed: training begins anew where they are removed.
    for file in tmp_path.glob("*/mlp/training/*"):
        file.unlink()
    trained: list[Any] = []
    full = Training.run
    monkeypatch.setattr(Training, "run", lambda self, *given: (trained.append(self), full(self, *given))[1])
    result = ran(tmp_path, "--json")
    assert result.exit_code == 0, result.output
    assert [record["benchmark"] for record in json.loads(result.stdout)] == list(ON)
    assert len(trained) == 1
    assert (get_run_folder(tmp_path, ON[1], "mlp") / "run.toml").read_bytes() == done
    assert not list(tmp_path.glob("*/mlp/training"))


def test_a_budget_that_does_not_exist_is_one_line(tmp_path: Path, two: None) -> None:
    result = ran(tmp_path, "--budget", "huge")
    assert isinstance(result.exception, FarshiftError)
    assert str(result.exception) == "budget 'huge': use full or quick"


def test_options_of_one_benchmark_are_refused_for_a_suite(tmp_path: Path, two: None) -> None:
    result = ran(tmp_path, "--search", "3")
    assert str(result.exception) == "run --suite: --search goes with one benchmark (--on)"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "lstm",
            "lstm: the network lstm is for sequence tasks, and this is a classification task: "
            "use --network deep_sets or linear or mlp or patch_network or prompt_transformer or quadratic_mlp "
            "or reward, and for images cnn or grey_mlp or resnet",
        ),
        ("irm", "it is for domain shifts, and this is corrupted-label"),
        ("mlp", ""),
    ],
)
def test_a_suite_has_only_the_baselines_that_belong(name: str, why: str) -> None:
    assert explain_unfit(find_recipe(name), find_benchmark(ON[0])) == why


def test_baselines_that_belong_nowhere_are_one_line(tmp_path: Path, two: None) -> None:
    with pytest.raises(FarshiftError, match="^none of lstm, irm fits a benchmark of the suite two$"):
        make_suite_plans("two", tmp_path, ["lstm", "irm"], Budget())


IMAGES = "optdigits/writers"


def test_an_algorithm_goes_on_another_network_at_that_networks_own_settings():
    irm = replace_network(find_recipe("irm"), "cnn")
    assert (irm.network, irm.algorithm) == ("cnn", "irm")
    settings = resolve_settings(irm, "colored_mnist_irm/color")
    assert settings["widths"] == [32, 64]
    assert settings["width"] == 128  # of cnn, where the recipe's perceptron has 390
    assert settings["penalty"] == find_recipe("irm").on["colored_mnist_irm/color"].settings["penalty"]
    assert irm.steps("full", "colored_mnist_irm/color") == 501


def test_every_recipe_of_classes_takes_every_network_of_images():
    swapped = [replace_network(item, "cnn") for item in load_recipes().values() if item.network in ("mlp", "linear")]
    assert len(swapped) > 40
    for item in swapped:
        for benchmark in ("pacs/sketch", *item.on):
            resolve_settings(item, benchmark)


def test_the_card_has_the_network_and_all_settings_in_force(tmp_path):
    slow = {"slow": {"lr": 1e-4}}
    run = run_baseline("sd", IMAGES, network="cnn", settings=slow, seeds=1, steps=1, out=tmp_path / "r")
    assert run.model == "sd (cnn, slow)"
    changed = run.card.model.extra["recipe"]
    assert (changed["network"], changed["algorithm"]) == ("cnn", "sd")
    assert changed["settings"]["widths"] == [32, 64]
    again = run_baseline("erm", IMAGES, network="mlp", seeds=1, steps=1, out=tmp_path / "same")
    assert again.model == "erm"
    assert "recipe" not in again.card.model.extra


@pytest.mark.parametrize(
    ("name", "on", "network", "why"),
    [
        ("erm", "vowel/speakers", "cnn", "cnn reads images, and vowel/speakers has no image .*linear or mlp"),
        (
            "erm",
            IMAGES,
            "lstm",
            "lstm is for sequence tasks, and this is a classification task: use --network deep_sets or ",
        ),
        ("random-forest", IMAGES, "cnn", "is an estimator and has no network"),
        ("erm", IMAGES, "pretrained", "name its weights instead, such as --fine-tune"),
    ],
)
def test_a_network_that_cannot_read_the_inputs_is_refused_before_anything_is_trained(tmp_path, name, on, network, why):
    with pytest.raises(ModelError, match=why):
        make_plan(name, on, tmp_path / "r", make_budget("quick"), 1, changes=RecipeOverrides(network=network)).check()
    assert not (tmp_path / "r").exists()


WEIGHTS = "org/name"


def tuned(name: str = "erm") -> Recipe:
    return make_fine_tuned(find_recipe(name), WEIGHTS, side=224)


def given(recipe: Recipe, name: str, benchmark: str, rows: int = 1000) -> Recipe:
    return apply_published(recipe, name, benchmark, lambda: rows)


def settings(recipe: Recipe, name: str, benchmark: str) -> dict[str, Any]:
    return resolve_settings(given(recipe, name, benchmark), benchmark)


def test_domainbed_s_defaults_are_those_of_its_registry() -> None:
    result = settings(tuned(), "domainbed", "pacs/sketch")
    expected = {"lr": 5e-5, "weight_decay": 0.0, "batch_size": 32, "dropout": 0.0, "augment": "domainbed"}
    expected |= {"optimiser": "adam", "frozen_norm": True, "each_environment": True, "weights": WEIGHTS, "side": 224}
    assert {name: result[name] for name in expected} == expected
    assert given(tuned(), "domainbed", "pacs/sketch").steps("full", "pacs/sketch") == 5001
    small = given(find_recipe("irm"), "domainbed", "rotated_mnist/angle_15")
    assert small.network == "cnn"
    assert resolve_settings(small, "")["lr"] == 1e-3
    assert resolve_settings(small, "")["batch_size"] == 64
    assert settings(tuned("arm"), "domainbed", "vlcs/C")["batch_size"] == 8


def test_an_algorithm_s_own_settings_remain() -> None:
    own = resolve_settings(find_recipe("coral"), "pacs/sketch")
    result = settings(tuned("coral"), "domainbed", "pacs/sketch")
    from farshift.baselines.recipe import find_plugin_files, read_settings

    names = read_settings(find_plugin_files("algorithms")["coral"]).keys() - {"lr", "batch_size"}
    assert {name: result[name] for name in names} == {name: own[name] for name in names}


def test_epochs_are_counted_over_the_rows_that_are_trained_on() -> None:
    built = given(find_recipe("erm"), "wilds", "wilds_camelyon17/official", rows=302_436)
    assert built.network == "resnet"
    assert built.steps("full", "") == 10 * math.ceil(302_436 / 32)
    assert built.steps("quick", "") == find_recipe("erm").steps("quick", "")
    assert resolve_settings(built, "")["momentum"] == 0.9


@pytest.mark.parametrize("name", load_all_published())
def test_every_entry_fits_a_recipe_and_says_where_it_was_read(name: str) -> None:
    for entry in load_all_published()[name].on:
        benchmark = entry.benchmarks[0].replace("*", "one")
        recipe = find_recipe(entry.algorithms[0] if entry.algorithms else "erm")
        result = find_published(name, benchmark, recipe.algorithm or "")
        built = given(make_fine_tuned(recipe, WEIGHTS) if result.pretrained else recipe, name, benchmark)
        assert (
            resolve_settings(built, benchmark).items()
            >= {n: v for n, v in result.settings.items() if n != "lr"}.items()
        )
        assert all("line" in where or where.endswith(".py") for where in result.where.values())
        assert built.steps("full", benchmark) > 0
    assert "/blob/" in load_all_published()[name].source
    assert {item["setting"] for item in list_published() if item["published"] == name} >= {
        "lr",
        "batch_size",
        "optimiser",
    }


def test_its_search_space_is_the_published_one() -> None:
    built = given(tuned(), "domainbed", "pacs/sketch")
    result = list(draw_settings("erm", "pacs/sketch", 2001, built).values())
    assert result[0] == {}
    rate, batch, dropout = (np.array([item[name] for item in result[1:]]) for name in ("lr", "batch_size", "dropout"))
    assert np.histogram(np.log10(rate), bins=3, range=(-5, -3.5))[0] == pytest.approx([2000 / 3] * 3, abs=90)
    assert batch.min() == 8
    assert batch.max() == math.floor(2**5.5) == 45
    assert all(type(item["batch_size"]) is int for item in result[1:])
    # int(2 ** uniform) of 8 to 45 is below 16 two times in five.
    assert (batch < 16).mean() == pytest.approx(0.4, abs=0.04)
    assert set(dropout.tolist()) == {0.0, 0.1, 0.5}
    narrow = list(
        draw_settings("erm", "domain_net/clipart", 300, given(tuned(), "domainbed", "domain_net/clipart")).values()
    )
    assert max(item["batch_size"] for item in narrow[1:]) == 31
    small = draw_settings("irm", "colored_mnist/red", 5, given(find_recipe("irm"), "domainbed", "colored_mnist/red"))
    assert all("weight_decay" not in item for item in small.values())
    with pytest.raises(FarshiftError, match="wilds publishes no ranges for waterbirds/official"):
        draw_settings("erm", "waterbirds/official", 5, given(tuned(), "wilds", "waterbirds/official"))


def test_what_cannot_be_trained_as_published_says_what_to_do() -> None:
    with pytest.raises(
        FarshiftError, match="it trains ResNet-50, pretrained on ImageNet: name its weights with --fine"
    ):
        given(find_recipe("erm"), "domainbed", "pacs/sketch")
    with pytest.raises(FarshiftError, match="has no settings for vowel/speakers; it has some for colored_mnist/"):
        given(find_recipe("erm"), "domainbed", "vowel/speakers")
    with pytest.raises(UnknownName, match="did you mean domainbed"):
        given(find_recipe("erm"), "domainbet", "pacs/sketch")
    with pytest.raises(ModelError, match="knn is an estimator: --published is for networks"):
        given(find_recipe("knn"), "domainbed", "pacs/sketch")


def test_a_rate_shrinks_by_the_same_factor_each_epoch() -> None:
    """torch's StepLR with a step size of one epoch."""
    import torch

    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, step_size=1, gamma=0.96)
    for epoch in range(6):
        for step in range(5):
            result = geometric.factor(5 * epoch + step, 30, {"decays": 6, "decay_percent": 96})
            assert result == pytest.approx(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()


OWN = """
name = "own"
title = "A paper's"
citation = "A paper"
source = "https://example.org/blob/main/"
notes = ""

[[on]]
benchmarks = ["shapes/*"]
network = "A small network"
instead = "mlp"
epochs = 1

[on.settings]
lr = 1e-2
batch_size = 500
schedule = "geometric"

[on.search]
lr = ["log10", -3.0, -1.0]

[on.where]
epochs = "line 1"
lr = "line 2"
batch_size = "line 3"
schedule = "line 4"
"""


def test_a_file_of_one_s_own_is_trained_by_and_stands_on_the_run_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "baselines" / "published").mkdir(parents=True)
    file = tmp_path / "baselines" / "published" / "own.toml"
    file.write_text(OWN, "utf-8")
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    run = run_baseline("erm", "shapes/diagonal", seeds=1, out=tmp_path / "run", published="own")
    assert run.model == "erm (own)"
    card = run.card.model.extra["recipe"]
    assert (card["published"], card["network"], card["settings"]["lr"]) == ("own", "mlp", 0.01)
    rows = len(load_model_inputs(find_benchmark("shapes/diagonal")).part("train"))
    assert run.card.spent.by_seed["seed_0"]["steps"] == math.ceil(rows / 500)
    file.write_text(OWN.replace('lr = "line 2"\n', ""), "utf-8")
    with pytest.raises(BadDefinition, match="where: give the source line of lr"):
        find_published("own", "shapes/diagonal", "erm")
