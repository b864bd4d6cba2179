"""Benchmarks: a split, a task, metrics and a protocol; one TOML file each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..loaders.part import Part
from ..loaders.split import Split, open_split
from ..splits.canonical import identity_of
from ..splits.catalogue import find as find_split
from ..splits.draws import shuffled
from ..splits.errors import BadDefinition, UnknownName
from ..splits.manifest import Manifest
from ..splits.plugins import gathered, read_definition
from .model import Task

SCORER = 1
"""The version of the scorer. It is part of every entry's identity: a change that moves a score raises it."""

MAX_SEEDS = 100
MAX_TEXT = 100_000
"""Seeds of a run, and characters of a predicted text, that harness and boards take."""


def name_problem(name: Any) -> str:
    """What is wrong with a model's name; empty if nothing is."""
    if isinstance(name, str) and 0 < len(name) <= 100 and name.isprintable():
        return ""
    return "the model's name must be 1 to 100 printable characters"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TaskPin(_Strict):
    type: Literal["classification", "sequence"]
    inputs: list[str] = Field(min_length=1)
    label: str
    classes: int | None = None
    tokens: Literal["whitespace", "character"] = "whitespace"
    aligned: bool = False


class Holdout(_Strict):
    """In-distribution test rows taken out of a published training part, so that the split stays as published.

    `share` of the rows of weight 1 (a published repetition is never withheld), by a draw on row ids.
    """

    share: float = Field(gt=0, lt=1)
    part: Literal["train"] = "train"
    to: Literal["id_test"] = "id_test"


class MetricPin(_Strict):
    name: str
    version: int


class View(_Strict):
    """Rows that a score is taken over: those of a part, all or only the (un)corrupted ones, against the true label
    or the one given in training."""

    part: str
    rows: Literal["all", "corrupted", "clean"] = "all"
    against: Literal["true", "given"] = "true"


class Protocol(_Strict):
    """How a model may be trained and chosen. `quick` needs fewer seeds; its entries never share a table with full
    ones, since the budget is part of an entry's identity."""

    selection: Literal["last"] = "last"
    seeds: int = Field(default=5, ge=1)
    quick_seeds: int = Field(default=3, ge=1)


class Reference(_Strict):
    """A published number, and where it stands."""

    model: str
    score: str
    source: str


class Definition(_Strict):
    name: str
    split: str
    title: str
    suites: list[str] = []
    notes: str = ""
    task: TaskPin
    holdout: Holdout | None = None
    metrics: list[MetricPin] = Field(min_length=1, max_length=1)
    views: dict[str, View]
    protocol: Protocol = Protocol()
    references: list[Reference] = []

    @model_validator(mode="after")
    def _whole(self) -> Definition:
        if not {"id", "ood"} <= self.views.keys():
            raise ValueError("views must have `id` and `ood`")
        if self.task.type == "classification" and not self.task.classes:
            raise ValueError("a classification task needs `classes`")
        if "@" not in self.split:
            raise ValueError("split must pin a version, such as scan/length@1")
        return self


@dataclass(frozen=True)
class Benchmark:
    """A benchmark definition. Its data are opened when they are first asked for."""

    definition: Definition
    path: Path

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def task(self) -> Task:
        pin = self.definition.task
        return Task(pin.type, tuple(pin.inputs), pin.label, pin.classes, pin.tokens, pin.aligned)

    @cached_property
    def manifest(self) -> Manifest:
        return find_split(self.definition.split)

    @property
    def kind(self) -> str:
        return self.manifest.definition.kind

    def seeds(self, budget: str) -> int:
        """The number of seeds that the protocol asks for under a budget."""
        protocol = self.definition.protocol
        return protocol.quick_seeds if budget == "quick" else protocol.seeds

    def identity(self, budget: str, steps: int | None = None) -> str:
        """The identity that an entry carries: manifest + protocol (with the budget, and steps where they were set by
        hand) + scorer. Only entries of equal identity share a table."""
        definition = self.definition
        return identity_of(
            {
                "scorer": SCORER,
                "benchmark": definition.name,
                "manifest": self.manifest.identity,
                "task": definition.task.model_dump(),
                "holdout": None if definition.holdout is None else str(definition.holdout.share),
                "metrics": [pin.model_dump() for pin in definition.metrics],
                "views": {name: view.model_dump() for name, view in definition.views.items()},
                "protocol": definition.protocol.model_dump(),
                "budget": budget if steps is None else f"{budget}, {steps} steps",
            }
        )

    @property
    def predicted_parts(self) -> tuple[str, ...]:
        """The parts a model must predict, sorted."""
        return tuple(sorted({view.part for view in self.definition.views.values()}))

    @cached_property
    def split(self) -> Split:
        """The split, opened (pulled and verified where it is not yet)."""
        return open_split(self.definition.split)

    def check(self) -> None:
        """Hold the definition to its data: inputs of role input, the split's label, views that have rows."""
        schema, label = self.split.source.schema, self.manifest.definition.label
        for name in self.definition.task.inputs:
            if schema[name].role != "input":
                raise BadDefinition(f"{self.path}: {name!r} is of role {schema[name].role}, and no input for a model")
        if self.definition.task.label != label:
            raise BadDefinition(f"{self.path}: label {self.definition.task.label!r} is not the split's, {label!r}")
        for name in self.definition.views:
            if not len(self.view(name)[0]):
                raise BadDefinition(f"{self.path}: the view {name!r} has no rows")

    def part(self, name: str) -> Part:
        """A part as this benchmark uses it: with a hold-out, `train` lacks the rows that make up `id_test`."""
        holdout = self.definition.holdout
        if holdout is None or name not in (holdout.part, holdout.to):
            return self.split.part(name)
        whole = self.split.part(holdout.part)
        withheld = self._withheld(whole, holdout.share)
        return whole.select(withheld if name == holdout.to else ~withheld)

    def _withheld(self, whole: Part, share: float) -> NDArray[np.bool_]:
        weights = whole.carried.get("weight")
        open_to_draw = np.arange(len(whole)) if weights is None else np.flatnonzero(weights == 1)
        stream = f"{self.manifest.identity}/holdout"
        drawn = shuffled(stream, whole.row_ids[open_to_draw])[: round(share * len(open_to_draw))]
        withheld = np.zeros(len(whole), bool)
        withheld[open_to_draw[drawn]] = True
        return withheld

    def has_part(self, name: str) -> bool:
        holdout = self.definition.holdout
        return name in self.split.parts or (holdout is not None and name == holdout.to)

    def view(self, name: str) -> tuple[Part, NDArray[Any]]:
        """A view's rows and the labels they are scored against."""
        view = self.definition.views[name]
        part = self.part(view.part)
        if view.rows != "all":
            part = part.select(part.corrupted if view.rows == "corrupted" else ~part.corrupted)
        return part, part.truth() if view.against == "true" else part.given()


def read_benchmark(path: Path) -> Benchmark:
    """The benchmark of a TOML file; `BadDefinition` lists what is wrong in it."""
    return Benchmark(read_definition(path, Definition), path)


def benchmarks() -> dict[str, Benchmark]:
    """Every benchmark, the package's own and those of `FARSHIFT_PATH`, by name."""
    return gathered("benchmarks/definitions", read_benchmark, "benchmark")


def find_benchmark(name: str) -> Benchmark:
    found = benchmarks()
    if name not in found:
        raise UnknownName("benchmark", name, found)
    return found[name]


def suite(name: str) -> list[Benchmark]:
    """The benchmarks that say they belong to a suite."""
    found = benchmarks().values()
    members = [benchmark for benchmark in found if name in benchmark.definition.suites]
    if not members:
        raise UnknownName("suite", name, {suite for benchmark in found for suite in benchmark.definition.suites})
    return members
