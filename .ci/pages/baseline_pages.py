"""docs/baselines/: recipes with their budgets, algorithms, networks, other components, and how algorithms compare with
released code."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from farshift.baselines.recipe import find_plugin_files
from farshift.baselines.running.listing import BaselineEntry, baselines, list_algorithms, list_networks
from farshift.core.plugins import find_files_by_name
from farshift.loaders.cache.entries import format_size
from farshift.splits.manifest import KINDS
from markdown_text import format_table, join_page

NUMBERS = Path(__file__).parents[2] / "tests" / "baselines" / "parity" / "numbers"
"""A JSON file a reference: what released code computed, of which commit, and the largest difference of ours."""
NO_REFERENCE = "Not compared with released code:"
"""The first words of the last paragraph of an algorithm's docstring if no reference is stored."""
COMPONENTS = ("optimisers", "schedules", "positions", "formats", "augmentations", "diagnostics")
PAGES = {
    "recipes": "baselines: network, algorithm, and optimiser steps under each budget",
    "algorithms": "training algorithms, their tasks and the data that they use",
    "parity": "numerical comparison of algorithms with released code, and why some are not compared",
    "networks": "network architectures and their tasks",
    "components": "optimisers, schedules, positional encodings, formats, augmentations and diagnostics",
}

INDEX_INTRODUCTION = """
These pages list all baselines and their components. How to run, combine and extend them:
[Baselines](../baselines.md). `farshift baselines list`, `farshift baselines algorithms` and `farshift baselines
networks` print the same lists; `--json` adds settings and citations.
"""
RECIPES_INTRODUCTION = """
A recipe is a baseline: a network and a training algorithm with their settings, or a scikit-learn estimator.
`farshift run NAME --on BENCHMARK` trains and evaluates it. The columns *quick* and *full* are the optimiser steps under
`--budget quick` and `--budget full`; scikit-learn estimators have none. The published budget is that of the paper or of
its released code; it is empty if we have not looked it up.
"""
ALGORITHMS_INTRODUCTION = """
The column *data* lists what an algorithm has access to ([Baselines](../baselines.md) explains the names); *compared*,
whether its numbers are [compared with released code](parity.md).
"""
PARITY_INTRODUCTION = """
Each algorithm is compared with released code on the same small inputs ([how](../baselines.md)). The last column is the
largest absolute difference between our numbers (losses, gradients, weights or predictions) and those of the released
code. A suffix after a dot is a variant of the algorithm. The authors of `anchor` and `importance_weighting` released no
Python: theirs is the code of packages by others.
"""


def build_baseline_pages() -> dict[str, str]:
    """The pages by file name."""
    contents = [f"- [{name.capitalize()}]({name}.md): {description}" for name, description in PAGES.items()]
    index = join_page(
        "# Lists of baselines and components",
        INDEX_INTRODUCTION,
        "\n".join(contents),
    )
    return {
        "index.md": index,
        "recipes.md": _render_recipes(),
        "algorithms.md": _render_algorithms(),
        "parity.md": _render_parity(),
        "networks.md": _render_networks(),
        "components.md": _render_components(),
    }


def _render_recipes() -> str:
    entries = list(baselines())
    blocks = []
    for kind in ("any", *KINDS):
        rows = [_format_recipe(entry) for entry in entries if entry.kind == kind]
        table = format_table(
            ("baseline", "description", "network or estimator", "algorithm", "quick", "full", "published budget"), rows
        )
        blocks += [f"## {_title_kind(kind)}", table] if rows else []
    return join_page(
        "# Recipes",
        RECIPES_INTRODUCTION,
        *blocks,
    )


def _format_recipe(entry: BaselineEntry) -> tuple[str, ...]:
    estimator = (entry.estimator or "").rpartition(".")[2]
    steps = (f"{count:,}" if count else "" for count in (entry.quick, entry.full))
    network = f"`{entry.network or estimator}`"
    algorithm = f"`{entry.algorithm}`" if entry.algorithm else ""
    return f"`{entry.name}`", entry.title, network, algorithm, *steps, entry.reference


def _title_kind(kind: str) -> str:
    return "Any shift" if kind == "any" else f"{kind.capitalize()} shifts"


def _render_algorithms() -> str:
    entries, files = list_algorithms(), find_plugin_files("algorithms")
    compared = {reference["name"].partition(".")[0] for reference in read_references()}
    blocks = []
    for kind in ("any", *KINDS):
        rows = [
            (
                f"`{entry['name']}`",
                ", ".join(entry["tasks"]),
                ", ".join(entry["touches"]),
                "yes" if entry["name"] in compared else "",
                _read_first_sentence(files[entry["name"]]),
            )
            for entry in entries
            if entry["kind"] == kind
        ]
        table = format_table(("algorithm", "tasks", "data", "compared", "description"), rows)
        blocks += [f"## {_title_kind(kind)}", table] if rows else []
    return join_page(
        "# Algorithms",
        ALGORITHMS_INTRODUCTION,
        *blocks,
    )


def _render_parity() -> str:
    references = read_references()
    rows = [
        (
            f"`{item['name']}`",
            f"{item['repository']} `{item['commit'][:7]}`, `{item['code']}`",
            f"{item['difference']:.0e}",
        )
        for item in references
    ]
    reasons = list_missing_references({item["name"].partition(".")[0] for item in references})
    return join_page(
        "# Algorithms compared with released code",
        PARITY_INTRODUCTION,
        format_table(("algorithm", "released code (commit, file: function)", "largest difference"), rows),
        "## Not compared",
        format_table(("algorithm", "reason"), [(f"`{name}`", reason or "") for name, reason in reasons.items()]),
    )


def read_references() -> list[dict[str, Any]]:
    """The stored references, by name."""
    return sorted(
        (json.loads(path.read_text("utf-8")) for path in NUMBERS.glob("*.json")), key=lambda item: item["name"]
    )


def list_missing_references(compared: Collection[str]) -> dict[str, str | None]:
    """The other algorithms, each with the reason that its docstring gives; None where it gives none."""
    files = find_plugin_files("algorithms")
    return {name: read_missing_reason(files[name]) for name in sorted(set(files) - set(compared))}


def read_missing_reason(file: Path) -> str | None:
    """What follows `NO_REFERENCE` in the last paragraph of a file's docstring."""
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    before, _, reason = " ".join(text.split("\n\n")[-1].split()).partition(NO_REFERENCE)
    return reason.strip() if reason and not before else None


def _render_networks() -> str:
    files = find_plugin_files("networks")
    entries = list_networks()
    rows = [
        (f"`{entry['name']}`", ", ".join(entry["tasks"]), _read_first_sentence(files[entry["name"]]))
        for entry in entries
        if entry["name"] in files
    ]
    pretrained = [
        (
            f"[`{entry['name']}`]({entry['homepage']})",
            entry["trained_on"],
            "; ".join(f"{score['value']:g} % on {score['on']} ({score['source']})" for score in entry["published"]),
            entry["licence"],
            format_size(entry["bytes"]),
        )
        for entry in entries
        if entry["name"] not in files
    ]
    return join_page(
        "# Networks",
        format_table(("network", "tasks", "description"), rows),
        "## Pretrained",
        "For [`--encoder` and `--fine-tune`](../pretrained.md).",
        format_table(("network", "trained on", "published accuracy", "licence", "size"), pretrained),
    )


def _render_components() -> str:
    blocks = []
    for sort in COMPONENTS:
        files = sorted(find_files_by_name(f"baselines/{sort}", ".py").items())
        rows = [(f"`{name}`", _read_first_sentence(file)) for name, file in files if not name.startswith("_")]
        blocks += [f"## {sort.capitalize()}", format_table((sort.removesuffix("s"), "description"), rows)]
    return join_page("# Components", "A setting of the recipe selects each of them by name.", *blocks)


def _read_first_sentence(file: Path) -> str:
    """The first sentence of a file's docstring."""
    paragraph = (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").split("\n\n")[0]
    return " ".join(paragraph.split()).split(". ")[0].rstrip(".")
