"""What the listings of baselines, algorithms and networks say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from farshift.baselines.recipe import find_plugin_files, find_recipe
from farshift.baselines.running.listing import baselines, list_algorithms, list_networks
from farshift.baselines.running.plan import compute_code_digest
from farshift.baselines.training.algorithm import TOUCHABLE
from farshift.loaders.acquire.pretrained import load_pretrained_networks

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
