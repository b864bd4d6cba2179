"""Does a hostile field move anybody's rank set, and do the rules of the field keep the coverage? By simulation.

Honest entries are of one table with junk, entries of failed and of missing seeds, and twenty tries of one team, entered
in any order after the leader. Their field is found by the board's own rules; the rank sets
of the honest entries must hold their true ranks among all that are of the field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from farshift.benchmarks.statistics.joint_covariance import estimate_joint_covariance
from farshift.benchmarks.statistics.ranks import compute_rank_sets
from farshift.benchmarks.statistics.sample import RowScores
from farshift.leaderboard.tables.entry_rows import EntryRows
from farshift.leaderboard.tables.ranking import find_unranked_entries

from .shares import shares

ROWS, SEEDS, CLASSES = 500, 5, 10
Answers = np.ndarray


@dataclass(frozen=True)
class Truth:
    """What is right on the ID and OOD rows of a trial, and how hard each is."""

    labels: tuple[np.ndarray, np.ndarray]
    hard: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, source: np.random.Generator) -> Truth:
        labels = source.integers(0, CLASSES, (2, ROWS))
        hard = source.uniform(-0.2, 0.2, (2, ROWS))
        return cls((labels[0], labels[1]), (hard[0], hard[1]))

    def answers(self, source: np.random.Generator, view: int, share: float, seeds: np.ndarray) -> Answers:
        """The answers of a model that has each row right with the chance `share`, less where it is hard, and more or
        less in each of its seeds."""
        chance = np.clip(share - self.hard[view] + seeds[:, None], 0.0, 1.0)
        right = source.random((len(seeds), ROWS)) < chance
        other = (self.labels[view] + source.integers(1, CLASSES, right.shape)) % CLASSES
        return np.where(right, self.labels[view], other)


@dataclass(frozen=True)
class Made:
    """An entry: its answers on ID and OOD rows; true: its expected OOD score; team."""

    name: str
    id: Answers
    ood: Answers
    true: float = 0.0
    team: str = ""


def model(source: np.random.Generator, truth: Truth, name: str, share: float, seed_sd: float, lift: float) -> Made:
    seeds = seed_sd * source.standard_normal(SEEDS)
    result = (truth.answers(source, 0, share + lift, seeds), truth.answers(source, 1, share, seeds))
    return Made(name, *result, true=share)


def hostile(source: np.random.Generator, truth: Truth) -> Iterator[Made]:
    for k in range(20):
        constant = np.full((SEEDS, ROWS), k % CLASSES)
        yield Made(f"junk {k}", constant, source.integers(0, CLASSES, (SEEDS, ROWS)))
    for k in range(20):
        failed = model(source, truth, f"failed {k}", 0.6, 0.0, 0.1)
        failed.id[k % SEEDS] = failed.ood[k % SEEDS] = -1
        yield failed
        short = model(source, truth, f"short {k}", 0.6, 0.0, 0.1)
        yield Made(short.name, short.id[:2], short.ood[:2])


def in_field(truth: Truth, entries: list[Made], plain: str = "") -> list[Made]:
    """The entries of the field, by the rules of a board with this plain baseline."""
    rows: dict[str, EntryRows] = {}
    table: list[Any] = []
    floor = float(np.bincount(truth.labels[0]).max() / ROWS)
    for item in entries:
        on_id, on_ood = (
            (given == labels).astype(float) for given, labels in zip((item.id, item.ood), truth.labels, strict=True)
        )
        rows[item.name] = EntryRows(RowScores(on_id), RowScores(on_ood), floor=floor)
        score = SimpleNamespace(seeds=range(len(item.ood)), protocol_seeds=SEEDS, model=item.name, better="higher")
        output = {"team": item.team or item.name, "team_key": "", "choose": False, "reference": item.name == plain}
        table.append(SimpleNamespace(entry=item.name, score=score, **output))
    arrived = {item.name: position for position, item in enumerate(entries)}
    left_out = find_unranked_entries(table, rows, arrived, plain)
    return [item for item in entries if item.name not in left_out]


def sets(truth: Truth, entries: list[Made]) -> dict[str, tuple[int, int]]:
    scores = [RowScores((item.ood == truth.labels[1]).astype(float)) for item in entries]
    result = compute_rank_sets(estimate_joint_covariance(scores))
    return {item.name: (int(low), int(high)) for item, low, high in zip(entries, result.low, result.high, strict=True)}


def holds(entries: list[Made], found: dict[str, tuple[int, int]], names: set[str]) -> bool:
    """Whether the rank sets of some entries hold every rank that they share with those of equal value."""
    true = np.array([item.true for item in entries])
    for item in entries:
        low, high = 1 + int((true > item.true).sum()), len(true) - int((true < item.true).sum())
        if item.name in names and not (found[item.name][0] <= low and high <= found[item.name][1]):
            return False
    return True


FIELDS = {"4 honest entries apart": (0.85, 0.7, 0.55, 0.4), "8 honest entries, all tie": (0.6,) * 8}


def attacked(shares_: tuple[float, ...], seed_sd: float, source: np.random.Generator) -> tuple[bool, bool]:
    """Whether the honest entries' rank sets are right in a hostile field, and the same as without it."""
    truth = Truth.of(source)
    honest = [model(source, truth, f"honest {k}", share, seed_sd, 0.1) for k, share in enumerate(shares_)]
    others = list(hostile(source, truth))
    late = [honest[0], *(([*honest[1:], *others])[k] for k in source.permutation(len(honest) - 1 + len(others)))]
    tries = [model(source, truth, f"try {k}", 0.3, seed_sd, 0.1) for k in range(20)]
    tries = [Made(item.name, item.id, item.ood, item.true, "tireless") for item in tries]
    field, names = in_field(truth, [*late, *tries]), {item.name for item in honest}
    if not names <= {item.name for item in field}:
        return False, False
    result = sets(truth, field)
    alone = [*honest, *(item for item in tries if item.name == "try 0")]
    same = sets(truth, sorted(alone, key=lambda one: [each.name for each in field].index(one.name)))
    return holds(field, result, names), {item: result[item] for item in names} == {item: same[item] for item in names}


def near_the_floor(source: np.random.Generator) -> bool:
    """Whether rank sets are right among entries that the floor chose of many at the floor, whose seeds move ID and OOD
    alike."""
    truth = Truth.of(source)
    built = [model(source, truth, f"m{k}", 0.13, 0.03, 0.0) for k in range(30)]
    built += [model(source, truth, f"n{k}", 0.13 + 0.05 * k, 0.03, 0.0) for k in range(1, 8)]
    field = in_field(truth, built)
    return len(field) < 2 or holds(field, sets(truth, field), {item.name for item in field})


def below_the_baseline(source: np.random.Generator) -> tuple[bool, bool]:
    """Whether rank sets are right, and the same as without them, in a field with many entries that have learnt a little
    and are at chance on OOD, as the plain baseline is, so that chance puts half of them before it."""
    truth = Truth.of(source)

    def made(name: str, on_id: float, on_ood: float) -> Made:
        seeds = 0.02 * source.standard_normal(SEEDS)
        return Made(
            name, *(truth.answers(source, view, share, seeds) for view, share in enumerate((on_id, on_ood))), on_ood
        )

    plain, weak = made("plain", 0.6, 0.25), [made(f"weak {k}", 0.35, 0.25) for k in range(26)]
    honest = [made(f"honest {k}", 0.6, 0.25 + 0.03 * k) for k in range(4)]
    honest.append(made("robust", 0.5, 0.5))
    field = in_field(truth, [plain, *weak, *honest], "plain")
    alone = [plain, *honest]
    return holds(field, sets(truth, field), {item.name for item in alone}), sets(truth, field) == sets(truth, alone)


RANKS, SAME = (0.94, 1.0), (0.98, 1.0)


def trials_of() -> Iterator[tuple[Any, ...]]:
    """What is simulated, as `shares` takes it."""
    ranks = "rank sets, honest entries"
    for name, levels in FIELDS.items():
        for seed_sd in (0.0, 0.02):
            setting = f"{name}, seeds' sd {seed_sd:g}; 20 junk, 40 failed or missing seeds, 20 tries of a team"
            names = (ranks, "the same rank sets as without the hostile entries")
            yield names, setting, (RANKS, SAME), attacked, levels, seed_sd
    names = (ranks, "the same rank sets as without the weak entries")
    setting = "6 entries, of them the plain baseline; 26 weak ones, as good on OOD"
    yield names, setting, (RANKS, SAME), below_the_baseline
    yield "rank sets of those above the floor", "37 entries, 30 of them at the floor", RANKS, near_the_floor


def report(trials: int) -> list[dict[str, Any]]:
    """The shares of trials that held (`shares`)."""
    return shares(trials_of(), trials)
