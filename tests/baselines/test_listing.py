"""What the listings say, and that docs/baselines.md says the same. To write the page's lists anew:

python tests/baselines/test_listing.py
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from farshift.baselines.recipe import find_plugin_files, find_recipe
from farshift.baselines.running.listing import baselines, list_algorithms, list_networks
from farshift.baselines.running.plan import compute_code_digest
from farshift.baselines.training.algorithm import TOUCHABLE
from farshift.core.plugins import find_files_by_name

PAGE = Path(__file__).parents[2] / "docs" / "baselines.md"
BEGIN, END = "<!-- lists: begin -->\n", "<!-- lists: end -->\n"
PARTS = ("optimisers", "schedules", "positions", "formats", "augmentations", "diagnostics")


def title(file: Path) -> str:
    """The first sentence of a file's docstring."""
    text = " ".join((ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").split())
    return text.split(". ")[0].split(": ")[0].rstrip(".")


def table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def lists() -> str:
    """The tables of the page, from what the listings say."""
    found = list_algorithms()
    pieces = [
        "### Networks\n\n",
        table(
            ["network", "tasks", "what it is"],
            [[f"`{n['name']}`", ", ".join(n["tasks"]), n["title"]] for n in list_networks()],
        ),
    ]
    for kind in ("any", "domain", "length", "compositional", "easy-to-hard", "corrupted-label"):
        some = [a for a in found if a["kind"] == kind]
        if some:
            rows = [[f"`{a['name']}`", ", ".join(a["tasks"]), ", ".join(a["touches"]), a["title"]] for a in some]
            what = "any shift" if kind == "any" else f"{kind} shifts"
            pieces += [
                f"\n### Algorithms for {what}\n\n",
                table(["algorithm", "tasks", "looks at", "what it does"], rows),
            ]
    for sort in PARTS:
        rows = [
            [f"`{name}`", title(file)] for name, file in sorted(find_files_by_name(f"baselines/{sort}", ".py").items())
        ]
        pieces += [f"\n### {sort.capitalize()}\n\n", table([sort.removesuffix("s"), "what it is"], rows)]
    rows = [
        [f"`{one.name}`", f"{one.quick:,}", f"{one.full:,}", one.reference]
        for one in baselines()
        if one.full and one.quick
    ]
    pieces += [
        "\n### Steps of each baseline\n\n",
        table(["baseline", "quick", "full", "the paper's or its code's"], rows),
    ]
    return "".join(pieces)


def test_the_page_lists_what_there_is():
    text = PAGE.read_text("utf-8")
    printed = text.split(BEGIN)[1].split(END)[0]
    assert printed == lists(), "write it anew: python tests/baselines/test_listing.py"


@pytest.mark.parametrize(("command", "function"), [("algorithms", list_algorithms), ("networks", list_networks)])
def test_a_listing_command_prints_one_record_for_each_file(command, function, farshift_json):
    found: list[dict[str, Any]] = farshift_json("baselines", command)
    assert found == json.loads(json.dumps(function()))
    assert [one["name"] for one in found] == sorted(find_plugin_files(command))
    assert all(one["title"] for one in found)


def test_the_page_names_all_data_that_an_algorithm_may_look_at():
    text = PAGE.read_text("utf-8")
    for name, what in TOUCHABLE.items():
        assert f"| `{name}` | {what} |" in text


def test_every_baseline_is_made_of_parts_that_are_listed():
    known = {one["name"] for one in list_algorithms()}, {one["name"] for one in list_networks()}
    found = baselines().to_dicts()
    assert len(found) > 50
    for one in found:
        assert one["estimator"] or (one["algorithm"] in known[0] and one["network"] in known[1]), one["name"]
        assert set(one["touches"]) <= set(TOUCHABLE)


def test_budgets_beside_those_of_the_papers(farshift_json):
    found = {one["name"]: one for one in farshift_json("baselines", "list", "--budgets")}
    assert set(found) == {one.name for one in baselines() if not one.estimator}
    assert found["irm"]["full"] == 2000
    assert found["irm"]["reference"].startswith("5,001 steps")
    assert all(0 < one["quick"] <= one["full"] for one in found.values())


def test_what_a_recipe_says_of_the_papers_training_is_no_part_of_its_result():
    known = find_recipe("irm")
    assert known.full is not None
    other = known.model_copy(update={"full": known.full.model_copy(update={"reference": "something else"})})
    longer = known.model_copy(update={"full": known.full.model_copy(update={"steps": 1})})
    assert compute_code_digest(other) == compute_code_digest(known) != compute_code_digest(longer)


if __name__ == "__main__":
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + lists() + END + rest.split(END)[1], "utf-8")
