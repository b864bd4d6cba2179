"""Generators by name, and what the package that one leaves the making of rows to has to do with them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ...core.plugins import load_module


def load_generator(name: str) -> ModuleType:
    """The module of a generator; `UnknownName` where there is none."""
    return load_module("loaders/generators", name, "generator")


def find_requirement(name: str) -> tuple[str, str]:
    """(module, extra): the optional package that a generator imports; two empty texts where it imports none."""
    requirement: tuple[str, str] = getattr(load_generator(name), "REQUIRES", ("", ""))
    return requirement


def find_missing_extra(name: str) -> str:
    """The extra without which a generator does not run here; empty where it does."""
    needed, extra = find_requirement(name)
    return extra if needed and find_spec(needed) is None else ""


def describe_maker(name: str, options: Mapping[str, Any]) -> str:
    """Who made rows that are not the pinned ones, where a generator leaves that to a package; else empty."""
    maker = getattr(load_generator(name), "maker", None) if name else None
    return str(maker(**options)) if maker is not None else ""
