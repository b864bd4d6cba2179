"""The baselines there are, and what they are made of, as plain records. Nothing is imported to tell."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...core.listings.listing import Listing, has_words
from ...loaders.listing import known_name
from ...splits.manifest import KINDS
from ..fitness import does, touches
from ..recipe import Recipe, complete, declared, files, literal, recipes
from .results import results


@dataclass(frozen=True)
class BaselineEntry:
    """A recipe. kind: "any" or a kind of shift. defaults: all settings that are in force where it says nothing else.
    touches: the data that it looks at. roles: its role on each benchmark that it has one on. quick and full: optimiser
    steps under the budgets so called, None of estimators; reference: what the paper or its released code trains for,
    empty where nobody looked it up."""

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
        """Plain JSON."""
        return asdict(self) | {"touches": list(self.touches), "suits": list(self.suits)}


def baselines(
    search: str = "",
    *,
    kind: str | None = None,
    network: str | None = None,
    algorithm: str | None = None,
    on: str | None = None,
) -> Listing[BaselineEntry]:
    """The baselines that fit all that is asked, sorted by name.

    search: words that all stand in a baseline's name, title, citation, network, algorithm or estimator. kind: that of
    the shift it is against; "any" for those against none. on: a benchmark that it has a recorded result on.

    >>> import farshift as fs
    >>> [one.network for one in fs.baselines("lstm") if one.name == "lstm"]
    ['lstm']
    """
    known_name("kind of shift", kind, ("any", *KINDS))
    known_name("network", network, files("networks"))
    known_name("algorithm", algorithm, files("algorithms"))
    recorded = None if on is None else {name for benchmark, name in results() if benchmark == on}
    found = []
    for recipe in recipes().values():
        made_of = (recipe.network or "", recipe.algorithm or "", recipe.estimator or "")
        if (
            kind in (None, recipe.kind)
            and network in (None, recipe.network)
            and algorithm in (None, recipe.algorithm)
            and (recorded is None or recipe.name in recorded)
            and has_words(search, recipe.name, recipe.title, recipe.citation, *made_of)
        ):
            found.append(_entry(recipe))
    return Listing(found, "baseline", _shown)


def _entry(recipe: Recipe) -> BaselineEntry:
    return BaselineEntry(
        name=recipe.name,
        kind=recipe.kind,
        citation=recipe.citation,
        title=recipe.title,
        network=recipe.network,
        algorithm=recipe.algorithm,
        estimator=recipe.estimator,
        encoder=recipe.encoder,
        settings=recipe.settings,
        defaults=_in_force(recipe),
        touches=tuple(touches(recipe)),
        suits=tuple(recipe.suits),
        roles={benchmark: str(on.role) for benchmark, on in sorted(recipe.on.items()) if on.role},
        quick=recipe.quick.steps if recipe.quick else None,
        full=recipe.full.steps if recipe.full else None,
        reference=recipe.full.reference if recipe.full else "",
    )


def _shown(entry: BaselineEntry) -> dict[str, Any]:
    cells = {"baseline": entry.name, "kind": entry.kind, "network": entry.network or entry.estimator or ""}
    return cells | {"algorithm": entry.algorithm or "", "title": entry.title}


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
    """One record per network: name, what it is, the tasks it is for (`task`: what its file says), defaults."""
    return [
        {
            "name": name,
            "title": _title(file),
            "task": (task := literal(file, "TASK")),
            "tasks": does(task),
            "defaults": declared(file),
        }
        for name, file in sorted(files("networks").items())
    ]


def _title(file: Path) -> str:
    """The first sentence of a file's docstring."""
    text = " ".join((ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split())
    return text.split(". ")[0].split(": ")[0].rstrip(".")
