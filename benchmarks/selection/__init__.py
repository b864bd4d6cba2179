"""Selection rules: which of a run's candidates (checkpoint x setting) is scored; one file each.

A rule module has

    PART: str                       the part whose predictions it judges by; "" for a rule that judges nothing
    unavailable(benchmark) -> str   why it cannot be applied to a benchmark; "" if it can
    ballot(benchmark) -> Ballot     the rows that candidates are judged on, and the labels; None for such a rule

a rule that judges a setting by its last checkpoint alone also has

    FINALS = True

one that is applied only where the protocol lists it (the others are shown beside every score)

    DECLARED = True

and a rule that trains models of its own also has

    folds(benchmark, blind data) -> Iterator[Fold]

The *scorer* applies the rules, from the predictions of every candidate; a run's own choice decides only which of them
its entry is scored by. Per seed the candidate with the best primary metric wins, the earliest of equals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...core.plugins import find_files_by_name, load_module

if TYPE_CHECKING:
    from ..blind.rows import Inputs, ModelInputs
    from ..blind.training_table import TrainingTable


class Benchmark(Protocol):
    """What this file reads of a benchmark. Rules are given the whole of it (`benchmarks/benchmark.py`)."""

    @property
    def name(self) -> str: ...

    def has_part(self, name: str) -> bool: ...


@dataclass(frozen=True)
class SelectionData:
    """Rows that candidates are judged on: their ids (n,), labels (n,), and groups (n,) where each group counts alike,
    however many rows it has."""

    row_ids: NDArray[np.uint64]
    labels: NDArray[Any]
    groups: NDArray[Any] | None = None


@dataclass(frozen=True)
class Fold:
    """One model to be trained for a rule alone: on which rows, and which rows it is then asked for."""

    name: str
    train: TrainingTable
    held_out: Inputs


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
    """Every selection rule, the package's own and those of `FARSHIFT_PATH`, by name."""
    loaded = {}
    for name in sorted(find_files_by_name("benchmarks/selection", ".py")):
        rule = load_module("benchmarks/selection", name, "selection rule")
        loaded[name] = Rule(
            name,
            rule.PART,
            rule.unavailable,
            rule.ballot,
            getattr(rule, "folds", None),
            getattr(rule, "FINALS", False),
            getattr(rule, "DECLARED", False),
        )
    return loaded


def needs_part(benchmark: Benchmark, name: str) -> str:
    """Why a rule that judges by a part cannot be applied; "" where the benchmark has the part."""
    return "" if benchmark.has_part(name) else f"{benchmark.name} has no part {name}"
