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
from ...core.plugins import named, read_definition
from ..recipe import Recipe, Setting, Spend, declared, files, spends

Span = list[str | int | float]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class On(_Strict):
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
    def _sourced(self) -> On:
        given = {*self.settings, *self.search, *(name for name in ("steps", "epochs") if getattr(self, name))}
        if given != self.where.keys():
            raise ValueError(f"where: say of {', '.join(sorted(given ^ self.where.keys()))} in which line it stands")
        return self


class Published(_Strict):
    name: str
    title: str
    citation: str
    source: str
    notes: str
    on: list[On]


@dataclass
class Found:
    """What is published for an algorithm on a benchmark."""

    by: Published
    network: str = ""
    pretrained: bool = False
    instead: str = ""
    steps: int = 0
    epochs: int = 0
    settings: dict[str, Setting] = field(default_factory=dict)
    search: dict[str, Span] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)


def all_published() -> dict[str, Published]:
    """Every file, by name: this package's, and those of FARSHIFT_PATH."""
    return {
        name: read_definition(path, Published) for name, path in sorted(named("baselines/published", ".toml").items())
    }


def published(name: str, benchmark: str, algorithm: str) -> Found:
    """What `name` publishes for an algorithm on a benchmark; `UnknownName`, or `FarshiftError` where that is
    nothing."""
    known = all_published()
    if name not in known:
        raise UnknownName("published settings", name, known)
    found = Found(known[name])
    for entry in known[name].on:
        if not any(fnmatch(benchmark, pattern) for pattern in entry.benchmarks):
            continue
        if entry.algorithms and algorithm not in entry.algorithms:
            continue
        found.network, found.instead = entry.network or found.network, entry.instead or found.instead
        found.pretrained = found.pretrained or entry.pretrained
        found.steps, found.epochs = entry.steps or found.steps, entry.epochs or found.epochs
        found.settings |= entry.settings
        found.search |= entry.search
        found.where |= entry.where
    if not found.where:
        others = sorted({pattern for entry in known[name].on for pattern in entry.benchmarks})
        raise FarshiftError(f"--published {name}: it says nothing of {benchmark}, but of {', '.join(others)}")
    return found


def as_published(recipe: Recipe, name: str, benchmark: str, rows: Callable[[], int]) -> Recipe:
    """The recipe's algorithm with what is published for it; its own settings of the algorithm remain. rows: how many
    are trained on, asked where epochs are published. `FarshiftError` where weights are to be named."""
    if recipe.algorithm is None:
        raise ModelError(f"{recipe.name} is an estimator: --published goes with networks")
    found = published(name, benchmark, recipe.algorithm)
    tuned = recipe.network == "pretrained"
    if found.pretrained and not tuned:
        raise FarshiftError(
            f"--published {name}: on {benchmark} it trains {found.network}: name its weights with --fine-tune, "
            "such as microsoft/resnet-50"
        )
    own = declared(files("algorithms")[recipe.algorithm])
    kept = {*own} - {"lr", "batch_size"} | ({"weights", "side", "inputs"} if tuned else set())
    settings = {setting: value for setting, value in recipe.settings.items() if setting in kept} | found.settings
    steps = found.steps
    if found.epochs:
        steps = found.epochs * ceil(rows() / int(str(settings["batch_size"])))
    changed: dict[str, Any] = {"settings": settings, "on": {}, "suits": ["*"]}
    changed |= spends(recipe, lambda _: {}) | {"full": Spend(steps=steps)}
    network = recipe.network if tuned else found.instead or recipe.network
    return recipe.model_copy(update=changed | {"network": network, "published": name})


def listing() -> list[dict[str, Any]]:
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
            "source": one.source,
            "where": where,
        }
        for name, one in all_published().items()
        for entry in one.on
        for setting, where in entry.where.items()
    ]
