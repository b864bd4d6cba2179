"""Processes that work on a ledger or a board and are killed at random moments.

    python killing.py ledger FOLDER URL LIVES SEED      (an empty URL: SQLite in FOLDER)
    python killing.py board FOLDER FILES LIVES SEED     (FILES: a folder of submissions)
    python killing.py steps FOLDER FILES LIVES SEED     (FILES: a board in `board`, a second run in `again`, answers of
                                                         a team to its sealed window in `answers.zip`)

Every life is a fork of this process, which loaded everything: a kill costs no start of Python. A life writes down what
was acknowledged to it, through a pipe; after each kill what lies there is read anew and held against that.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from farshift.leaderboard.board import Board
from farshift.leaderboard.ledger.record import find_chain_problems
from farshift.leaderboard.operations import submit as submitting
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.locations import verify_at
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.sealed.submit import submit_answers
from farshift.leaderboard.sealed.window import read_windows
from farshift.leaderboard.storage.board_files import list_named_files
from ledgers import ledger_in, withdrawn

Tell = Callable[[object], None]


def lived(work: Callable[[Tell], None], seconds: float, after: int = 0) -> tuple[list[Any], bool]:
    """What a fork was told that did `work` until it was killed, `seconds` after it had been told `after` things; and
    whether it was at work when it was killed."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        code = 1
        try:
            work(lambda said: os.write(into, json.dumps(said).encode() + b"\n"))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(into)
    output = b""
    with os.fdopen(out, "rb", buffering=0) as pipe:
        while output.count(b"\n") < after and (more := pipe.read(1 << 16)):
            output += more
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        while more := pipe.read(1 << 16):
            output += more
    full = output[: output.rfind(b"\n") + 1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"a life ended by an error: {output!r}"
    return [json.loads(line) for line in full.splitlines()], os.WIFSIGNALED(status)


def kill_appending(folder: Path, url: str | None, lives: int, seed: int) -> dict[str, int]:
    """Processes that append two records at a time, and are killed up to 30 ms after none to four of these were
    acknowledged."""
    draw = np.random.Generator(np.random.PCG64(seed))
    ledger_in(folder, url).store.close()
    acknowledged: dict[int, str] = {}
    for life in range(lives):

        def work(tell: Tell, life: int = life) -> None:
            ledger = ledger_in(folder, url)
            for number in range(1_000_000):
                both = ledger.append([withdrawn(life), withdrawn(number)])
                tell([[record.seq, record.hash] for record in both])

        output, killed = lived(work, draw.uniform(0, 0.03), int(draw.integers(0, 5)))
        assert killed
        acknowledged |= {seq: hash for both in output for seq, hash in both}
        ledger = ledger_in(folder, url)
        there = {record.seq: record.hash for record in ledger.records()}
        ledger.store.close()
        assert acknowledged.items() <= there.items(), "a record that was acknowledged is gone"
        assert len(there) % 2 == 1, "half of what belongs together is there"
    ledger = ledger_in(folder, url)
    records = ledger.store.records()
    assert find_chain_problems(records, ledger.key) == []
    return {"kills": lives, "acknowledged": len(acknowledged), "records": len(records)}


def kill_submitting(folder: Path, files: Path, lives: int, seed: int) -> dict[str, int]:
    """Processes that hand submissions in to one board, and are killed up to 80 ms after they began, had checked the
    submission, had scored it, or were told that it is in. `late`: kills after the ledger had the submission and before
    anybody was told."""
    draw = np.random.Generator(np.random.PCG64(seed))
    todo: list[Path] = []
    board, acknowledged = None, set[str]()
    counts = {"kills": 0, "acknowledged": 0, "late": 0, "boards": 0}
    while counts["kills"] < lives:
        if not todo:
            if board is not None:
                _hold(board, acknowledged)
            board = Board.init(folder / str(counts["boards"]), "killed")
            counts["boards"] += 1
            todo, acknowledged = sorted(files.iterdir()), set()
        assert board is not None

        def work(tell: Tell, path: Path = board.path, file: Path = todo[0]) -> None:
            for step in ("validate_submission", "score_entry"):
                setattr(submitting, step, _told(getattr(submitting, step), tell))
            tell(submit_runs(Board(path), file)[0])
            time.sleep(60)

        output, killed = lived(work, draw.uniform(0, 0.08), int(draw.integers(0, 4)))
        assert killed
        output = [item for item in output if item]
        counts["kills"] += 1
        counts["acknowledged"] += len(output)
        there = {record.body["submission"] for record in board.ledger.records() if record.kind == "submitted"}
        entered = todo[0].stem in there
        assert entered or not output, "a submission that was acknowledged is gone"
        counts["late"] += entered and not output
        if entered:
            acknowledged.add(todo.pop(0).stem)
    assert board is not None
    _hold(board, acknowledged)
    return counts


def kill_steps(folder: Path, files: Path, lives: int, seed: int) -> dict[str, int]:
    """Processes that hand answers to a sealed window in, or export the board, and are killed up to half a second after they began, or 50 ms after it was done. The board is whole after each kill, and so is what was
    acknowledged; the same step again is done once."""
    draw = np.random.Generator(np.random.PCG64(seed))
    counts = {"kills": 0, "acknowledged": 0, "late": 0}
    base = Board(files / "board")
    window = next(iter(read_windows(base.ledger.records())))
    steps: dict[str, Callable[[Board, Path], object]] = {
        "submitted": lambda board, place: submit_answers(board, window, files / "answers.zip"),
        "exported": lambda board, place: export_board(board, place / "export"),
    }
    for number in range(lives):
        kind = sorted(steps)[number % len(steps)]
        position = folder / str(number)
        os.environ["FARSHIFT_HOME"] = str(position / "home")  # it remembers each history that it has seen
        board = Board(shutil.copytree(base.path, position / "board"))
        before = len(board.ledger.records())

        def work(
            tell: Tell, step: Callable[..., object] = steps[kind], board: Board = board, place: Path = position
        ) -> None:
            tell("begun")
            step(Board(board.path), place)
            tell("done")
            time.sleep(60)

        after = int(draw.integers(1, 3))
        output, killed = lived(work, draw.uniform(0, 0.5 if after == 1 else 0.05), after)
        assert killed
        counts["kills"] += 1
        done = "done" in output
        counts["acknowledged"] += done
        board.committed_records()
        result = verify_board(board)
        assert result.differences == [] == result.not_recomputed, (kind, result)
        new = [record.kind for record in board.ledger.records()[before:]]
        counts["late"] += bool(new) and not done
        assert new or not done or kind == "exported", "what was acknowledged is gone"
        if not (new and kind == "submitted"):  # a team hands in once
            steps[kind](Board(board.path), position)
        kinds = [record.kind for record in board.ledger.records()[before:]]
        if kind == "exported":
            copy = verify_at(str(position / "export"))
            assert copy.differences == [] == copy.not_recomputed, copy
        else:
            assert kinds.count(kind) == 1, kinds
        assert verify_board(board).differences == []
        shutil.rmtree(position)
    return counts


def _told(step: Callable[..., Any], tell: Tell) -> Callable[..., Any]:
    def done(*arguments: Any, **named: Any) -> Any:
        result = step(*arguments, **named)
        tell([])
        return result

    return done


def _hold(board: Board, acknowledged: set[str]) -> None:
    """All that was entered is there, whole; and nothing else."""
    board.committed_records()
    there = {path.stem for path in (board.path / "submissions").glob("*.zip")}
    assert there >= acknowledged
    result = verify_board(board)
    assert result.differences == [] == result.not_recomputed
    assert {path for path in list_named_files(board.ledger.records()) if path.startswith("submissions")} == {
        f"submissions/{item}.zip" for item in acknowledged
    }


if __name__ == "__main__":
    what, where, other, lives, seed = sys.argv[1:]
    if what == "ledger":
        print(json.dumps(kill_appending(Path(where), other or None, int(lives), int(seed))))
    elif what == "steps":
        print(json.dumps(kill_steps(Path(where), Path(other), int(lives), int(seed))))
    else:
        print(json.dumps(kill_submitting(Path(where), Path(other), int(lives), int(seed))))
