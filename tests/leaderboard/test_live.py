"""A board kept up to date while it is served shows what reading it anew shows, whatever happens to it."""

from __future__ import annotations

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import farshift as fs
import numpy as np
import pytest
from farshift.benchmarks.benchmark import SCORER
from farshift.benchmarks.statistics.interval import mean
from farshift.benchmarks.statistics.remembered import Remembered
from farshift.benchmarks.statistics.sample import RowScores
from farshift.benchmarks.statistics.tally import Tally
from farshift.core.errors import FarshiftError
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.challenge import challenge, reply
from farshift.leaderboard.operations.export import export
from farshift.leaderboard.operations.places import viewed
from farshift.leaderboard.operations.reference import reference
from farshift.leaderboard.operations.rescore import rescore
from farshift.leaderboard.operations.submit import submit
from farshift.leaderboard.operations.withdraw import remove, withdraw
from farshift.leaderboard.publish.site import Site
from farshift.leaderboard.settings import write_baselines
from farshift.leaderboard.submission.pack import pack
from farshift.leaderboard.tables import snapshot as module
from farshift.leaderboard.tables.live import LiveBoard
from farshift.leaderboard.tables.row_scores import RowsInMemory, rows_of_entries
from farshift.leaderboard.tables.snapshot import take_snapshot

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import models
from newer_scorer import newer_scorer
from remembering import remembering

ON = "modadd97/xi35"


@pytest.fixture(scope="module")
def files(runs, tmp_path_factory) -> list[Path]:
    """Submissions by several teams: two benchmarks and budgets, a copy of another team's answers, a second attempt."""
    place = tmp_path_factory.mktemp("files")
    made = {
        "copy": (lambda seed: models.Adder(seed, 0.1), ON, {}),
        "third": (lambda seed: models.Adder(seed + 5, 0.25), ON, {}),
        "quick": (lambda seed: models.Adder(seed, 0.3), ON, {"budget": "quick"}),
        "stage": (lambda seed: models.Adder(seed + 9, 0.2), ON, {"budget": "quick"}),
        "again": (lambda seed: models.Adder(seed, 0.15), ON, {}),
    }
    for name, (model, on, said) in made.items():
        fs.evaluate(model, on=on, seeds=2, out=place / name, name=name if name != "again" else "good", **said)
    packed = {
        "us": [runs[0], runs[2]],
        "them": [runs[1]],
        "copiers": [place / "copy"],
        "us, again": [place / "third", place / "quick"],
        "others": [place / "stage"],
    }
    zips = [pack(some, place / f"{team}.zip", team=team.partition(",")[0]) for team, some in packed.items()]
    return [*zips, pack([place / "again"], place / "challenge.zip")]


def pages(board: Board, snapshot) -> dict[str, bytes]:
    return dict(Site(snapshot, board).rendered())


def check(live: LiveBoard, board: Board) -> None:
    """Every record and every byte, and nothing is worked out a second time."""
    found, due = live.snapshot(), take_snapshot(board)
    assert found.record() == due.record()
    assert pages(board, found) == pages(board, due)
    assert live.snapshot() is found


@pytest.mark.parametrize(
    ("seed", "events"),
    [(1, 6), pytest.param(2, 20, marks=pytest.mark.slow), pytest.param(3, 20, marks=pytest.mark.slow)],
)
def test_after_each_event_a_live_board_is_the_board_read_anew(files, tmp_path, seed, events):
    source = np.random.default_rng(seed)
    board = Board.init(tmp_path / "board", "A live board")
    live, late = LiveBoard(board), LiveBoard(Board(board.path), row_bytes=0)
    scorer, left = SCORER, list(files[:5])
    source.shuffle(left)
    with ExitStack() as stack:
        stack.enter_context(remembering())
        check(live, board)
        for _ in range(events):
            here = [one for one in board.standings() if one.left is None]
            event = source.choice(
                ["submit"] * 3 + ["withdraw", "remove", "reference", "challenge", "baseline", "scorer"]
            )
            if (event == "submit" and left) or (len(here) < 3 <= len(left) + len(here) and left):
                submit(board, left.pop())
            elif event in ("withdraw", "remove") and len(here) > 3:
                {"withdraw": withdraw, "remove": remove}[event](
                    board, here[int(source.integers(len(here)))].entry, "a bug"
                )
            elif event == "reference" and here:
                reference(board, [here[int(source.integers(len(here)))].entry])
            elif event == "challenge" and (
                good := [one for one in here if (one.model, one.budget) == ("good", "full")]
            ):
                told, new = challenge(board, good[0].entry, files[5], "them", "it is another")
                if not new:
                    reply(board, told.challenge, "us", "we looked")
            elif event == "baseline":
                write_baselines(board.path, {ON: str(source.choice(["good", "worse <b>"]))})
            elif event == "scorer" and scorer < SCORER + 1:
                scorer += 1
                stack.enter_context(newer_scorer(scorer))
                rescore(board)
                live = LiveBoard(board)  # which scorer this process has is no part of a board
            check(live, board)
        check(late, board)


@pytest.fixture(scope="module")
def entered(files, tmp_path_factory) -> Path:
    board = Board.init(tmp_path_factory.mktemp("live") / "board", "A live board")
    with remembering():
        for file in files[:3]:
            submit(board, file)
        take_snapshot(board)
    return board.path


@pytest.fixture
def board(entered, tmp_path) -> Board:
    return Board(shutil.copytree(entered, tmp_path / "board"))


def test_one_new_entry_costs_its_own_table(board, files, monkeypatch):
    live = LiveBoard(board)
    before = live.snapshot()
    made = []
    seen = module._seen
    monkeypatch.setattr(module, "_seen", lambda *given: made.append(given[1].heading) or seen(*given))
    submit(board, files[4])
    after = live.snapshot()
    assert made == [f"{ON} (quick budget)"]
    kept = {id(one) for one in after.views}
    assert [one.table.heading for one in before.views if id(one) not in kept] == []
    assert after.head.seq == before.head.seq + 2


def test_threads_see_one_snapshot_and_need_not_wait_for_it(board, files):
    live = LiveBoard(board)
    with ThreadPoolExecutor(8) as pool:
        assert len({id(one) for one in pool.map(lambda _: live.snapshot(), range(16))}) == 1
    before = live.snapshot()
    submit(board, files[4])
    with live._lock:  # another thread brings it up to date
        assert live.snapshot(wait=False) is before
    assert live.snapshot().entries == before.entries + 1


def test_an_export_is_shown_live_too(board, files, tmp_path):
    out = export(board, tmp_path / "export").out
    with viewed(str(out)) as view:
        live = LiveBoard(view)
        assert live.snapshot().record() == take_snapshot(view).record()
        assert live.snapshot() is live.snapshot()


def test_a_ledger_that_does_not_go_on_from_what_was_read_is_refused(board, files):
    live = LiveBoard(board)
    whole = live.snapshot()
    earlier = board.ledger.records()[-2]
    assert [one.seq for one in board.ledger.following(earlier)] == [whole.head.seq]
    assert board.ledger.following(whole.head) == []
    for wrong in (replace(whole.head, hash="0" * 64), replace(whole.head, seq=whole.head.seq + 7)):
        with pytest.raises(FarshiftError, match="is not the one that it was before"):
            board.ledger.following(wrong)
    (board.path / "ledger.sqlite").unlink()
    with pytest.raises(FarshiftError):
        LiveBoard(Board(board.path)).snapshot()


def test_a_changed_score_stops_a_live_board_and_right_again_it_goes_on(board, files):
    live = LiveBoard(board)
    live.snapshot()
    names, _ = submit(board, files[4])
    (score,) = (board.path / "scores" / names[0]).iterdir()
    right = score.read_bytes()
    score.write_bytes(right.replace(b"0", b"1", 1))
    for _ in range(2):
        with pytest.raises(FarshiftError, match="was changed"):
            live.snapshot()
    score.write_bytes(right)
    check(live, board)


def test_rows_in_memory_are_no_more_than_may_be(board):
    whole = LiveBoard(board)
    whole.snapshot()
    rows = whole._memory.rows
    assert 0 < rows._bytes < 1 << 30
    assert len(rows._rows) == 4
    none = LiveBoard(board, row_bytes=0)
    assert none.snapshot().record() == whole.snapshot().record()
    assert (none._memory.rows._bytes, len(none._memory.rows._rows)) == (0, 0)
    assert RowsInMemory(5).get("nothing") is None


def test_rows_of_every_seed_are_there_for_who_asks_without_a_memory(board):
    standings = board.standings()
    short, _ = rows_of_entries(board, standings, RowsInMemory(0))
    whole, _ = rows_of_entries(board, standings)
    for name, one in whole.items():
        assert isinstance(one.ood, RowScores)
        assert isinstance(short[name].ood, Tally)
        assert mean(short[name].ood) == mean(one.ood)


def test_what_is_remembered_is_what_its_inputs_give_and_goes_when_it_is_not_asked_for():
    known, made = Remembered(), []

    def ask(inputs):
        return known.of("name", inputs, lambda: made.append(inputs) or len(made))

    assert [ask(1), ask(1), ask(2), ask(2)] == [1, 1, 2, 2]
    assert (known.has("name", 2), known.has("name", 1), known.has("other", 2)) == (True, False, False)
    known.turn()
    assert ask(2) == 2
    known.turn()
    known.turn()
    assert ask(2) == 3
    inner = known.within("a")
    assert inner.of("x", 1, lambda: 1) == known.within("a").of("x", 1, lambda: 2) == 1
    assert known.within("b").of("x", 1, lambda: 2) == 2
