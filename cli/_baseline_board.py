"""A board of the shipped baselines, from their recorded predictions: one command, recomputable by anyone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from ..baselines.recipe import load_recipes
from ..baselines.running.results import digest_result, find_recorded_run, list_results
from ..benchmarks.benchmark import load_suite as members
from ..core.errors import FarshiftError, UnknownName
from ..leaderboard.operations.build import BuildReport, Job, build

NAME = "Farshift baselines"
TEAM = "Farshift"
PLAIN = "mlp"


def build_board(
    folder: Path | str,
    suite: str = "",
    benchmarks: Sequence[str] = (),
    baselines: Sequence[str] = (),
    workers: int = 2,
) -> BuildReport:
    """Build, or go on with, the board of all recorded results, or of those of a suite, of some benchmarks, of some
    baselines. Entries are compared with the baseline that plays the plain part on a benchmark.

    Raises `UnknownName` for a benchmark or a baseline without a recorded result."""
    recorded_pairs = list_results()
    known = {on for on, _ in recorded_pairs}
    _require_known("benchmark with recorded results", benchmarks, known)
    _require_known("baseline with recorded results", baselines, {name for _, name in recorded_pairs})
    selected = set(benchmarks) or ({member.name for member in members(suite)} if suite else known)
    chosen = [(on, name) for on, name in recorded_pairs if on in selected and (not baselines or name in baselines)]
    if not chosen:
        raise FarshiftError(f"no baseline has a recorded result on {', '.join(sorted(selected))}")
    jobs = [Job(digest_result(on, name), on, name, name) for on, name in chosen]
    return build(folder, NAME, TEAM, jobs, find_recorded_run, find_plain_baselines({on for on, _ in chosen}), workers)


def _require_known(what: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownName(what, name, known)


def find_plain_baselines(benchmarks: Collection[str]) -> dict[str, str]:
    """For each benchmark the baseline that the others are compared with: the one that plays the plain part on it, else
    the multi-layer perceptron, which is plain empirical risk minimisation. A table without it has none."""
    roles = {
        on: recipe.name for recipe in load_recipes().values() for on in benchmarks if recipe.role_on(on) == "plain"
    }
    return {on: roles.get(on, PLAIN) for on in sorted(benchmarks)}
