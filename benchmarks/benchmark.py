"""Benchmarks: a split, a task, metrics and a protocol; one TOML file each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ..core.canonical import compute_identity
from ..core.draws import draw_permutation
from ..core.errors import BadDefinition, FarshiftError, UnknownName
from ..core.plugins import copy_definition, index_definitions, read_all_definitions, read_family
from ..loaders.acquire.source import read_categories
from ..loaders.part import Part
from ..loaders.split import Split, open_split
from ..splits.assignment import PARTS
from ..splits.catalogue import find_manifest as find_split
from ..splits.catalogue import resolve_member
from ..splits.manifest import Manifest
from .definition import BenchmarkDefinition, Holdout, View
from .metrics import Metric, find_metric
from .model import Task
from .prompting.prompt import check_prompt
from .selection import Rule, load_rules

SCORER = 5
"""The version of the scorer. It is part of each entry's identity and increases with a change that alters scores."""

KNOWN = (2, 3, 4)
"""Earlier versions of the scorer whose runs have the same predictions, so that this one can score them."""


VALIDATION = ("id_val", "ood_val")
"""The parts on which candidates are selected; predicted if a benchmark has them."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark definition. Its data are opened on first use. limit: of the rows of each part, for a trial run."""

    definition: BenchmarkDefinition
    path: Path
    limit: int | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        task = self.definition.task
        return f"Benchmark({self.name}: {task.type}, {', '.join(task.inputs)} -> {task.label})"

    @property
    def name(self) -> str:
        return self.definition.name

    @cached_property
    def task(self) -> Task:
        pin = self.definition.task
        codes = read_categories(self.manifest.definition.source.name) if pin.categories is None else pin.categories
        categories = tuple(name for name in pin.inputs if name in codes)
        return Task(
            pin.type, tuple(pin.inputs), pin.label, pin.classes, pin.tokens, pin.aligned, tuple(pin.names), categories
        )

    @cached_property
    def manifest(self) -> Manifest:
        return find_split(self.definition.split)

    @property
    def kind(self) -> str:
        return self.manifest.definition.kind

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics, the primary one first; `BadDefinition` for another version than the pinned one, or another
        task."""
        try:
            metrics = tuple(find_metric(pin.name, pin.version, pin.options) for pin in self.definition.metrics)
        except BadDefinition as error:
            raise BadDefinition(f"{self.path}: {error}") from error
        for scorer in metrics:
            if self.task.type not in scorer.tasks:
                raise BadDefinition(f"{self.path}: the metric {scorer.name} cannot score {self.task.type} tasks")
        return metrics

    @cached_property
    def metric_fields(self) -> tuple[str, ...]:
        """The row fields that the metrics read in addition to prediction and label, sorted."""
        return tuple(sorted({name for scorer in self.metrics for name in scorer.fields} - {self.task.label}))

    def seeds(self, budget: str) -> int:
        """The number of seeds that the protocol requires under a budget."""
        protocol = self.definition.protocol
        return protocol.quick_seeds if budget == "quick" else protocol.seeds

    def rule(self, name: str | None) -> Rule:
        """Return the selection rule `name`, which the protocol must allow; its first one by default."""
        allowed = self.definition.protocol.selection
        if name is not None and name not in allowed:
            raise FarshiftError(f"selection {name!r}: the protocol of {self.name} allows {' or '.join(allowed)}")
        known = load_rules()
        chosen = name or allowed[0]
        if chosen not in known:
            raise BadDefinition(f"{self.path}: {UnknownName('selection rule', chosen, known)}")
        return known[chosen]

    def identity(
        self, budget: str, steps: int | None = None, selection: str | None = None, scorer: int | None = None
    ) -> str:
        """Return the identity of an entry: manifest + protocol (with the budget, steps if set by hand, and the
        selection rule) + scorer, by default the current one. Only entries of equal identity share a leaderboard
        table."""
        definition = self.definition
        return compute_identity(
            {
                "scorer": SCORER if scorer is None else scorer,
                "benchmark": definition.name,
                "manifest": self.manifest.identity,
                "task": definition.task.model_dump(exclude={"categories"}),
                "holdouts": [holdout.model_dump() for holdout in definition.holdouts],
                "metrics": [pin.model_dump() for pin in definition.metrics],
                "views": {name: view.model_dump() for name, view in definition.views.items()},
                "protocol": definition.protocol.model_dump(),
                "prompt": None if definition.prompt is None else definition.prompt.model_dump(),
                "composed": None if definition.composed is None else definition.composed.model_dump(),
                "budget": budget if steps is None else f"{budget}, {steps} steps",
                "selection": self.rule(selection).name,
            }
        )

    def made_under(
        self, stated: str, budget: str, steps: int | None = None, selection: str | None = None
    ) -> int | None:
        """Return the scorer version of a `stated` identity: this one, or an earlier one whose runs it can score; None
        for another benchmark, or another version of this one."""
        return self.identities(budget, steps, selection).get(stated)

    def identities(self, budget: str, steps: int | None = None, selection: str | None = None) -> dict[str, int]:
        """Map each identity, under this scorer and the earlier ones whose runs it can score, to the scorer's
        version."""
        return {self.identity(budget, steps, selection, version): version for version in sorted({SCORER, *KNOWN})}

    @property
    def predicted_parts(self) -> tuple[str, ...]:
        """The parts that each candidate predicts, sorted: those of the views, and the validation parts."""
        viewed = {view.part for view in self.definition.views.values()}
        return tuple(sorted(viewed | {name for name in VALIDATION if self.has_part(name)}))

    @property
    def selection_only_parts(self) -> list[str]:
        """The validation parts that are in no view: only selection rules use them."""
        viewed = {view.part for view in self.definition.views.values()}
        return [name for name in VALIDATION if self.has_part(name) and name not in viewed]

    def list_parts_without(self, left_out: Iterable[str]) -> list[str]:
        """List the predicted parts without those of `left_out`, as far as only selection rules use them."""
        absent = {*left_out} & {*self.selection_only_parts}
        return [name for name in self.predicted_parts if name not in absent]

    @cached_property
    def split(self) -> Split:
        """The split, opened (pulled and verified if necessary)."""
        return open_split(self.definition.split)

    def check(self) -> None:
        """Check the definition against its data: roles of inputs, the split's label, the fields of metrics and prompts,
        and that parts and views have rows."""
        self.metrics  # noqa: B018  (checks their versions)
        schema, label = self.split.source.schema, self.manifest.definition.label
        for name in self.definition.task.inputs:
            if schema[name].role != "input":
                raise BadDefinition(f"{self.path}: {name!r} has the role {schema[name].role}, so it cannot be an input")
        if self.definition.task.label != label:
            raise BadDefinition(f"{self.path}: label {self.definition.task.label!r} is not the split's, {label!r}")
        if self.task.type == "classification" and schema[label].item == "string":
            raise BadDefinition(
                f"{self.path}: the label {label!r} is text, not a class: let its source turn its texts into classes "
                f'(for your own data: classes = ["{label}"]), or set type = "sequence"'
            )
        self._check_metric_fields()
        for holdout in self.definition.holdouts:
            if holdout.to in self.manifest.definition.parts:
                raise BadDefinition(f"{self.path}: holdouts: the split has rows of {holdout.to} already")
        for name in sorted({"train", *self.predicted_parts}):
            if not self.has_part(name):
                has = [part for part in PARTS if self.has_part(part)]
                raise BadDefinition(f"{self.path}: views: {UnknownName('part', name, has)}")
            if not len(self.part(name)):
                raise BadDefinition(
                    f"{self.path}: the part {name} has no rows: its share, or the remainder, is empty (`holdouts` sets "
                    "which share of which part it is)"
                )
        for name in self.definition.protocol.selection:
            if reason := self.rule(name).unavailable(self):
                raise BadDefinition(f"{self.path}: selection {name!r}: {reason}")
        for name, view in self.definition.views.items():
            if not len(self._select_view(view)):
                raise BadDefinition(f"{self.path}: the view {name!r} has no rows")
        if self.definition.prompt is not None:
            try:
                check_prompt(self.definition.prompt, self.name, self.task, len(self._read_part("train")))
            except BadDefinition as error:
                raise BadDefinition(f"{self.path}: {error}") from error

    def _check_metric_fields(self) -> None:
        if not self.metric_fields:
            return
        known = self.part(self.definition.views["ood"].part).columns
        for name in self.metric_fields:
            if name not in known:
                raise BadDefinition(f"{self.path}: metrics: {UnknownName('field', name, known)}")
        if self.metrics[0].fields and "crafted_shift" in self.definition.protocol.selection:
            raise BadDefinition(
                f"{self.path}: selection 'crafted_shift': {self.metrics[0].name} reads fields of the rows, which the "
                "augmented copies do not have"
            )

    def has_part(self, name: str) -> bool:
        """Whether this part has rows, published or held out."""
        published = name in self.manifest.definition.parts
        return published or any(holdout.to == name for holdout in self.definition.holdouts)

    def part(self, name: str) -> Part:
        """Return a part as this benchmark uses it: without the rows held out of it, or with those held out for it."""
        rows = self._read_part(name)
        if self.limit is None:
            return rows
        return rows.select(select_limited_rows(self.name, name, rows.row_ids, self.limit))

    def _read_part(self, name: str) -> Part:
        """A part with all its rows, also in a trial run."""
        holdouts = self.definition.holdouts
        source_holdout = next((holdout for holdout in holdouts if holdout.to == name), None)
        if source_holdout is None:
            full_part = self.split.part(name)
            return full_part.select(self._owner(name, full_part) == "")
        full_part = self.split.part(source_holdout.part)
        rows = full_part.select(self._owner(source_holdout.part, full_part) == name)
        return replace(rows, held_out_as=name)

    def load(self, part: str = "train") -> Part:
        """Load a part as this benchmark's protocol uses it, pulled and verified if needed: `train` is what a model may
        train on, without the rows that are held out for `id_test` or `id_val`. `UnknownName` for an unknown part.

        >>> import farshift as fs
        >>> len(fs.load("vowel/speakers", "train")), len(fs.benchmark("vowel/speakers").load("train"))
        (528, 380)
        """
        if not self.has_part(part):
            raise UnknownName(f"part of {self.name}", part, [name for name in PARTS if self.has_part(name)])
        return self.part(part)

    def holds_out_of(self, split: str, part: str) -> bool:
        """Whether rows of this part of a split, by its full name, are held out for another part."""
        return self.definition.split == split and any(holdout.part == part for holdout in self.definition.holdouts)

    def _owner(self, name: str, full_part: Part) -> NDArray[Any]:
        """Return, for each row of a published part, the part that it is held out for, or ""."""
        owner = np.full(len(full_part), "", dtype="U8")
        weights = full_part.row_metadata.get("weight", np.ones(len(full_part), np.int64))
        for holdout in self.definition.holdouts:
            if holdout.part == name:
                left = np.flatnonzero((weights == 1) & (owner == ""))
                drawn = draw_permutation(self._stream(holdout), full_part.row_ids[left])[
                    : round(holdout.share * len(left))
                ]
                owner[left[drawn]] = holdout.to
        return owner

    def _stream(self, holdout: Holdout) -> str:
        # This name is that of the first kind of hold-out; another name would draw other rows.
        suffix = "" if holdout.to == "id_test" else f"/{holdout.to}"
        return f"{self.manifest.identity}/holdout{suffix}"

    def view(self, view: View | str) -> tuple[Part, NDArray[Any]]:
        """Return a view's rows and the labels that they are scored against."""
        if isinstance(view, str):
            view = self.definition.views[view]
        part = self._select_view(view)
        return part, part.true_labels() if view.against == "true" else part.observed_labels()

    def _select_view(self, view: View) -> Part:
        """The rows of a view."""
        part = self.part(view.part)
        if view.rows == "all":
            return part
        return part.select(part.corrupted if view.rows == "corrupted" else ~part.corrupted)


def select_limited_rows(benchmark: str, part: str, row_ids: NDArray[np.uint64], limit: int) -> NDArray[np.int64]:
    """Return the indices of the rows of a part under a limit, ascending. They are drawn by row ids: the same each time,
    and a subset of those of any larger limit."""
    return np.sort(draw_permutation(f"limit/{benchmark}/{part}", row_ids)[:limit])


def make_benchmark_on(split: Split, definition: BenchmarkDefinition, path: Path) -> Benchmark:
    """Make a benchmark on an open split, for example one that is not stored yet and cannot be found by name."""
    benchmark = Benchmark(definition, path)
    vars(benchmark).update(manifest=split.manifest, split=split)  # fill the cached properties
    return benchmark


def read_benchmarks(path: Path) -> list[Benchmark]:
    """Read the benchmarks of a TOML file, one or a family; `BadDefinition` lists what is wrong in it."""
    return [Benchmark(definition, path) for definition in read_family(path, BenchmarkDefinition)]


def load_benchmarks() -> dict[str, Benchmark]:
    """Load all benchmarks, the package's own and those of `FARSHIFT_PATH`, by name."""
    return read_all_definitions("benchmarks/definitions", read_benchmarks, "benchmark")


def find_benchmark(name: str) -> Benchmark:
    """Return the benchmark of this name; `UnknownName` suggests similar ones.

    >>> import farshift as fs
    >>> benchmark = fs.benchmark("modadd97/xi35")
    >>> benchmark.kind, benchmark.task.type, benchmark.task.inputs
    ('corrupted-label', 'classification', ('a', 'b'))
    """
    known = index_definitions("benchmarks/definitions", read_benchmarks, "benchmark")
    name = resolve_member(name, "benchmark", known)
    if name not in known:
        hint = "(for a benchmark of your own, add its folder to FARSHIFT_PATH)"
        raise UnknownName("benchmark", name, known, hint, "farshift benchmarks list")
    return copy_definition(known[name])


def load_suite(name: str) -> list[Benchmark]:
    """List the benchmarks of a suite."""
    known = load_benchmarks().values()
    members = [benchmark for benchmark in known if name in benchmark.definition.suites]
    if not members:
        raise UnknownName("suite", name, {suite for benchmark in known for suite in benchmark.definition.suites})
    return members


CANARY = "FARSHIFT CANARY, no training on this data:"
"""The beginning of the canary line of a benchmark (after the canary GUID of BIG-bench, Srivastava et al. 2022,
arXiv:2206.04615), which is printed with each export of the labels of its test rows."""


def make_guid(benchmark: Benchmark) -> str:
    """Return the benchmark's GUID: the first bits of sha256 over its name and its manifest's identity."""
    digest = compute_identity({"canary": benchmark.name, "manifest": benchmark.manifest.identity})
    return str(UUID(digest[:32]))


def make_canary(benchmark: Benchmark) -> str:
    """Return the whole canary line."""
    return f"{CANARY} {benchmark.name} {make_guid(benchmark)}"
