"""Entrants cannot spoil others' ranks: what is left out of the field, why, and that it moves nobody's rank set."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import farshift as fs
import numpy as np
import pytest
from farshift.benchmarks.statistics.sample import RowScores
from farshift.core.errors import UnknownName
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.manage import declare_references, withdraw_entry
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.tables.entry_rows import EntryRows
from farshift.leaderboard.tables.ranking import find_unranked_entries
from farshift.leaderboard.tables.snapshot import take_snapshot
from farshift.leaderboard.tables.standings import make_tables
from farshift.leaderboard.tables.table_view import TableView, make_table_view
from made_tables import entry

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import models

ON = "modadd97/xi35"
ROWS, CLASSES, FLOOR = 600, 10, 0.12
SOURCE = np.random.default_rng(3)
TRUTH = SOURCE.integers(0, CLASSES, ROWS)
HARD = SOURCE.random(ROWS)


def answers(share: float, seeds: int = 5) -> np.ndarray:
    """What a model answers that has `share` of the rows right, the easy ones rather; each seed trained anew."""
    wrong = 0.6 * HARD + 0.4 * SOURCE.random((seeds, ROWS)) > np.quantile(0.6 * HARD + 0.4 * SOURCE.random(ROWS), share)
    return np.where(wrong, (TRUTH + SOURCE.integers(1, CLASSES, wrong.shape)) % CLASSES, TRUTH)


def made(name: str, given: np.ndarray, team: str = "", on_id: np.ndarray | None = None, **said):
    """An entry that gave these answers on the OOD rows, and on the ID rows the same or those of `on_id`."""
    right = (given == TRUTH).astype(float)
    standing, _ = entry(name, float(right.mean()), team=team or name, seeds=len(given), **said)
    before = right if on_id is None else (on_id == TRUTH).astype(float)
    rows = EntryRows(RowScores(before), RowScores(right), floor=FLOOR)
    value = replace(standing.score.ood, value=float(right.mean()))
    return replace(standing, score=replace(standing.score, ood=value, protocol_seeds=5)), rows


def shown(field_entries, fixed: bool = True) -> TableView:
    """The table of some entries, which came in this order; `fixed`: over the field, else over all of them."""
    rows = {item.entry: stored for item, stored in field_entries}
    assert len(rows) == len(field_entries)
    (table,) = make_tables([item for item, _ in field_entries])
    arrived = {item.entry: position for position, (item, _) in enumerate(field_entries)}
    return make_table_view(table, rows, {}, {}, left_out=find_unranked_entries(table, rows, arrived) if fixed else None)


def ranks(view: TableView) -> dict[str, tuple[int, int] | None]:
    return {row.standing.score.model: row.rank for row in view.rows}


HONEST = {name: answers(share) for name, share in (("a", 0.9), ("b", 0.78), ("c", 0.66), ("d", 0.625))}


def honest():
    return [made(name, given) for name, given in HONEST.items()]


def junk():
    for k in range(20):
        yield made(f"junk {k}", SOURCE.integers(0, CLASSES, (5, ROWS)), on_id=np.full((5, ROWS), k % CLASSES))


def failed_seeds():
    for k in range(20):
        given = answers(0.7)
        given[k % 5] = -1
        yield made(f"failed {k}", given)


def missing_seeds():
    for k in range(20):
        yield made(f"short {k}", answers(0.7, seeds=1 + k % 3))


@pytest.mark.attack("entrant", "nonsense, failed and missing seeds, to widen the rank sets of others")
@pytest.mark.parametrize("attack", [junk, failed_seeds, missing_seeds])
def test_hostile_entries_leave_the_rank_sets_of_all_others_as_they_were(attack):
    alone = ranks(shown(honest()))
    assert alone == {"a": (1, 1), "b": (2, 2), "c": (3, 3), "d": (4, 4)}
    attacked = [*honest(), *attack()]
    before = ranks(shown(attacked, fixed=False))
    assert any(before[name] != alone[name] for name in alone), "the attack succeeds where all are ranked"
    view = shown(attacked)
    assert {name: ranks(view)[name] for name in alone} == alone
    assert view.ranked == 4
    left_out = [row for row in view.rows if row.standing.score.model not in alone]
    assert all(row.rank is None and row.unranked for row in left_out)
    assert all(row.record()["unranked"] == row.unranked for row in left_out)


@pytest.mark.attack("entrant", "twenty submissions of one team")
def test_twenty_tries_of_one_team_are_one_entry():
    tries = [made(f"try {k}", answers(0.72), team="tireless") for k in range(20)]
    alone = shown([*honest(), tries[0]])
    view = shown([*honest(), *tries])
    assert view.ranked == 5
    assert {name: rank for name, rank in ranks(view).items() if rank} == ranks(alone)
    first = next(row for row in view.rows if row.standing.score.model == "try 0").standing.entry
    assert {row.unranked for row in view.rows} == {"", f"its team is ranked by entry {first}"}


def test_a_team_is_ranked_by_its_first_entry_or_by_the_newest_that_its_card_chooses():
    tries = [made(f"m{k}", answers(0.6 + 0.02 * k), team="us") for k in range(4)]
    assert [name for name, rank in ranks(shown(tries)).items() if rank] == ["m0"]
    chosen = [(replace(item, choose=k in (1, 2)), stored) for k, (item, stored) in enumerate(tries)]
    assert [name for name, rank in ranks(shown(chosen)).items() if rank] == ["m2"]


@pytest.mark.attack("entrant", "hand-picked seeds")
@pytest.mark.parametrize(
    ("seeds", "reason"),
    [
        ((3, 17, 40, 41, 99), "its seeds are 3, 17, 40, 41, 99; the protocol's are 0 to 4"),
        ((0, 1, 2, 3, 5), "its seeds are 0, 1, 2, 3, 5; the protocol's are 0 to 4"),
        ((0, 1, 2, 3, 4), ""),
    ],
)
def test_hand_picked_seeds_are_not_ranked(seeds, reason):
    item, rows = made("picked", answers(0.7))
    picked = replace(item, score=replace(item.score, seeds=seeds)), rows
    assert [row.unranked for row in shown([picked]).rows] == [reason]


def test_an_entry_with_one_failed_seed_says_which():
    given = answers(0.7)
    given[3] = 0
    view = shown([made("failed", given)])
    assert view.rows[0].unranked.startswith("seed 3 scores 0.")
    assert view.rows[0].unranked.endswith("on ID, no better than a constant prediction (0.12)")
    assert f"No rank set for failed: {view.rows[0].unranked}." in view.notes


def test_what_is_against_the_protocol_is_listed_with_the_reason():
    item, rows = made("odd", answers(0.7))
    view = shown([(item, replace(rows, odd=("it trained on the test",))), *honest()])
    assert next(row for row in view.rows if row.standing.score.model == "odd").unranked == "it trained on the test"


def test_reference_entries_are_of_the_field_as_they_are():
    declared = [
        (replace(item, reference=True), stored)
        for item, stored in [*(made(f"base {k}", answers(0.7, seeds=2), team="all") for k in range(3)), next(junk())]
    ]
    assert shown([*honest(), *declared]).ranked == 8


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> dict[str, Path]:
    """Runs with the three seeds of the quick budget, of three models."""
    base = tmp_path_factory.mktemp("quick")
    for name, wrong in (("good", 0.1), ("fair", 0.3), ("poor", 0.5)):
        fs.evaluate(
            lambda seed, wrong=wrong: models.Adder(seed, wrong), on=ON, budget="quick", out=base / name, name=name
        )
    return {name: base / name for name in ("good", "fair", "poor")}


def unranked(board: Board) -> dict[str, str]:
    return {
        row.standing.score.model: "" if row.rank else row.unranked
        for view in take_snapshot(board).views
        for row in view.rows
    }


def test_a_team_s_choice_is_in_its_card_and_in_the_ledger(quick, board, remembered, tmp_path):
    for name in ("good", "fair"):
        submit_runs(board, pack_runs([quick[name]], tmp_path / f"{name}.zip", team="us"))
    assert unranked(board)["good"] == ""
    (newest,), _ = submit_runs(board, pack_runs([quick["poor"]], tmp_path / "p.zip", team="us", card={"choose": True}))
    assert unranked(board) == {"poor": "", **dict.fromkeys(("good", "fair"), f"its team is ranked by entry {newest}")}
    assert verify_board(board).differences == []
    withdraw_entry(board, newest, "a bug")
    assert unranked(board)["good"] == ""


def test_an_operator_declares_reference_entries_and_verify_reads_them(quick, board, remembered, tmp_path):
    names, _ = submit_runs(board, pack_runs(list(quick.values()), tmp_path / "s.zip", team="us"))
    assert sum(not why for why in unranked(board).values()) == 1
    with pytest.raises(UnknownName, match="no entry named"):
        declare_references(board, ["0" * 16])
    assert sorted(declare_references(board, names)) == sorted(names)
    assert declare_references(board, names) == []
    assert set(unranked(board).values()) == {""}
    assert verify_board(board).differences == []
