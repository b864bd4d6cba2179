"""Sealed draws by their commands, in real processes; and one that is killed with signal 9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.sealed.seal import seal_benchmark
from farshift.leaderboard.sealed.times import format_time
from sealed_cases import ON, key_of
from support import one_line_error

MODEL = """
import numpy as np

class Model:
    def predict(self, batch):
        return np.array([text.count("t") % 2 for text in batch["coins"]])
"""


@pytest.mark.slow
def test_a_window_from_its_announcement_to_its_verification(coins, farshift, farshift_json, tmp_path):
    board = tmp_path / "board"
    (tmp_path / "model.py").write_text(MODEL)
    farshift_json("board", "init", board)
    closes = datetime.now(UTC) + timedelta(seconds=90)
    output = farshift_json("board", "sealed", "create", ON, "--board", board, "--closes", format_time(closes))
    assert output["profile"]["ood"]["equal"]
    draw = farshift_json("board", "sealed", "draw", ON, "--board", board, "--out", tmp_path / "draw")["draw"]
    for team, model in (("a", f"{tmp_path / 'model.py'}:Model"), ("b", "baseline:most-frequent")):
        out = tmp_path / f"{team}.zip"
        key = key_of(tmp_path, team).path
        farshift_json(
            "board", "sealed", "answer", draw, model, "--team", team, "--key", key, "--out", out, "--seeds", 1
        )
        receipt = farshift_json("board", "sealed", "submit", out, "--board", board, "--window", ON)
        assert (receipt["team"], receipt["new"]) == (team, True)
    early = one_line_error(farshift("board", "sealed", "close", ON, "--board", board))
    assert "it is open now" in early
    (listed,) = farshift_json("board", "sealed", "list", board)
    assert (listed["state"], listed["answers"], listed["entries"], listed["seed"]) == ("open", 2, [], None)
    time.sleep(max(0.0, (closes - datetime.now(UTC)).total_seconds() + 1))
    result = farshift_json("board", "sealed", "close", ON, "--board", board)
    scores = {entry["team"]: entry["score"]["ood"]["value"] for entry in result["entries"]}
    assert scores["a"] > 0.9
    assert 0 <= scores["b"] <= 1
    assert farshift_json("board", "verify", board)["verified"]
    assert farshift_json("board", "sealed", "verify", receipt["receipt"], board)["held"]
    shown = farshift("board", "sealed", "list", board, "--window", ON).stdout
    assert "public - sealed" in shown


KILLED = """
import sys
from farshift.leaderboard.board import Board
from farshift.leaderboard.sealed.seal import seal_benchmark
print("ready", flush=True)
seal_benchmark(Board(sys.argv[1]), sys.argv[2], "now", "2040-01-01")
print("sealed", flush=True)
"""


@pytest.mark.slow
def test_kill_9_while_sealing_leaves_a_window_that_is_carried_on(coins, tmp_path):
    cut_off = 0
    for life in range(12):
        board = Board.init(tmp_path / str(life), "B")
        command = [sys.executable, "-c", KILLED, str(board.path), ON]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ.copy()) as child:
            assert child.stdout and child.stdout.readline() == "ready\n"
            time.sleep(0.05 + 0.12 * life)
            child.send_signal(signal.SIGKILL)
            done = "sealed" in child.stdout.read()
        before = [record for record in board.ledger.records() if record.kind == "seed_committed"]
        if "window_opened" not in [record.kind for record in board.ledger.records()]:
            cut_off += 1
            seal_benchmark(board, ON, "now", "2040-01-01")
        after = board.ledger.records()
        assert [record.kind for record in after] == ["opened", "seed_committed", "window_opened"]
        assert not before or before[0].hash == after[1].hash
        assert verify_board(board).differences == []
        assert not done or before
    assert cut_off > 0
