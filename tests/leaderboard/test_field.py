"""Entrants cannot spoil others' ranks: what is left out of the field, why, and that it moves nobody's rank set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import farshift as fs
import models
import numpy as np
import pytest
from farshift.benchmarks.statistics.sample import RowScores
from farshift.core.errors import UnknownName
from farshift.leaderboard.board import Board
from farshift.leaderboard.board_view import BoardView
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.submit import declare_references, submit_runs, withdraw_entry
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.storage.readers import open_board_view
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.tables.entry_rows import EntryRows
from farshift.leaderboard.tables.ranking import find_unranked_entries
from farshift.leaderboard.tables.snapshot import take_snapshot
from farshift.leaderboard.tables.table import Table, group_entries, make_table
from made_tables import entry

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


def shown(field_entries, fixed: bool = True, baseline: str = "", signed: bool = False) -> Table:
    """The table of some entries, which came in this order; `fixed`: over the field, else over all of them."""
    rows = {item.entry: stored for item, stored in field_entries}
    assert len(rows) == len(field_entries)
    (table,) = group_entries([item for item, _ in field_entries])
    arrived = {item.entry: position for position, (item, _) in enumerate(field_entries)}
    left_out = find_unranked_entries(table, rows, arrived, baseline, signed) if fixed else None
    return make_table(table, rows, {}, {}, baseline, left_out)


def ranks(view: Table) -> dict[str, tuple[int, int] | None]:
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


def above_a_constant():
    """Better than a constant by a few rows on ID, at chance on OOD; each under a key of its own."""
    source = np.random.default_rng(4)
    for k in range(26):
        on_id = np.where(HARD[None, :] < 0.05 + 0.01 * k, TRUTH, np.full((5, ROWS), k % CLASSES))
        item, rows = made(f"chance {k}", source.integers(0, CLASSES, (5, ROWS)), on_id=on_id)
        yield replace(item, team_key=f"{k:064x}"), rows


def reference(name: str, given: np.ndarray, on_id: np.ndarray | None = None):
    item, rows = made(name, given, on_id=on_id)
    return replace(item, reference=True), rows


ACCURATE = answers(0.9), answers(0.897)
PLAIN = reference("plain", answers(0.5))
PLAIN_AT_CHANCE = reference("plain", SOURCE.integers(0, CLASSES, (5, ROWS)), answers(0.5))


@pytest.mark.attack("entrant", "entries just above a constant prediction under keys of their own, to widen rank sets")
@pytest.mark.parametrize("plain", [PLAIN, PLAIN_AT_CHANCE], ids=["shift is learnt", "shift is not learnt"])
def test_entries_below_the_plain_baseline_leave_the_rank_sets_of_all_others_as_they_were(plain):
    alone = ranks(shown([plain, *honest()], baseline="plain"))
    assert alone == {"a": (1, 1), "b": (2, 2), "c": (3, 3), "d": (4, 4), "plain": (5, 5)}
    attacked = [plain, *honest(), *above_a_constant()]
    before = ranks(shown(attacked))
    assert any(before[name] != alone[name] for name in alone), "the attack succeeds where no baseline is declared"
    view = shown(attacked, baseline="plain")
    assert {name: ranks(view)[name] for name in alone} == alone
    assert {row.unranked for row in view.rows} == {"", "it is below the plain baseline, plain"}


def test_a_model_that_trades_id_score_for_robustness_is_ranked_and_so_is_one_about_as_good_as_the_plain_baseline():
    plain = reference("plain", answers(0.5), on_id=ACCURATE[0])
    robust = made("robust", answers(0.7), on_id=answers(0.6))
    weak = made("weak", answers(0.5), on_id=answers(0.6))
    alike = made("alike", answers(0.45), on_id=ACCURATE[1])
    view = shown([plain, robust, weak, alike], baseline="plain")
    assert {name for name, rank in ranks(view).items() if rank} == {"plain", "robust", "alike"}


@pytest.mark.attack("entrant", "an entry under the model name of the plain baseline, to rise above others by it")
def test_only_a_reference_is_the_plain_baseline():
    perfect = made("plain", answers(0.99), team="impostors")
    view = shown([perfect, PLAIN, *honest()], baseline="plain")
    assert view.ranked == 6
    against = {row.standing.score.model: row.against for row in view.rows if row.standing.team != "impostors"}
    assert {name: comparison and comparison["verdict"] for name, comparison in against.items()} == {
        "plain": None,
        **dict.fromkeys("abcd", "better"),
    }
    assert shown([perfect, *honest()], baseline="plain").ranked == 5, "without a reference no entry is below it"


@pytest.mark.attack("entrant", "many names without a key on a board that anybody may submit to")
def test_on_an_open_board_names_without_a_key_are_shown_unranked():
    signed = [(replace(item, team_key=f"{k:064x}"), rows) for k, (item, rows) in enumerate(honest())]
    alone = ranks(shown(signed, signed=True))
    copies = [made(f"copy {k}", HONEST["b"], team=f"name {k}") for k in range(20)]
    view = shown([*copies, *signed], signed=True)
    assert {name: ranks(view)[name] for name in alone} == alone
    assert view.ranked == 4
    assert "pack with --key FILE" in next(row.unranked for row in view.rows if row.standing.team == "name 3")


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


def unranked(board: BoardView) -> dict[str, str]:
    return {
        row.standing.score.model: "" if row.rank else row.unranked
        for view in take_snapshot(board).views
        for row in view.rows
    }


def test_the_tables_of_an_open_board_and_of_its_export_rank_no_name_without_a_key(quick, board, tmp_path):
    submit_runs(board, pack_runs([quick["good"]], tmp_path / "good.zip", team="us"))
    assert unranked(board) == {"good": ""}
    (board.path / "settings.toml").write_text("[server]\nopen = true\n")
    assert "its team has no key" in unranked(board)["good"]
    with open_board_view(str(export_board(board, tmp_path / "export").out)) as export:
        assert unranked(export) == unranked(board)


def test_a_board_of_experiments_ranks_every_entry_and_a_public_one_says_how(quick, board, tmp_path):
    own = Board.init(tmp_path / "own", "Mine", kind="experiments")
    for at in (board, own):
        submit_runs(at, pack_runs(list(quick.values()), tmp_path / f"{at.path.name}.zip", team="us"))
    assert set(unranked(own).values()) == {""}
    assert Board(own.path).kind == "experiments"
    assert "kind" not in board.records()[0].body
    assert verify_board(own).is_complete
    (view,) = take_snapshot(board).views
    assert view.ranked == 1
    assert any("farshift board init DIR --kind experiments" in note for note in view.notes)
    with pytest.raises(UnknownName, match="no kind of board named 'mine'"):
        Board.init(tmp_path / "other", "Mine", kind="mine")


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
