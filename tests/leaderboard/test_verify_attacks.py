"""What a dishonest operator, or a disk, changes on a board beside scores: `verify_board` names each."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import tomli_w
from farshift import FarshiftError
from farshift.benchmarks.benchmark import SCORER
from farshift.cli import app
from farshift.leaderboard.board import Board
from farshift.leaderboard.exports import list_differences, write_export
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.locations import open_board_view, verify_at
from farshift.leaderboard.operations.manage import declare_references, withdraw_entry
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.publish.site import build_site
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.tables.snapshot import take_snapshot
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))
import servers
from newer_scorer import newer_scorer
from remembering import remembering


@pytest.fixture(scope="module")
def shown(runs, tmp_path_factory) -> Path:
    """A board with two entries and their rows; tests take a copy."""
    folder = tmp_path_factory.mktemp("shown")
    board = Board.init(folder / "board", "A test board")
    with remembering():
        submit_runs(board, pack_runs(runs[:2], folder / "s.zip", team="us"))
    take_snapshot(board)
    return board.path


@pytest.fixture
def board(shown, remembered, tmp_path) -> Board:
    return Board(shutil.copytree(shown, tmp_path / "board"))


@pytest.fixture
def exported(board, tmp_path) -> Path:
    return export_board(board, tmp_path / "export").out


def test_a_board_as_it_is_has_nothing_wrong(board):
    result = verify_board(board)
    assert result.is_complete, result
    assert result.verified == result.entries == 2
    assert result.notes == []


def renamed(board: Board) -> None:
    card = board.card | {"name": "The official board"}
    (board.path / "board.toml").write_text(tomli_w.dumps(card))


def test_a_name_that_differs_from_the_ledgers_is_named(board):
    renamed(board)
    (difference,) = verify_at(str(board.path)).differences
    assert "board.toml has the name 'The official board', but the ledger has" in difference


def test_a_clock_that_is_set_back_writes_no_earlier_record(board, monkeypatch):
    before = board.records()[-1].time
    monkeypatch.setattr("farshift.leaderboard.ledger.book.get_utc_now", lambda: "2020-02-02T00:00:00Z")
    withdraw_entry(board, board.standings()[0].entry, "a bug")
    assert board.records()[-1].time == before
    assert verify_board(board).differences == []


@pytest.mark.attack("operator", "scores that cannot be recomputed, presented as verified")
def test_scores_of_another_scorer_are_not_verified_and_are_no_difference(board):
    with newer_scorer(SCORER + 1):
        result = verify_board(board)
        done = CliRunner().invoke(app, ["board", "verify", str(board.path)])
    assert not result.is_complete
    assert result.differences == []
    assert result.verified == 0
    assert f"scored by scorer {SCORER}" in result.not_recomputed[0]
    assert result.entries_not_recomputed == 2
    assert done.exit_code == 1
    assert "2 entries: 0 verified, 2 not recomputed" in " ".join(done.output.split())


def rewritten(board: Board) -> Board:
    """The same board with its first submission's team another, signed with the same key: everything fits."""
    key = (board.path / "private" / "key.pem").read_bytes()
    file = next((board.path / "submissions").iterdir()).read_bytes()
    position = board.path.with_name("rewritten")
    (position / "private").mkdir(parents=True, mode=0o700)
    (position / "private" / "key.pem").write_bytes(key)
    (position / "private" / "key.pem").chmod(0o600)
    again = Board.init(position, "A test board")
    (position.parent / "again.zip").write_bytes(file)
    withdrawn, _ = submit_runs(again, position.parent / "again.zip")
    withdraw_entry(again, withdrawn[0], "it was too good")
    return again


@pytest.mark.attack("operator", "a history rewritten with the same key")
def test_a_history_rewritten_with_the_same_key_is_refused_by_who_saw_the_first(board, exported, tmp_path, cache):
    assert verify_at(str(exported)).is_complete
    copy = export_board(rewritten(board), tmp_path / "copy").out
    (result,) = verify_at(str(copy)).differences
    assert "the history was rewritten from record 0 on: on 2" in result
    with pytest.raises(FarshiftError, match="the history was rewritten from record 0 on"), open_board_view(str(copy)):
        pass


@pytest.mark.attack("host", "another board, with another key, at the address of the first")
def test_an_address_that_gets_another_board_with_another_key_is_told(board, exported, tmp_path, cache):
    with servers.web(**served(exported)) as site:
        assert verify_at(site.url).is_complete
        other = export_board(Board.init(tmp_path / "other", "A test board"), tmp_path / "other export").out
        site.files = {f"/{name}": content for name, content in served(other).items()}
        (result,) = verify_at(site.url).differences
    assert f"has the key {Board(tmp_path / 'other').ledger.key}, but had the key {board.ledger.key} when" in result


def served(place: Path) -> dict[str, bytes]:
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_outsiders_compute_the_tables_of_an_export_as_the_board_does(board, exported, tmp_path, cache):
    due = take_snapshot(board).record()
    with servers.web(**served(exported)) as site:
        for position in (str(exported), site.url):
            with open_board_view(position) as view:
                assert take_snapshot(view).record() == due
                write_export(take_snapshot(view), "csv", tmp_path / "table.csv")
            assert verify_at(position).is_complete
    with open_board_view(str(exported)) as view:
        assert "2 entries" in build_site(view, tmp_path / "pages").read_text()
    assert list_differences(take_snapshot(board), "csv", tmp_path / "table.csv") == []
    text = (tmp_path / "table.csv").read_text()
    (tmp_path / "table.csv").write_text(text.replace("good", "best"))
    (wrong,) = list_differences(take_snapshot(board), "csv", tmp_path / "table.csv")
    assert "differs from the board's export at record 3" in wrong


def test_the_models_that_tables_are_compared_with_are_in_an_export(board, tmp_path, cache):
    (board.path / "settings.toml").write_text('[baselines]\n"modadd97/xi35" = "good"\n')
    declare_references(board, [item.entry for item in board.standings()])
    with open_board_view(str(export_board(board, tmp_path / "export").out)) as view:
        assert take_snapshot(view).views[0].baseline == "good"


@pytest.mark.slow
def test_several_processes_verify_as_one_does(board, runs, tmp_path, cache, monkeypatch):
    monkeypatch.setattr("farshift.leaderboard.operations.verify.MANY", 1)
    submit_runs(board, pack_runs(runs[2:], tmp_path / "s.zip", team="them"))
    assert verify_board(board, workers=2) == verify_board(board)
