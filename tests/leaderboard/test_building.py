"""One command builds the board of the shipped baselines: it verifies, its tables show rank sets, and it goes on."""

from __future__ import annotations

import pytest
from farshift import FarshiftError, score
from farshift.baselines.running.results import find_recorded_run, list_results
from farshift.cli.board import build_board
from farshift.core.errors import Unavailable, UnknownName
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.build import build
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.tables.snapshot import take_snapshot

ON, NAMES = ("modadd97/xi35", "xor_clusters/eta10"), ("knn", "mlp", "naive-bayes")
"""Both are generated: no file of anybody's is needed."""


def there() -> set[tuple[str, str]]:
    return {(on, name) for on in ON for name in NAMES} & set(list_results())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A board of the three baselines on the two benchmarks, and what building it told."""
    position = tmp_path_factory.mktemp("baselines") / "board"
    return build_board(position, benchmarks=ON, baselines=NAMES, workers=1)


def test_every_recorded_run_is_an_entry_with_the_score_that_it_has_offline(built):
    assert (built.entered, built.there, built.left_out, built.differences) == (len(there()), 0, [], [])
    board = Board(built.board)
    result = {(item.score.benchmark, item.score.model): item for item in board.standings()}
    assert set(result) == there()
    on, name = min(there())
    assert result[on, name].score == score(find_recorded_run(on, name))
    assert verify_board(board).differences == []


def test_its_tables_have_rank_sets_tie_groups_and_a_baseline(built):
    views = take_snapshot(Board(built.board)).views
    assert sorted(table_view.benchmark for table_view in views) == sorted(ON)
    for table_view in views:
        assert table_view.ranked == len(table_view.rows) > 1
        assert all(
            row.ties and row.rank[0] <= position <= row.rank[1] for position, row in enumerate(table_view.rows, 1)
        )
        assert {row.attempts for row in table_view.rows} == {len(table_view.rows)}
    assert any(table_view.baseline == "mlp" for table_view in views)
    assert "rank" in built.page.read_text()


def test_building_again_changes_nothing_and_more_baselines_are_added(built):
    before = len(Board(built.board).ledger.records())
    again = build_board(built.board, benchmarks=ON, baselines=NAMES, workers=1)
    assert (again.entered, again.there, again.differences) == (0, len(there()), [])
    assert len(Board(built.board).ledger.records()) == before
    assert again.page.read_bytes() == built.page.read_bytes()


def refused(benchmark: str, model: str):
    raise Unavailable(f"no network for {benchmark}")


def test_a_run_whose_data_cannot_be_had_is_left_out_and_named(tmp_path):
    result = build(tmp_path / "b", "A board", "us", [(ON[0], "mlp")], refused, workers=1)
    assert (result.entered, result.entries) == (0, 0)
    assert result.left_out == [f"mlp on {ON[0]}: no network for {ON[0]}"]


def test_what_has_no_recorded_result_is_refused_in_a_line(tmp_path):
    with pytest.raises(UnknownName, match="no baseline with recorded results named 'knnn': did you mean knn"):
        build_board(tmp_path / "b", baselines=["knnn"])
    with pytest.raises(UnknownName, match="no benchmark with recorded results named"):
        build_board(tmp_path / "b", benchmarks=["modadd97/x"])
    with pytest.raises(FarshiftError, match="no runs to build a board from"):
        build(tmp_path / "b", "A board", "us", [], refused)
    assert not (tmp_path / "b").exists()
