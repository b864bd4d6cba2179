"""Recipes: found in folders, checked when read, and cheap to list."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from farshift.baselines.baseline import Baseline
from farshift.baselines.recipe import collect_defaults, find_recipe, load_recipes, make_fine_tuned, replace_network
from farshift.core.errors import BadDefinition, UnknownName

from .toys import ADD, accuracy, additions, trained

SMALL = """
name = "{name}"
title = "Mine"
citation = "me"
network = "{network}"
algorithm = "erm"
[settings]
{settings}
[quick]
steps = 10
[full]
steps = 20
"""

COUNTING_NETWORK = """
import torch
from torch import nn
from farshift.baselines.encoding.encoding import Sizes

TASK = "classification"
SETTINGS = {"scale": 1.0}

class Network(nn.Module):
    def __init__(self, sizes, settings):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1, *sizes.categories, sizes.outputs))

    def forward(self, categories, numbers):
        replica = torch.arange(len(self.table))[:, None]
        return self.table[replica, categories[..., 0], categories[..., 1]]
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on FARSHIFT_PATH, behind an empty one."""
    for sort in ("recipes", "networks", "algorithms"):
        (tmp_path / "mine" / "baselines" / sort).mkdir(parents=True)
    monkeypatch.setenv("FARSHIFT_PATH", os.pathsep.join([str(tmp_path), str(tmp_path / "mine")]))
    return tmp_path / "mine" / "baselines"


def write(folder: Path, name: str = "my-own", network: str = "mlp", settings: str = "", more: str = "") -> None:
    text = SMALL.format(name=name, network=network, settings=settings) + more
    (folder / "recipes" / f"{name}.toml").write_text(text)


def test_every_shipped_recipe_is_read_and_listed_by_name() -> None:
    names = list(load_recipes())
    assert names == sorted(names)
    assert {"mlp", "knn", "lstm", "transformer", "quadratic-mlp", "syntactic-attention", "lstm-aligned"} <= set(names)


@pytest.mark.parametrize(
    ("benchmark", "plain", "helps"),
    [
        ("optdigits/writers", "mlp", "knn"),
        ("scan/length", "lstm", "syntactic-attention"),
        ("prefix_sums/32_to_64", "transformer", "lstm-aligned"),
        ("modadd97/xi35", "quadratic-mlp", "quadratic-mlp-weight-decay"),
    ],
)
def test_each_benchmark_has_one_plain_baseline_and_one_meant_to_help(benchmark: str, plain: str, helps: str) -> None:
    roles = [(built.role_on(benchmark), name) for name, built in load_recipes().items() if built.role_on(benchmark)]
    assert sorted(roles, key=str) == sorted([("plain", plain), ("helps", helps)], key=str)


def test_a_recipe_in_a_folder_of_farshift_path_is_found(mine: Path) -> None:
    write(mine)
    assert load_recipes()["my-own"].steps("quick", "scan/length") == 10
    assert find_recipe("my-own").network == "mlp"


def test_a_network_beside_it_is_used(mine: Path) -> None:
    (mine / "networks" / "table.py").write_text(COUNTING_NETWORK)
    write(mine, network="table", settings="lr = 0.1")
    assert accuracy(trained(find_recipe("my-own"), ADD, additions()), ADD, additions()) == 1.0


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UnknownName, match="no baseline named 'lstn': did you mean lstm"):
        find_recipe("lstn")


def test_an_unknown_setting_offers_the_nearest(mine: Path) -> None:
    write(mine, settings="weight_decy = 0.1")
    with pytest.raises(BadDefinition, match="no setting named 'weight_decy': did you mean weight_decay"):
        load_recipes()


def test_an_unknown_setting_of_one_benchmark_is_refused_too(mine: Path) -> None:
    write(mine, more='[on."scan/length"]\nsettings = { wdth = 3 }\n')
    with pytest.raises(BadDefinition, match=r"on\.\"scan/length\".*'wdth': did you mean width"):
        find_recipe("my-own")


def test_an_unknown_setting_of_an_estimator_offers_the_nearest() -> None:
    built = find_recipe("knn").model_copy(update={"settings": {"n_neighbours": 3}})
    with pytest.raises(BadDefinition, match="did you mean n_neighbors"):
        trained(built, ADD, additions())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": "lr = 'fast'"}, "lr = 'fast' must be of type float"),
        ({"network": "mpl"}, "no network named 'mpl': did you mean mlp"),
        ({"more": "colour = 1"}, "colour"),
        ({"more": '[on."a/b"]\nrole = "best"'}, "role"),
    ],
)
def test_a_recipe_that_does_not_say_what_it_must_is_refused(mine: Path, change: dict[str, str], message: str) -> None:
    write(mine, **change)
    with pytest.raises(BadDefinition, match=message) as caught:
        find_recipe("my-own")
    assert "my-own.toml" in str(caught.value)


def test_two_recipes_of_one_name_are_refused(mine: Path) -> None:
    write(mine, name="lstm")
    with pytest.raises(BadDefinition, match="same name"):
        load_recipes()


def test_steps_and_settings_may_differ_on_one_benchmark(mine: Path) -> None:
    write(mine, settings="lr = 0.5", more='[on."a/b"]\nsettings = { lr = 0.25 }\nquick = { steps = 3 }\n')
    built = find_recipe("my-own")
    assert (built.steps("quick", "a/b"), built.steps("full", "a/b"), built.steps("quick", "a/c")) == (3, 20, 10)
    assert (built.settings_on("a/b")["lr"], built.settings_on("a/c")["lr"]) == (0.25, 0.5)
    with pytest.raises(UnknownName, match="no budget named 'quik'"):
        built.steps("quik", "a/b")


def test_settings_may_differ_under_one_budget(mine: Path) -> None:
    more = 'settings = { lr = 0.1, width = 16 }\n[on."a/b"]\nsettings = { lr = 0.25 }\nfull = { steps = 3, settings = { width = 4 } }\n'
    write(mine, settings="lr = 0.5", more=more)
    built = find_recipe("my-own")
    assert built.for_budget("quick") == built
    assert built.for_budget("quick").settings_on("a/c") == {"lr": 0.5}
    full = built.for_budget("full")
    assert full.settings_on("a/c") == {"lr": 0.1, "width": 16}
    assert full.settings_on("a/b") == {"lr": 0.25, "width": 4}, "those of a benchmark stand above those of a budget"
    assert full.for_budget("full") == full
    lone = replace_network(built, "linear").for_budget("full")
    assert lone.settings_on("a/b") == {"lr": 0.25}, "another network has no width"
    assert make_fine_tuned(built, "org/name").for_budget("full").settings_on("a/b")["lr"] == 5e-5


def test_an_unknown_setting_of_one_budget_is_refused_too(mine: Path) -> None:
    write(mine, more="settings = { wdth = 3 }\n")
    with pytest.raises(BadDefinition, match=r"\[full\] settings.*'wdth': did you mean width"):
        find_recipe("my-own")
    write(mine, more='[on."a/b"]\nquick = { steps = 3, settings = { wdth = 3 } }\n')
    with pytest.raises(BadDefinition, match=r"on\.\"a/b\"\.quick\] settings.*'wdth': did you mean width"):
        find_recipe("my-own")


def test_the_trainer_the_algorithm_and_a_network_declare_no_setting_twice() -> None:
    from farshift.baselines.recipe import HERE, find_plugin_files, read_settings

    shared = [
        read_settings(HERE / "training" / "trainer.py"),
        read_settings(HERE / "encoding" / "encoding.py"),
        read_settings(find_plugin_files("algorithms")["erm"]),
    ]
    for network in find_plugin_files("networks").values():
        names = [name for settings in (*shared, read_settings(network)) for name in settings]
        assert len(names) == len(set(names)), network


def test_declared_settings_are_those_of_the_imported_module() -> None:
    from farshift.baselines.training import trainer

    assert trainer.SETTINGS.items() <= collect_defaults(find_recipe("lstm")).items()


def test_listing_recipes_imports_neither_torch_nor_sklearn() -> None:
    code = (
        "import sys; from farshift.baselines.recipe import load_recipes; import farshift.baselines.baseline; load_recipes();"
        "print([m for m in ('torch', 'sklearn', 'pyarrow') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_a_baseline_asked_before_it_is_trained_says_so() -> None:
    from farshift.core.errors import ModelError

    with pytest.raises(ModelError, match="call fit before predict"):
        Baseline(find_recipe("mlp"), ADD, 0, "toy/toy").predict(additions().only("a", "b"))
