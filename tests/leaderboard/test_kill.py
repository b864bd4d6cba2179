"""Kill -9 at any moment loses nothing that was acknowledged, and leaves nothing half done."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path

import farshift as fs
import models
import pytest
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.sealed.seal import seal_benchmark
from farshift.leaderboard.submission.pack import pack_runs
from sealed_cases import answered, draw_folder, make_home
from warm_python import Python

pytestmark = pytest.mark.attack("disk", "hundreds of times kill -9 of a board that writes records and submissions")

KILLING = Path(__file__).parent / "killing.py"
ON = "modadd97/xi35"


@pytest.fixture
def killed(python) -> Callable[..., dict[str, int]]:
    """What a process counts that starts others and kills them (killing.py)."""
    return partial(counted, python)


def counted(python: Python, *arguments: object) -> dict[str, int]:
    done = python.run(KILLING, *arguments, timeout=900)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return json.loads(done.stdout)


def test_records_outlive_a_dozen_kills(tmp_path, killed):
    result = killed("ledger", tmp_path, "", 12, 1)
    assert result["kills"] == 12
    assert result["acknowledged"] >= 12


@pytest.mark.slow
def test_no_acknowledged_record_is_lost_in_150_kills_with_sqlite(tmp_path, killed):
    result = killed("ledger", tmp_path, "", 150, 2)
    assert result["kills"] == 150
    assert result["acknowledged"] >= 150


@pytest.mark.slow
def test_no_acknowledged_record_is_lost_in_150_kills_with_postgresql(tmp_path, server, killed):
    result = killed("ledger", tmp_path, server.database(), 150, 3)
    assert result["kills"] == 150
    assert result["acknowledged"] >= 150


@pytest.mark.slow
def test_submissions_outlive_a_dozen_kills_whole_or_not_at_all(tmp_path, killed):
    files = tmp_path / "files"
    files.mkdir()
    for number in range(5):
        run = tmp_path / f"run{number}"
        fs.evaluate(lambda seed, n=number: models.Adder(seed, 0.1 * n), on=ON, seeds=1, out=run, name=f"model {number}")
        content = pack_runs([run], tmp_path / "packed.zip").read_bytes()
        (files / f"{sha256(content).hexdigest()}.zip").write_bytes(content)
    (tmp_path / "boards").mkdir()
    result = killed("board", tmp_path / "boards", files, 12, 4)
    assert result["kills"] >= 12
    assert result["acknowledged"] > 0


def with_a_window(folder: Path) -> Path:
    """A board with an entry and an open window, and answers to the window."""
    board = Board.init(folder / "board", "killed")
    fs.evaluate(lambda seed: models.Adder(seed, 0.1), on=ON, seeds=1, out=folder / "run", name="one model")
    submit_runs(board, pack_runs([folder / "run"], folder / "s.zip", team="us"))
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    window = seal_benchmark(board, "coins/longer", tomorrow)
    answers = answered(draw_folder(board, window), folder, "ann", seeds=1)
    answers.rename(folder / "answers.zip")
    return folder


@pytest.mark.slow
def test_sealed_answers_and_exports_outlive_a_dozen_kills_whole_or_not_at_all(tmp_path, monkeypatch, killed):
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path / "coins"))
    make_home(tmp_path / "coins")
    (tmp_path / "files").mkdir()
    (tmp_path / "boards").mkdir()
    result = killed("steps", tmp_path / "boards", with_a_window(tmp_path / "files"), 12, 5)
    assert result["kills"] == 12
    assert 0 < result["acknowledged"] < 12
