"""Random search: settings drawn from an algorithm's published ranges, each draw seeded by its own name.

As in DomainBed (Gulrajani and Lopez-Paz, ICLR 2021, arXiv:2007.01434, appendix D). A draw depends only on the setting's
name and the draw's number, so adding a setting does not change the others.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.draws import draw_uniform
from ...core.errors import BadDefinition, FarshiftError
from ..recipe import Recipe, find_recipe, read_declaration, resolve_settings
from .published import find_published

TRAINER: Mapping[str, list[Any]] = {"lr": ["log10", -4.5, -2.5], "weight_decay": ["log10", -6.0, -2.0]}
"""Ranges of the settings of every network's training: DomainBed's for small images."""


def draw_settings(name: str, on: str, count: int, base_recipe: Recipe | None = None) -> dict[str, dict[str, Any]]:
    """Draw `count` settings of the baseline `name` on a benchmark: draw-00 has its defaults, the others are random.
    base_recipe: the recipe to run, if it differs from the shipped one; with published settings, the published ranges
    are used."""
    base_recipe = base_recipe or find_recipe(name)
    if base_recipe.algorithm is None:
        raise FarshiftError(f"{name} is a scikit-learn estimator and has no ranges: give a file of --settings")
    common = (
        find_published(base_recipe.published, on, base_recipe.algorithm).search if base_recipe.published else TRAINER
    )
    if not common:
        raise FarshiftError(
            f"--search: {base_recipe.published} publishes no ranges for {on}: give settings in a file (--settings)"
        )
    space = dict(common) | read_declaration(base_recipe.algorithm).search
    known = resolve_settings(base_recipe, on)
    wide = len(str(count - 1))
    draws: dict[str, dict[str, Any]] = {f"draw-{0:0{wide}}": {}}
    for number in range(1, count):
        draws[f"draw-{number:0{wide}}"] = {
            setting: _draw_value(f"{name}/{setting}", number, span, known.get(setting))
            for setting, span in space.items()
        }
    return draws


def _draw_value(name: str, number: int, span: list[Any], like: Any) -> Any:
    """Draw `number` of a range: ["log10", low, high] and ["log2", low, high] of exponents, ["uniform", low, high] or
    ["choice", ...]. Integers are rounded to the nearest; powers of two are rounded down, as in DomainBed."""
    at = float(draw_uniform(f"baselines/search/{name}", np.array([number], np.uint64))[0])
    kind, *rest = span
    if kind == "choice":
        return rest[min(int(at * len(rest)), len(rest) - 1)]
    low, high = rest
    value = low + at * (high - low)
    if kind == "log10":
        value = 10.0**value
    elif kind == "log2":
        value = 2.0**value
        return math.floor(value) if isinstance(like, int) else value
    elif kind != "uniform":
        raise BadDefinition(f"search space of {name}: {kind!r} is none of log10, log2, uniform, choice")
    return math.floor(value + 0.5) if isinstance(like, int) and not isinstance(like, bool) else value
