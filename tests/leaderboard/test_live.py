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
from farshift.core.files import with_digest
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.export import export
from farshift.leaderboard.operations.places import viewed
from farshift.leaderboard.operations.reference import reference
from farshift.leaderboard.operations.rescore import rescore
from farshift.leaderboard.operations.submit import submit
from farshift.leaderboard.operations.withdraw import remove, withdraw
from farshift.leaderboard.publish.site import Site
from farshift.leaderboard.settings import write_baselines
from farshift.leaderboard.submission.pack import pack
from farshift.leaderboard.tables import kept_tables
from farshift.leaderboard.tables import snapshot as module
from farshift.leaderboard.tables.live import LiveBoard
from farshift.leaderboard.tables.row_scores import RowsInMemory, rows_of_entries
from farshift.leaderboard.tables.snapshot import take_snapshot
from made_tables import entry
from made_tables import snapshot as made_snapshot

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
    }
    for name, (model, on, said) in made.items():
        fs.evaluate(model, on=on, seeds=2, out=place / name, name=name, **said)
    packed = {
        "us": [runs[0], runs[2]],
        "them": [runs[1]],
        "copiers": [place / "copy"],
        "us, again": [place / "third", place / "quick"],
        "others": [place / "stage"],
    }
    return [pack(some, place / f"{team}.zip", team=team.partition(",")[0]) for team, some in packed.items()]


def pages(board: Board, snapshot) -> dict[str, bytes]:
    return dict(Site(snapshot, board).rendered())


def check(live: LiveBoard, board: Board, before: Site | None = None) -> Site:
    """Every record and every byte, and nothing is worked out a second time. before: the pages at an earlier record:
    those that are said to be the same are."""
    found, due = live.snapshot(), take_snapshot(board)
    assert found.record() == due.record()
    made = pages(board, found)
    assert made == pages(board, due)
    assert live.snapshot() is found
    site = Site(found, board)
    for path, page in site.pages.items():
        if before is not None and path in before.pages and page.same_as(before.pages[path]):
            assert before.pages[path].render() == made[path]
    return site


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
        site = check(live, board)
        for _ in range(events):
            here = [one for one in board.standings() if one.left is None]
            event = source.choice(["submit"] * 3 + ["withdraw", "remove", "reference", "baseline", "scorer"])
            if (event == "submit" and left) or (len(here) < 3 <= len(left) + len(here) and left):
                submit(board, left.pop())
            elif event in ("withdraw", "remove") and len(here) > 3:
                {"withdraw": withdraw, "remove": remove}[event](
                    board, here[int(source.integers(len(here)))].entry, "a bug"
                )
            elif event == "reference" and here:
                reference(board, [here[int(source.integers(len(here)))].entry])
            elif event == "baseline":
                write_baselines(board.path, {ON: str(source.choice(["good", "worse <b>"]))})
            elif event == "scorer" and scorer < SCORER + 1:
                scorer += 1
                stack.enter_context(newer_scorer(scorer))
                rescore(board)
                live = LiveBoard(board)  # which scorer this process has is no part of a board
            site = check(live, board, site)
            live.keep()
            assert LiveBoard(board).snapshot().record() == live.snapshot().record()
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


def test_a_record_leaves_the_pages_as_they_are_that_it_is_not_about(board, files):
    live = LiveBoard(board)
    earlier = Site(live.snapshot(), board)
    before = dict(earlier.rendered())
    submit(board, files[4])
    later = Site(live.snapshot(), board)
    after = dict(later.rendered())
    changed = {path for path, page in before.items() if after[path] != page}
    assert {"index.html", "ledger.html", f"benchmarks/{ON}.html"} <= changed
    other = {f"benchmarks/{view.table.benchmark}.html" for view in later.snapshot.views} - {f"benchmarks/{ON}.html"}
    entries = {f"entries/{one.entry}.html" for one in board.standings() if one.budget == "full"}
    assert other and not changed & {*other, *entries, "statistics.html", "windows.html", "static/home.js"}
    same = {path for path, page in later.pages.items() if path in before and page.same_as(earlier.pages[path])}
    assert {*other, *entries & set(before), "static/home.js"} <= same
    assert not same & changed


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


def kept_files(board: Board) -> list[Path]:
    return sorted((board.path / "derived" / "tables").rglob("*"))


def kept(board: Board) -> dict[str, bytes]:
    """Keep the tables of a board as they are worked out now; the pages that they give."""
    live = LiveBoard(board)
    found = live.snapshot()
    live.keep()
    return pages(board, found)


def nothing_worked_out(monkeypatch) -> None:
    monkeypatch.setattr(module, "_seen", lambda *given: pytest.fail("a table was worked out anew"))
    monkeypatch.setattr(module, "make_rows", lambda board, standings: {} if not standings else pytest.fail("rows"))


def test_a_restart_reads_tables_and_no_rows(board, monkeypatch):
    reference(board, [one.entry for one in board.standings()])  # else none has the protocol's seeds
    before = LiveBoard(board)
    due = before.snapshot()
    shown = kept(board)
    assert len(kept_files(board)) == 1 + len(due.views)
    shutil.rmtree(board.path / "derived" / "rows")
    nothing_worked_out(monkeypatch)
    found = LiveBoard(board).snapshot()
    assert found == due
    assert pages(board, found) == shown
    assert any(one.pairs for one in found.views)
    for one, other in zip(found.views, due.views, strict=True):
        for left in one.pairs.order if one.pairs else ():
            assert [one.pairs.apart(left, right) for right in one.pairs.order] == [
                other.pairs.apart(left, right) for right in other.pairs.order
            ]


def test_after_a_restart_a_new_entry_is_entered_as_ever(board, files):
    kept(board)
    live = LiveBoard(board)
    live.snapshot()
    submit(board, files[3])
    check(live, board)
    before = {*kept_files(board)}
    live.keep()
    after = {*kept_files(board)}
    assert (len(before - after), len(after - before)) == (1, 2), "of the changed table the newest, and one that is new"
    assert LiveBoard(board).snapshot() == live.snapshot()


@pytest.mark.parametrize("harm", ["cut", "flipped", "foreign", "empty", "a folder"])
def test_a_kept_table_that_is_damaged_is_worked_out_anew(board, harm):
    shown = kept(board)
    for place in kept_files(board)[1:]:
        content = place.read_bytes()
        place.unlink()
        if harm == "a folder":
            place.mkdir()
            continue
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        place.write_bytes(
            {"cut": content[:-100], "flipped": flipped, "foreign": with_digest(b"PK\3\4 nothing"), "empty": b""}[harm]
        )
    live = LiveBoard(board)
    assert pages(board, live.snapshot()) == shown
    live.keep()  # where there is a folder in the way, it is left


def test_intervals_that_differ_in_their_last_bit_are_kept_as_they_are(board):
    reference(board, [one.entry for one in board.standings()])  # else none has the protocol's seeds
    view = next(one for one in LiveBoard(board).snapshot().views if one.pairs is not None)
    count = len(view.pairs.order)
    reach = np.arange(count * count, dtype=float).reshape(count, count)
    for one in (reach, reach + reach.T):
        made = replace(view, pairs=replace(view.pairs, reach=one))
        read, _ = kept_tables.unpacked(kept_tables.packed(made, {}), made.table, ())
        assert read.pairs.reach.tobytes() == one.tobytes()


def test_all_that_is_worked_out_of_a_row_is_kept():
    made = [entry("strong", 0.7), entry("weak", 0.1, team="them", groups={"left": 0.1, "right": 0.3})]
    shown = made_snapshot([(standing, replace(rows, floor=0.05)) for standing, rows in made], baseline="strong")
    (view,) = shown.views
    assert [bool(row.not_learnt) for row in view.rows] == [False, True]
    read, _ = kept_tables.unpacked(kept_tables.packed(view, {}), view.table, ())
    assert read == view


def test_tables_of_other_code_are_worked_out_anew(board, monkeypatch):
    kept(board)
    made = []
    seen = module._seen
    monkeypatch.setattr(module, "_seen", lambda *given: made.append(given[1].heading) or seen(*given))
    LiveBoard(board).snapshot()
    assert made == []
    monkeypatch.setattr(kept_tables, "_code", lambda: "other code")
    LiveBoard(board).snapshot()
    assert len(made) == len(kept_files(board)) - 1


def test_the_code_that_makes_a_kept_table_is_all_in_its_digest():
    root = Path(kept_tables.__file__).parents[2]
    assert all(any((root / folder).glob("*.py")) for folder in kept_tables.CODE)


def test_tables_that_cannot_be_kept_are_shown_all_the_same(board, caplog):
    (board.path / "derived" / "tables").write_text("in the way")
    shown = kept(board)
    assert "is not kept" in caplog.text
    assert pages(board, take_snapshot(board)) == shown
