"""`--network`: any algorithm on another network, and what a network cannot read."""

from __future__ import annotations

import pytest
from farshift.baselines.recipe import find_recipe, load_recipes, replace_network, resolve_settings
from farshift.baselines.running.plan import has_image
from farshift.baselines.running.published import RecipeOverrides
from farshift.baselines.running.sweep import make_budget, make_plan, run_baseline
from farshift.benchmarks.benchmark import find_benchmark
from farshift.core.errors import ModelError, UnknownName

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
    run = run_baseline("sd", IMAGES, network="cnn", seeds=1, steps=1, out=tmp_path / "r")
    assert run.model == "sd (cnn)"
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


def test_a_network_that_is_not_there_is_named_with_those_near():
    with pytest.raises(UnknownName, match="did you mean resnet"):
        replace_network(find_recipe("erm"), "resnett")


def test_pictures_and_arrays_of_two_axes_are_images():
    assert [has_image(find_benchmark(name)) for name in (IMAGES, "vowel/speakers", "modadd97/xi35")] == [
        True,
        False,
        False,
    ]


def test_networks_on_the_command_line(command, tmp_path):
    done = command(
        *("run", "coral", "--on", "vowel/speakers", "--network", "resnet", "--out", tmp_path / "r", "--seeds", "1")
    )
    assert done.returncode == 2
    assert "resnet reads images" in done.stderr.splitlines()[-1]
    clash = command("run", "erm", "--suite", "core", "--network", "cnn", "--out", tmp_path / "s")
    assert "run --suite: --network goes with one benchmark (--on)" in clash.stderr
