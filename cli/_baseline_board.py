"""A board of the shipped baselines, from their recorded predictions: one command, recomputable by anyone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from ..baselines.recipe import recipes
from ..baselines.running.results import digest_of, recorded, results
from ..benchmarks.benchmark import suite as members
from ..core.errors import FarshiftError, UnknownName
from ..leaderboard.operations.build import Built, Job, build

NAME = "Farshift baselines"
TEAM = "Farshift"
PLAIN = "mlp"


def build_board(
    folder: Path | str,
    suite: str = "",
    benchmarks: Sequence[str] = (),
    baselines: Sequence[str] = (),
    workers: int = 2,
) -> Built:
    """Build, or go on with, the board of all recorded results, or of those of a suite, of some benchmarks, of some
    baselines. Entries are compared with the baseline that plays the plain part on a benchmark.

    Raises `UnknownName` for a benchmark or a baseline without a recorded result."""
    found = results()
    known = {on for on, _ in found}
    _require_known("benchmark with recorded results", benchmarks, known)
    _require_known("baseline with recorded results", baselines, {name for _, name in found})
    wanted = set(benchmarks) or ({one.name for one in members(suite)} if suite else known)
    chosen = [(on, name) for on, name in found if on in wanted and (not baselines or name in baselines)]
    if not chosen:
        raise FarshiftError(f"no baseline has a recorded result on {', '.join(sorted(wanted))}")
    jobs = [Job(digest_of(on, name), on, name, name) for on, name in chosen]
    return build(folder, NAME, TEAM, jobs, recorded, plain({on for on, _ in chosen}), workers)


def _require_known(what: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownName(what, name, known)


def plain(benchmarks: Collection[str]) -> dict[str, str]:
    """For each benchmark the baseline that the others are compared with: the one that plays the plain part on it, else
    the multi-layer perceptron, which is plain empirical risk minimisation. A table without it has none."""
    roles = {on: one.name for one in recipes().values() for on in benchmarks if one.role_on(on) == "plain"}
    return {on: roles.get(on, PLAIN) for on in sorted(benchmarks)}
