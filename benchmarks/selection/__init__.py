"""Selection rules, one file each: they choose which of a run's candidates (checkpoint x setting) is scored.

A rule module has

    PART: str                       the part whose predictions it compares; "" for a rule that compares nothing

and, where the part's rows are not compared by their observed labels,

    LABELS = "true"                 by their true labels
    ballot(benchmark) -> SelectionData   by other rows, labels or groups

A rule that cannot be applied to every benchmark with the part has

    unavailable(benchmark) -> str   the reason; "" if it can be applied

A rule that considers only the last checkpoint of each setting also has

    FINALS = True

a rule that is applied only if the protocol lists it (the others are reported with every score) has

    DECLARED = True

and a rule that trains additional models has

    folds(benchmark, model inputs) -> Iterator[Fold]

The *scorer* applies the rules to the predictions of every candidate; the rule named by a run only determines which of
them its entry is scored by. For each seed, the candidate with the best primary metric is chosen; ties go to the
earliest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.plugins import find_files_by_name, load_module

if TYPE_CHECKING:
    from ..model_inputs.rows import ModelInputs, ModelRows


class Benchmark(Protocol):
    """The attributes of a benchmark that this file uses. Rules receive the full object (`benchmarks/benchmark.py`)."""

    @property
    def name(self) -> str: ...

    def has_part(self, name: str) -> bool: ...


@dataclass(frozen=True)
class SelectionData:
    """Rows that candidates are evaluated on: ids (n,), labels (n,), and groups (n,) if every group has equal weight,
    regardless of its number of rows."""

    row_ids: NDArray[np.uint64]
    labels: NDArray[Any]
    groups: NDArray[Any] | None = None


@dataclass(frozen=True)
class Fold:
    """One additional model that a rule trains: its training rows, and the rows that it then predicts."""

    name: str
    train: ModelRows
    held_out: ModelRows


@dataclass(frozen=True)
class Rule:
    """A selection rule module with a uniform interface."""

    name: str
    part: str
    unavailable: Callable[[Benchmark], str]
    ballot: Callable[[Benchmark], SelectionData | None]
    folds: Callable[[Benchmark, ModelInputs], Iterator[Fold]] | None
    finals: bool = False
    declared: bool = False


def load_rules() -> dict[str, Rule]:
    """Return every selection rule by name: those of the package and those in `FARSHIFT_PATH`."""
    loaded = {}
    for name in sorted(find_files_by_name("benchmarks/selection", ".py")):
        rule = load_module("benchmarks/selection", name, "selection rule")
        loaded[name] = Rule(
            name,
            rule.PART,
            getattr(rule, "unavailable", partial(needs_part, name=rule.PART)),
            getattr(rule, "ballot", partial(_select_part, name=rule.PART, labels=getattr(rule, "LABELS", "observed"))),
            getattr(rule, "folds", None),
            getattr(rule, "FINALS", False),
            getattr(rule, "DECLARED", False),
        )
    return loaded


def needs_part(benchmark: Benchmark, name: str) -> str:
    """Return the reason why a rule that uses a part cannot be applied; "" if the benchmark has the part."""
    return "" if not name or benchmark.has_part(name) else f"{benchmark.name} has no part {name}"


def _select_part(benchmark: Any, name: str, labels: str) -> SelectionData | None:
    if not name:
        return None
    part = benchmark.part(name)
    return SelectionData(part.row_ids, part.true_labels() if labels == "true" else part.observed_labels())
