"""The baselines there are, and what they are made of, as plain records. Nothing is imported to tell."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from ..recipe import Recipe, complete, declared, files, literal, recipes, touches


def listing() -> list[dict[str, Any]]:
    """One record per recipe: name, kind ("any" or a kind of shift), citation, title, what it is made of, its settings
    and all that are in force where it says nothing else, the data that it looks at, and its role on each benchmark that
    it has one on."""
    return [
        {
            "name": recipe.name,
            "kind": recipe.kind,
            "citation": recipe.citation,
            "title": recipe.title,
            "network": recipe.network,
            "algorithm": recipe.algorithm,
            "estimator": recipe.estimator,
            "encoder": recipe.encoder,
            "settings": recipe.settings,
            "defaults": _in_force(recipe),
            "touches": list(touches(recipe)),
            "suits": recipe.suits,
            "roles": {benchmark: str(on.role) for benchmark, on in sorted(recipe.on.items()) if on.role},
        }
        for recipe in recipes().values()
    ]


def _in_force(recipe: Recipe) -> dict[str, Any]:
    return complete(recipe, "") if recipe.network else dict(recipe.settings)


def algorithms() -> list[dict[str, Any]]:
    """One record per algorithm: name, kind of shift, citation, tasks, the data it looks at, defaults, search space."""
    named = {"kind": "KIND", "citation": "CITATION", "tasks": "TASKS", "touches": "TOUCHES", "search": "SEARCH"}
    return [
        {"name": name, "title": _title(file)}
        | {key: literal(file, constant) for key, constant in named.items()}
        | {"defaults": declared(file)}
        for name, file in sorted(files("algorithms").items())
    ]


def networks() -> list[dict[str, Any]]:
    """One record per network: name, what it is, the task it is for, defaults."""
    return [
        {"name": name, "title": _title(file), "task": literal(file, "TASK"), "defaults": declared(file)}
        for name, file in sorted(files("networks").items())
    ]


def _title(file: Path) -> str:
    """The first sentence of a file's docstring."""
    text = " ".join((ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split())
    return text.split(". ")[0].split(": ")[0].rstrip(".")
