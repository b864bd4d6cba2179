"""Find generators by name, and the optional packages that they need."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ...core.plugins import load_module


def load_generator(name: str) -> ModuleType:
    """Return the module of a generator. Raises `UnknownName` if there is none."""
    return load_module("loaders/generators", name, "generator")


def find_requirement(name: str) -> tuple[str, str]:
    """Return (module, extra) of the optional package that a generator imports; two empty strings if it imports none."""
    requirement: tuple[str, str] = getattr(load_generator(name), "REQUIRES", ("", ""))
    return requirement


def find_missing_extra(name: str) -> str:
    """Return the extra that has to be installed to run a generator; empty if nothing is missing."""
    needed, extra = find_requirement(name)
    return extra if needed and find_spec(needed) is None else ""


def describe_maker(name: str, options: Mapping[str, Any]) -> str:
    """Return the package (with its version) that generated rows other than the pinned ones; empty if a generator uses
    none."""
    maker = getattr(load_generator(name), "maker", None) if name else None
    return str(maker(**options)) if maker is not None else ""
