"""Published settings: each says where it stands, fits the recipes it is given to, and is searched as it was."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.baselines.recipe import Recipe, find_recipe, make_fine_tuned, resolve_settings
from farshift.baselines.running.published import apply_published, find_published, list_published, load_all_published
from farshift.baselines.running.search import draw_settings
from farshift.baselines.running.sweep import run_baseline
from farshift.baselines.schedules import geometric
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.model_inputs.load import load_model_inputs
from farshift.core.errors import BadDefinition, ModelError, UnknownName

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
    card = run.card.model.extra["recipe"]
    assert (card["published"], card["network"], card["settings"]["lr"]) == ("own", "mlp", 0.01)
    rows = len(load_model_inputs(find_benchmark("shapes/diagonal")).part("train"))
    assert run.card.spent.by_seed["seed_0"]["steps"] == math.ceil(rows / 500)
    file.write_text(OWN.replace('lr = "line 2"\n', ""), "utf-8")
    with pytest.raises(BadDefinition, match="where: give the source line of lr"):
        find_published("own", "shapes/diagonal", "erm")
