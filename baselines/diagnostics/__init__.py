"""Diagnostics: properties of trained replicas, measured on some of their training rows.

Each file here, or under `baselines/diagnostics/` of FARSHIFT_PATH, is one: `CITATION`, `TASKS`, and `measure(subject)
-> {name: values}`. Values are tensors (K,) with one value for each replica, which must not depend on the others.
`measure` raises `NotApplicable`, with the reason, if the diagnostic does not apply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.errors import ModelError, UnknownName
from ...core.plugins import find_files_by_name, load_module
from ._applicable import NotApplicable as NotApplicable

if TYPE_CHECKING:
    from torch import Tensor

    from ..training.replica_stack import ReplicaStack
    from ..training.sampler import Data

ROWS = 256
"""The most training rows on which a replica is diagnosed."""

FOLDER = "baselines/diagnostics"


def list_diagnostics() -> list[str]:
    """The names of all diagnostics, sorted."""
    return sorted(find_files_by_name(FOLDER, ".py"))


def parse_diagnostics(text: str) -> tuple[str, ...]:
    """Parse names of diagnostics separated by commas, sorted; `all` means all. `UnknownName` suggests the nearest."""
    known = list_diagnostics()
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == ["all"]:
        return tuple(known)
    for name in names:
        if name not in known:
            raise UnknownName("diagnostic", name, known, "(or all)")
    return tuple(sorted(set(names)))


def diagnose_stack(
    stack: ReplicaStack, data: Data, task: str, benchmark: str, names: Sequence[str]
) -> list[dict[str, float | str]]:
    """Diagnose each replica of a trained replica stack on at most `ROWS` of its training rows. Returns values by
    `diagnostic.value`, and the number of rows. A diagnostic that does not apply has the value `n/a` and the reason."""
    if not names:
        return [{} for _ in range(len(stack))]
    from ._subject import Subject, sample_rows

    held_out = data.held_out.get("id_val")
    validation = None if held_out is None else sample_rows(held_out, benchmark, ROWS)
    subject = Subject(stack, sample_rows(data, benchmark, ROWS), task, validation)
    results: list[dict[str, float | str]] = [{"diagnostic_rows": len(subject)} for _ in range(len(stack))]
    for name in names:
        plugin = load_module(FOLDER, name, "diagnostic")
        try:
            if task not in plugin.TASKS:
                raise NotApplicable(f"it is for {' and '.join(plugin.TASKS)} tasks")
            values = _check_values(name, plugin.measure(subject), len(stack))
        except NotApplicable as error:
            for own in results:
                own[name] = f"n/a ({error})"
            continue
        for own, each in zip(results, values, strict=True):
            own.update(each)
    return results


def _check_values(name: str, measured: Mapping[str, Tensor], replicas: int) -> list[dict[str, Any]]:
    """The values of each replica by full name; a value that is not finite is `n/a`."""
    by_replica: list[dict[str, Any]] = [{} for _ in range(replicas)]
    for what, values in measured.items():
        if tuple(values.shape) != (replicas,):
            raise ModelError(
                f"diagnostic {name}: {what} has the shape {tuple(values.shape)}: give one value a replica ({replicas},)"
            )
        for own, value in zip(by_replica, values.tolist(), strict=True):
            own[f"{name}.{what}"] = value if math.isfinite(value) else "n/a (not defined on these rows)"
    return by_replica
