"""Generators by name, and what the package that one leaves the making of rows to has to do with them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from ...core.plugins import module


def generator_of(name: str) -> ModuleType:
    """The module of a generator; `UnknownName` where there is none."""
    return module("loaders/generators", name, "generator")


def required(name: str) -> tuple[str, str]:
    """(module, extra): the optional package that a generator imports; two empty texts where it imports none."""
    found: tuple[str, str] = getattr(generator_of(name), "REQUIRES", ("", ""))
    return found


def lacking(name: str) -> str:
    """The extra without which a generator does not run here; empty where it does."""
    needed, extra = required(name)
    return extra if needed and find_spec(needed) is None else ""


def made_by(name: str, options: Mapping[str, Any]) -> str:
    """Who made rows that are not the pinned ones, where a generator leaves that to a package; else empty."""
    maker = getattr(generator_of(name), "maker", None) if name else None
    return str(maker(**options)) if maker is not None else ""
