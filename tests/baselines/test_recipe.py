"""Recipes: found in folders, checked when read, searched in their ranges, and listed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.baselines.baseline import Baseline
from farshift.baselines.recipe import (
    Declaration,
    find_plugin_files,
    find_recipe,
    load_recipes,
    make_fine_tuned,
    replace_network,
)
from farshift.baselines.running import search
from farshift.baselines.running.listing import baselines, list_algorithms, list_networks
from farshift.baselines.running.plan import compute_code_digest
from farshift.baselines.running.search import TRAINER, draw_settings
from farshift.baselines.training.algorithm import TOUCHABLE
from farshift.core.errors import BadDefinition, UnknownName
from farshift.loaders.acquire.pretrained import load_pretrained_networks

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
        ({"settings": "weight_decy = 0.1"}, "no setting named 'weight_decy': did you mean weight_decay"),
        ({"more": '[on."a/b"]\nsettings = { wdth = 3 }'}, r"on\.\"a/b\".*'wdth': did you mean width"),
        ({"more": "settings = { wdth = 3 }"}, r"\[full\] settings.*'wdth': did you mean width"),
        (
            {"more": '[on."a/b"]\nquick = { steps = 3, settings = { wdth = 3 } }'},
            r"on\.\"a/b\"\.quick\] settings.*'wdth': did you mean width",
        ),
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


ON = "modadd97/xi35"


def with_space(monkeypatch: pytest.MonkeyPatch, **space: list[Any]) -> None:
    monkeypatch.setattr(search, "read_declaration", lambda algorithm: Declaration(SEARCH=space))


def test_draws_are_the_same_each_time_and_differ_from_each_other() -> None:
    result = draw_settings("irm", ON, 20)
    assert result == draw_settings("irm", ON, 20)
    assert len({str(values) for values in result.values()}) == 20


def test_one_more_setting_moves_no_other_and_one_more_draw_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    with_space(monkeypatch, dropout=["uniform", 0.0, 0.5])
    before = draw_settings("mlp", ON, 10)
    with_space(monkeypatch, width=["choice", 32, 64, 128], dropout=["uniform", 0.0, 0.5])
    after = draw_settings("mlp", ON, 10)
    assert {name: {"width": after[name].get("width")} | values for name, values in before.items() if values} == {
        name: values for name, values in after.items() if values
    }
    assert list(draw_settings("mlp", ON, 11).values())[:10] == list(after.values())


def test_draws_fill_their_ranges_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    with_space(monkeypatch, dropout=["uniform", 0.1, 0.5], depth=["uniform", 1.0, 3.0], width=["choice", 8, 16])
    result = list(draw_settings("mlp", ON, 2001).values())[1:]
    dropout, rate = (np.array([values[name] for values in result]) for name in ("dropout", "lr"))
    assert np.histogram(dropout, bins=4, range=(0.1, 0.5))[0] == pytest.approx(500, abs=80)
    exponents = np.histogram(np.log10(rate), bins=4, range=TRAINER["lr"][1:])[0]
    assert exponents == pytest.approx(500, abs=80)
    assert exponents.sum() == len(result)
    assert {values["depth"] for values in result} == {1, 2, 3}
    assert all(type(values["depth"]) is int for values in result), "a whole number where the default is one"
    assert sum(values["width"] == 8 for values in result) == pytest.approx(1000, abs=100)


def test_a_range_of_an_algorithm_wins_over_the_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    with_space(monkeypatch, lr=["choice", 0.125])
    assert {values["lr"] for values in list(draw_settings("mlp", ON, 5).values())[1:]} == {0.125}


def test_a_space_of_an_unknown_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with_space(monkeypatch, dropout=["normal", 0.0, 0.5])
    with pytest.raises(
        BadDefinition, match="search space of mlp/dropout: 'normal' is none of log10, log2, uniform, choice"
    ):
        draw_settings("mlp", ON, 2)


def test_an_estimator_has_no_search_space() -> None:
    assert find_recipe("knn").algorithm is None
    with pytest.raises(FarshiftError, match="^knn is a scikit-learn estimator and has no ranges: give a file"):
        draw_settings("knn", ON, 2)


PAGE = Path(__file__).parents[2] / "docs" / "baselines.md"


@pytest.mark.parametrize(("listed", "function"), [("algorithms", list_algorithms), ("networks", list_networks)])
def test_a_listing_command_prints_one_record_for_each_file(command, listed, function):
    result: list[dict[str, Any]] = json.loads(command("baselines", listed, "--json").stdout)
    assert result == json.loads(json.dumps(function()))
    pretrained = sorted(load_pretrained_networks()) if listed == "networks" else []
    assert [item["name"] for item in result] == [*sorted(find_plugin_files(listed)), *pretrained]
    assert all(item["title"] for item in result)


def test_the_page_names_all_data_that_an_algorithm_may_look_at():
    text = PAGE.read_text("utf-8")
    for name, what in TOUCHABLE.items():
        assert f"| `{name}` | {what} |" in text


def test_every_baseline_is_made_of_parts_that_are_listed():
    known = {item["name"] for item in list_algorithms()}, {item["name"] for item in list_networks()}
    result = baselines().to_dicts()
    assert len(result) > 50
    for item in result:
        assert item["estimator"] or (item["algorithm"] in known[0] and item["network"] in known[1]), item["name"]
        assert set(item["touches"]) <= set(TOUCHABLE)


def test_budgets_beside_those_of_the_papers(command):
    listed = json.loads(command("baselines", "list", "--budgets", "--json").stdout)
    result = {item["name"]: item for item in listed}
    assert set(result) == {item.name for item in baselines() if not item.estimator}
    assert result["irm"]["full"] == 2000
    assert result["irm"]["reference"].startswith("5,001 steps")
    assert all(0 < item["quick"] <= item["full"] for item in result.values())


def test_what_a_recipe_says_of_the_papers_training_is_no_part_of_its_result():
    known = find_recipe("irm")
    assert known.full is not None
    other = known.model_copy(update={"full": known.full.model_copy(update={"reference": "something else"})})
    longer = known.model_copy(update={"full": known.full.model_copy(update={"steps": 1})})
    assert compute_code_digest(other) == compute_code_digest(known) != compute_code_digest(longer)
