"""Whatever is done to a board, in whatever order: it verifies, shows what it should, and its records only grow."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import farshift as fs
import models
import pytest
from farshift import FarshiftError
from farshift.benchmarks.benchmark import SCORER
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.manage import withdraw_entry
from farshift.leaderboard.operations.submit import rescore_entries, submit_runs
from farshift.leaderboard.operations.verify import verify_at, verify_board
from farshift.leaderboard.submission.pack import pack_runs
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from newer_scorer import newer_scorer
from remembering import remembering

ON = "modadd97/xi35"


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[Path]:
    """Four submissions: three of one run each, and one of two of those runs again with another team's name."""
    folder = tmp_path_factory.mktemp("files")
    for number in range(3):
        out = folder / f"run{number}"
        fs.evaluate(lambda seed, n=number: models.Adder(seed, 0.2 * n), on=ON, seeds=1, out=out, name=f"m{number}")
    packed = [pack_runs([folder / f"run{number}"], folder / f"{number}.zip", team="us") for number in range(3)]
    return [*packed, pack_runs([folder / "run0", folder / "run1"], folder / "both.zip", team="them")]


class Machine(RuleBasedStateMachine):
    """The model: which runs are in, by entry; which entries went, and how; the scorer that each was last scored by."""

    files: list[Path]
    most_records = 0
    """The longest ledger that any run of the machine came to."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.board = Board.init(self.folder / "board", "a machine's")
        self.stack = ExitStack()
        self.stack.enter_context(remembering())
        self.scorer = SCORER
        self.entered: dict[int, list[str]] = {}
        self.scored: dict[str, int] = {}
        self.left: dict[str, str] = {}
        self.seen = self.board.ledger.records()

    def teardown(self) -> None:
        self.stack.close()
        shutil.rmtree(self.folder)

    def conflicts(self, number: int) -> bool:
        others = {0: {3}, 1: {3}, 2: set(), 3: {0, 1}}[number]
        return number not in self.entered and bool(others & self.entered.keys())

    @rule(number=st.integers(0, 3))
    def submit(self, number: int) -> None:
        if self.conflicts(number):
            with pytest.raises(FarshiftError, match="is the same run as entry"):
                submit_runs(self.board, self.files[number])
            return
        entries, new = submit_runs(self.board, self.files[number])
        assert new is (number not in self.entered)
        assert entries == self.entered.setdefault(number, entries)
        if new:
            self.scored |= dict.fromkeys(entries, self.scorer)

    @precondition(lambda self: self.scored)
    @rule(data=st.data(), by_board=st.booleans())
    def leave(self, data, by_board) -> None:
        entry = data.draw(st.sampled_from(sorted(self.scored)))
        kind = "removed" if by_board else "withdrawn"
        if self.left.get(entry) in (kind, "removed"):
            with pytest.raises(FarshiftError, match="already"):
                withdraw_entry(self.board, entry, "again", by_board)
            return
        withdraw_entry(self.board, entry, f"it was {kind}", by_board)
        self.left[entry] = kind

    @precondition(lambda self: self.scorer < SCORER + 2)
    @rule()
    def raise_scorer(self) -> None:
        self.scorer += 1
        self.stack.enter_context(newer_scorer(self.scorer))

    @rule()
    def rescore(self) -> None:
        result = rescore_entries(self.board)
        assert result.left == []
        assert {item["entry"] for item in result.rescored} == {
            entry for entry, scorer in self.scored.items() if scorer < self.scorer
        }
        self.scored = dict.fromkeys(self.scored, self.scorer)

    @rule()
    def open_again(self) -> None:
        self.board = Board(self.board.path)

    @rule()
    def verify(self) -> None:
        copy = export_board(self.board, self.folder / "export").out
        for result in (
            verify_board(self.board),
            verify_at(str(copy), head=self.seen[-1].hash, key=self.board.ledger.key),
        ):
            assert result.differences == []
            assert result.entries == len(self.scored)
            old = sum(scorer < self.scorer for scorer in self.scored.values())
            assert result.entries_not_recomputed == old
            assert bool(result.not_recomputed) is bool(old)

    @invariant()
    def it_shows_what_it_should(self) -> None:
        standing = {row.entry: row.score.scorer for row in self.board.standings()}
        apart = {item.entry: item.left.kind for item in self.board.removed_entries()}
        assert standing == {entry: scorer for entry, scorer in self.scored.items() if entry not in self.left}
        assert apart == self.left

    @invariant()
    def records_only_grow(self) -> None:
        records = self.board.ledger.records()
        assert records[: len(self.seen)] == self.seen
        self.seen = records
        Machine.most_records = max(Machine.most_records, len(records))


@pytest.mark.slow
def test_a_board_keeps_its_word_whatever_is_done_to_it(files):
    Machine.files = files
    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=6, stateful_step_count=15, suppress_health_check=list(HealthCheck)),
    )
    assert Machine.most_records > 3, "nothing was ever handed in"
