"""The settings that a published suite of experiments trains with, and searches: files of `published/`.

A file says where it was read (`source`), and has entries `[[on]]`, each for the benchmarks that its shell patterns
name, and for the algorithms, where it names some. Of the entries that fit, later ones win setting by setting. `where`
says of each setting in which file and line of the source it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from math import ceil
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...core.errors import FarshiftError, ModelError, UnknownName
from ...core.plugins import find_files_by_name, read_definition
from ..recipe import Recipe, RecipeBudget, Setting, filter_budget_settings, find_plugin_files, read_settings

Span = list[str | int | float]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PublishedEntry(_Strict):
    """What is published for some benchmarks, and some algorithms."""

    benchmarks: list[str]
    algorithms: list[str] = []
    network: str = ""
    """What is trained there, in words."""
    pretrained: bool = False
    """Whether it starts from weights, which have to be named."""
    instead: str = ""
    """The network of this package that takes its place."""
    steps: Annotated[int, Field(ge=0)] = 0
    epochs: Annotated[int, Field(ge=0)] = 0
    """Over the rows that are trained on, in place of steps."""
    settings: dict[str, Setting] = {}
    search: dict[str, Span] = {}
    where: dict[str, str]

    @model_validator(mode="after")
    def _sourced(self) -> PublishedEntry:
        given = {*self.settings, *self.search, *(name for name in ("steps", "epochs") if getattr(self, name))}
        if given != self.where.keys():
            raise ValueError(f"where: say of {', '.join(sorted(given ^ self.where.keys()))} in which line it stands")
        return self


class PublishedSource(_Strict):
    name: str
    title: str
    citation: str
    source: str
    notes: str
    on: list[PublishedEntry]


@dataclass
class PublishedSettings:
    """What is published for an algorithm on a benchmark."""

    by: PublishedSource
    network: str = ""
    pretrained: bool = False
    instead: str = ""
    steps: int = 0
    epochs: int = 0
    settings: dict[str, Setting] = field(default_factory=dict)
    search: dict[str, Span] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)


def load_all_published() -> dict[str, PublishedSource]:
    """Every file, by name: this package's, and those of FARSHIFT_PATH."""
    return {
        name: read_definition(path, PublishedSource)
        for name, path in sorted(find_files_by_name("baselines/published", ".toml").items())
    }


def find_published(name: str, benchmark: str, algorithm: str) -> PublishedSettings:
    """What `name` publishes for an algorithm on a benchmark; `UnknownName`, or `FarshiftError` where that is
    nothing."""
    known = load_all_published()
    if name not in known:
        raise UnknownName("published settings", name, known)
    match = PublishedSettings(known[name])
    for entry in known[name].on:
        if not any(fnmatch(benchmark, pattern) for pattern in entry.benchmarks):
            continue
        if entry.algorithms and algorithm not in entry.algorithms:
            continue
        match.network, match.instead = entry.network or match.network, entry.instead or match.instead
        match.pretrained = match.pretrained or entry.pretrained
        match.steps, match.epochs = entry.steps or match.steps, entry.epochs or match.epochs
        match.settings |= entry.settings
        match.search |= entry.search
        match.where |= entry.where
    if not match.where:
        others = sorted({pattern for entry in known[name].on for pattern in entry.benchmarks})
        raise FarshiftError(f"--published {name}: it says nothing of {benchmark}, but of {', '.join(others)}")
    return match


def apply_published(recipe: Recipe, name: str, benchmark: str, rows: Callable[[], int]) -> Recipe:
    """The recipe's algorithm with what is published for it; its own settings of the algorithm remain. rows: how many
    are trained on, asked where epochs are published. `FarshiftError` where weights are to be named."""
    if recipe.algorithm is None:
        raise ModelError(f"{recipe.name} is an estimator: --published goes with networks")
    match = find_published(name, benchmark, recipe.algorithm)
    tuned = recipe.network == "pretrained"
    if match.pretrained and not tuned:
        raise FarshiftError(
            f"--published {name}: on {benchmark} it trains {match.network}: name its weights with --fine-tune, "
            "such as microsoft/resnet-50"
        )
    own = read_settings(find_plugin_files("algorithms")[recipe.algorithm])
    retained_names = {*own} - {"lr", "batch_size"} | ({"weights", "side", "inputs"} if tuned else set())
    settings = {
        setting: value for setting, value in recipe.settings.items() if setting in retained_names
    } | match.settings
    steps = match.steps
    if match.epochs:
        steps = match.epochs * ceil(rows() / int(str(settings["batch_size"])))
    changed: dict[str, Any] = {"settings": settings, "on": {}, "suits": ["*"]}
    changed |= filter_budget_settings(recipe, lambda _: {}) | {"full": RecipeBudget(steps=steps)}
    network = recipe.network if tuned else match.instead or recipe.network
    return recipe.model_copy(update=changed | {"network": network, "published": name})


def list_published() -> list[dict[str, Any]]:
    """One record for each published setting: of which file, for which benchmarks and algorithms, its value and range,
    and where it stands."""
    return [
        {
            "published": name,
            "benchmarks": entry.benchmarks,
            "algorithms": entry.algorithms,
            "network": entry.network,
            "setting": setting,
            "value": getattr(entry, setting) if setting in ("steps", "epochs") else entry.settings.get(setting),
            "search": entry.search.get(setting),
            "source": source.source,
            "where": where,
        }
        for name, source in load_all_published().items()
        for entry in source.on
        for setting, where in entry.where.items()
    ]
