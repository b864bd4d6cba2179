"""How our algorithms are run on the toy: a file for each way, with `ours(algorithm, settings)`, which gives numbers by
the names that the reference has."""

from __future__ import annotations

from importlib import import_module

from ..reference import Numbers, Reference


def of(reference: Reference) -> Numbers:
    """Our numbers for what a reference has."""
    problem = import_module(f".{reference.problem}", __package__)
    result: Numbers = problem.ours(reference.algorithm, dict(reference.settings))
    return result
