"""Checks of a run.toml: the values that scoring and display need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...benchmarks.limits import MAX_CANDIDATES, MAX_SEEDS, find_name_problem

_TOUCHABLE = {"ood_val", "unlabelled"}
"""The data that `fit` may request beyond training and validation rows."""


def iterate_value_problems(card: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the problems of the values of a run's card, (key, description) each. Its tables and digest are already
    checked."""
    budget, model, benchmark, spent = card["budget"], card["model"], card["benchmark"], card["spent"]
    yield from _iterate_budget_problems(budget)
    if problem := find_name_problem(model.get("name")):
        yield "model.name", problem
    for key in ("name", "entry_identity", "selection"):
        if not isinstance(benchmark.get(key), str) or len(benchmark[key]) > 200:
            yield f"benchmark.{key}", f"the benchmark's {key} must be a string"
    touched, by_seed = spent.get("touched"), spent.get("by_seed")
    if not isinstance(touched, list) or not set(map(str, touched)) <= _TOUCHABLE:
        yield "spent.touched", f"touched must be a list of {', '.join(sorted(_TOUCHABLE))}"
    if not isinstance(by_seed, dict) or not all(isinstance(seed, dict) for seed in by_seed.values()):
        yield "spent.by_seed", "spent must have a table for each seed"
    yield from _iterate_candidate_problems(model.get("candidates"), model.get("finals"))


def _iterate_budget_problems(budget: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if budget.get("name") not in ("full", "quick"):
        yield "budget.name", f"budget {budget.get('name')!r} is neither full nor quick"
    seeds, steps = budget.get("seeds"), budget.get("steps")
    all_integers = isinstance(seeds, list) and all(type(seed) is int and 0 <= seed < 2**31 for seed in seeds)
    if not isinstance(seeds, list) or not all_integers or not 0 < len(seeds) <= MAX_SEEDS:
        yield "budget.seeds", f"seeds must be 1 to {MAX_SEEDS} integers from 0 to 2147483647"
    elif len(set(seeds)) != len(seeds):
        yield "budget.seeds", "a seed is listed twice"
    if steps is not None and (type(steps) is not int or not 0 < steps < 2**31):
        yield "budget.steps", "steps must be a positive integer"
    if not isinstance(budget.get("device"), str) or len(budget["device"]) > 100:
        yield "budget.device", "device must be a string"


def _iterate_candidate_problems(candidates: Any, finals: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(candidates, list) or not 0 < len(candidates) <= MAX_CANDIDATES:
        yield "model.candidates", f"candidates must list 1 to {MAX_CANDIDATES} names"
    elif any(not isinstance(name, str) or not 0 < len(name) <= 201 or not name.isprintable() for name in candidates):
        yield "model.candidates", "a candidate's name must be 1 to 201 printable characters"
    elif len(set(candidates)) < len(candidates):
        yield "model.candidates", "a candidate is listed twice"
    elif not isinstance(finals, list) or not finals or any(name not in candidates for name in finals):
        yield "model.finals", "finals must list the last checkpoint of each setting, each one of the candidates"
    elif len(set(finals)) < len(finals):
        yield "model.finals", "a final checkpoint is listed twice"
