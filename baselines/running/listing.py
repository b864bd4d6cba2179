"""List the baselines, algorithms and networks as plain records, without importing them."""

import ast
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...core.listings import Listing, has_words
from ...loaders.acquire.pretrained import load_pretrained_networks
from ...loaders.listing import check_known_name
from ...splits.manifest import KINDS
from ..compatibility import list_required_data, list_tasks
from ..recipe import (
    Recipe,
    find_plugin_files,
    load_recipes,
    parse_code,
    read_declaration,
    read_literal,
    read_settings,
    resolve_settings,
)
from .results import get_recipe_name, list_results


@dataclass(frozen=True)
class BaselineEntry:
    """A recipe. kind: "any" or a kind of shift. defaults: the default of every setting. touches: the data that it
    requires. roles: its role on each benchmark for which it has one. quick and full: optimiser steps under these
    budgets, None for estimators. reference: what the paper or its released code trains for, empty if it has not been
    looked up."""

    name: str
    kind: str
    citation: str
    title: str
    network: str | None
    algorithm: str | None
    estimator: str | None
    encoder: str | None
    settings: Mapping[str, Any]
    defaults: Mapping[str, Any]
    touches: tuple[str, ...]
    suits: tuple[str, ...]
    roles: Mapping[str, str]
    quick: int | None
    full: int | None
    reference: str

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self) | {"touches": list(self.touches), "suits": list(self.suits)}


def baselines(
    search: str = "",
    *,
    kind: str | None = None,
    network: str | None = None,
    algorithm: str | None = None,
    on: str | None = None,
) -> Listing[BaselineEntry]:
    """List the baselines that match all arguments, sorted by name.

    search: words that must all occur in a baseline's name, title, citation, network, algorithm or estimator. kind: the
    kind of shift that it is meant for; "any" for baselines that are for none in particular. on: a benchmark with a
    recorded result of it.

    >>> import farshift as fs
    >>> [one.network for one in fs.baselines("lstm") if one.name == "lstm"]
    ['lstm']
    """
    check_known_name("kind of shift", kind, ("any", *KINDS))
    check_known_name("network", network, find_plugin_files("networks"))
    check_known_name("algorithm", algorithm, find_plugin_files("algorithms"))
    recorded = None if on is None else {get_recipe_name(name) for benchmark, name in list_results() if benchmark == on}
    entries = []
    for recipe in load_recipes().values():
        made_of = (recipe.network or "", recipe.algorithm or "", recipe.estimator or "")
        if (
            kind in (None, recipe.kind)
            and network in (None, recipe.network)
            and algorithm in (None, recipe.algorithm)
            and (recorded is None or recipe.name in recorded)
            and has_words(search, recipe.name, recipe.title, recipe.citation, *made_of)
        ):
            entries.append(_make_entry(recipe))
    return Listing(entries, "baseline", _format_entry)


def _make_entry(recipe: Recipe) -> BaselineEntry:
    same = ("name", "kind", "citation", "title", "network", "algorithm", "estimator", "encoder", "settings")
    return BaselineEntry(
        **{field: getattr(recipe, field) for field in same},
        defaults=resolve_settings(recipe, "") if recipe.network else dict(recipe.settings),
        touches=tuple(list_required_data(recipe)),
        suits=tuple(recipe.suits),
        roles={benchmark: str(on.role) for benchmark, on in sorted(recipe.on.items()) if on.role},
        quick=recipe.quick.steps if recipe.quick else None,
        full=recipe.full.steps if recipe.full else None,
        reference=recipe.full.reference if recipe.full else "",
    )


def _format_entry(entry: BaselineEntry) -> dict[str, Any]:
    cells = {"baseline": entry.name, "kind": entry.kind, "network": entry.network or entry.estimator or ""}
    return cells | {"algorithm": entry.algorithm or "", "title": entry.title}


def list_algorithms() -> list[dict[str, Any]]:
    """One record per algorithm: name, kind of shift, citation, tasks, required data, defaults, search space."""
    return [
        {"name": name, "title": _read_title(file)}
        | read_declaration(name).model_dump()
        | {"defaults": read_settings(file)}
        for name, file in sorted(find_plugin_files("algorithms").items())
    ]


def list_networks() -> list[dict[str, Any]]:
    """One record per network: name, description, its tasks (`task`: as its file states it), defaults; then one per
    pretrained network (`task`: `pretrained`): licence, bytes, the data that it was trained on, published scores."""
    networks: list[dict[str, Any]] = [
        {
            "name": name,
            "title": _read_title(file),
            "task": (task := read_literal(file, "TASK")),
            "tasks": list_tasks(task),
            "defaults": read_settings(file),
        }
        for name, file in sorted(find_plugin_files("networks").items())
    ]
    fields = {"name", "title", "licence", "citation", "homepage", "notes", "trained_on", "published"}
    return networks + [
        network.model_dump(include=fields)
        | {"task": "pretrained", "tasks": [], "defaults": {}, "bytes": network.bytes, "digest": network.digest}
        for network in load_pretrained_networks().values()
    ]


def _read_title(file: Path) -> str:
    """The first sentence of a file's docstring."""
    text = " ".join((ast.get_docstring(parse_code(file.read_text(encoding="utf-8"), file)) or "").split())
    return text.split(". ")[0].split(": ")[0].rstrip(".")
