"""The baselines there are, as plain records."""

from __future__ import annotations

from typing import Any

from .recipe import recipes


def listing() -> list[dict[str, Any]]:
    """One record per recipe: name, kind ("any" or a kind of shift), citation, title, what it is made of, its settings,
    and its role on each benchmark that it has one on."""
    return [
        {
            "name": recipe.name,
            "kind": recipe.kind,
            "citation": recipe.citation,
            "title": recipe.title,
            "network": recipe.network,
            "algorithm": recipe.algorithm,
            "estimator": recipe.estimator,
            "settings": recipe.settings,
            "roles": {benchmark: str(on.role) for benchmark, on in sorted(recipe.on.items()) if on.role},
        }
        for recipe in recipes().values()
    ]
