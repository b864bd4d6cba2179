"""What recorded results took to train, and what those under the full budget take that nobody has recorded yet.

An estimate is a result under the quick budget whose training is made longer in proportion to its steps; what it spent
on predicting and on all else stays. It is of the machine that recorded the quick result, one process.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ...loaders.listing import known_name
from ..recipe import recipes
from .results import card_of, home_of, results

LONG = 30 * 60
"""Seconds of a result beyond which it is no matter of two cores."""


@dataclass(frozen=True)
class FullCost:
    """A baseline on a benchmark, all its seeds. quick: seconds that its result under the quick budget took. full:
    seconds under the full one, measured where such a result is recorded, and estimated otherwise."""

    benchmark: str
    baseline: str
    seeds: int
    quick: float
    full: float
    recorded: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def full_costs(on: str = "") -> list[FullCost]:
    """The networks with a recorded result under the quick budget, by benchmark and name: what they would take under the
    full one, or took. on: this benchmark alone. Estimators have no budget and are left out.

    Raises `UnknownName` for a benchmark without recorded results.
    """
    quickly, fully = home_of("quick"), home_of("full")
    known = results(quickly)
    known_name("benchmark with recorded results", on or None, {benchmark for benchmark, _ in known})
    there = set(results(fully))
    recipe_of = recipes()
    found = []
    for benchmark, name in known:
        recipe = recipe_of.get(name)
        if on not in ("", benchmark) or recipe is None or recipe.quick is None:
            continue
        card = card_of(benchmark, name, quickly)
        training = sum(seed.get("fit_seconds", 0.0) for seed in card["spent"]["by_seed"].values())
        quick = card["spent"]["seconds"]
        longer = recipe.steps("full", benchmark) / (card["budget"].get("steps") or recipe.steps("quick", benchmark))
        full = max(quick - training, 0.0) + longer * training
        recorded = (benchmark, name) in there
        if recorded:
            full = card_of(benchmark, name, fully)["spent"]["seconds"]
        found.append(FullCost(benchmark, name, len(card["budget"]["seeds"]), quick, full, recorded))
    return found


@dataclass(frozen=True)
class Left:
    """A benchmark's networks under the full budget. recorded and of: how many results there are, and how many under the
    quick budget. hours: what the others take together, those of over half an hour left out; long: those, by name."""

    benchmark: str
    recorded: int
    of: int
    hours: float
    long: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self) | {"long": list(self.long)}


def left_to_record(costs: list[FullCost]) -> list[Left]:
    """How far the recording under the full budget has come, by benchmark."""
    found = []
    for benchmark in sorted({one.benchmark for one in costs}):
        here = [one for one in costs if one.benchmark == benchmark]
        left = [one for one in here if not one.recorded]
        short = sum(one.full for one in left if one.full <= LONG)
        long = tuple(one.baseline for one in left if one.full > LONG)
        found.append(Left(benchmark, len(here) - len(left), len(here), short / 3600, long))
    return found
