"""A board: what goes in is validated, what is in can be recomputed, what was changed is found."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import farshift as fs
import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.leaderboard.board import Board
from farshift.leaderboard.ledger import Ledger
from farshift.leaderboard.site import build
from farshift.leaderboard.submission import pack
from farshift.splits.errors import FarshiftError

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import models
from recomputed import verified

ON = "modadd97/xi35"


def test_the_same_runs_pack_to_the_same_bytes(runs, tmp_path):
    one = pack(runs, tmp_path / "one.zip", team="t").read_bytes()
    assert pack(list(reversed(runs)), tmp_path / "other.zip", team="t").read_bytes() == one
    with pytest.raises(FarshiftError, match="are both good on modadd97/xi35"):
        shutil.copytree(runs[0], tmp_path / "twin")
        pack([runs[0], tmp_path / "twin"], tmp_path / "x.zip")


def test_a_submission_is_scored_from_its_predictions(runs, board, tmp_path):
    entries, new = board.submit(pack(runs, tmp_path / "s.zip", team="us"))
    assert new
    assert len(entries) == 3
    stored = {row.score["model"]: row for row in board.standings()}
    for path in runs:
        run = fs.read_run(path)
        file = board.path / "scores" / f"{stored[run.model].entry}.json"
        assert file.read_bytes() == fs.score(run).json(), "the same bytes offline and on the board"
    assert verified(board) == (3, [])


def test_handing_in_the_same_file_again_changes_nothing(runs, board, tmp_path):
    file = pack(runs, tmp_path / "s.zip")
    first, _ = board.submit(file)
    before = (board.path / "ledger.jsonl").read_bytes()
    assert board.submit(file) == (first, False)
    assert (board.path / "ledger.jsonl").read_bytes() == before


def tampered(board: Board, what: str) -> None:
    ledger, scores = board.path / "ledger.jsonl", sorted((board.path / "scores").glob("*.json"))
    lines = ledger.read_text().splitlines(keepends=True)
    if what == "score":
        record = json.loads(scores[0].read_text())
        record["ood"]["value"] = 0.999
        scores[0].write_text(json.dumps(record))
    elif what == "score gone":
        scores[0].unlink()
    elif what == "score added":
        shutil.copy(scores[0], scores[0].with_name("0123456789abcdef.json"))
    elif what == "submission":
        file = next((board.path / "submissions").iterdir())
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    elif what == "record changed":
        ledger.write_text("".join([lines[0], lines[1].replace('"team":"us"', '"team":"me"')]))
    elif what == "record removed":
        ledger.write_text("".join(lines[1:]))
    elif what == "last record removed":
        ledger.write_text(lines[0])
    elif what == "emptied":
        ledger.write_text("")
        shutil.rmtree(board.path / "scores")
        shutil.rmtree(board.path / "submissions")
    elif what == "record rewritten":
        ledger.write_text(lines[0])
        body = json.loads(lines[1])["body"]
        body["entries"][0]["score"] = "0" * 64
        Ledger(ledger).append([("submitted", body)])
    elif what == "record malformed":
        Ledger(ledger).append([("submitted", {"submission": "x"})])


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ("score", "is missing or is not the ledger's"),
        ("score gone", "is missing or is not the ledger's"),
        ("score added", "belongs to no record"),
        ("submission", "is missing or was changed"),
        ("record changed", "line 2 was changed"),
        ("record removed", "line 1 has number 1"),
        ("last record removed", "belongs to no record"),
        ("emptied", "does not begin with the board's opening"),
        ("record rewritten", "computed again, score differs from the ledger"),
        ("record malformed", "lacks what a submission's record has"),
    ],
)
def test_verify_finds_every_change(runs, board, tmp_path, what, complaint):
    board.submit(pack(runs, tmp_path / "s.zip", team="us"))
    tampered(board, what)
    _, differences = verified(board)
    assert any(complaint in difference for difference in differences), differences


def test_a_line_that_a_crash_cut_off_is_dropped_by_the_next_append(runs, board, tmp_path):
    board.submit(pack(runs[:1], tmp_path / "a.zip"))
    ledger = board.path / "ledger.jsonl"
    with ledger.open("ab") as file:
        file.write(b'{"seq":2,"time":"2026')
    assert verified(board) == (1, [])
    board.submit(pack(runs[1:], tmp_path / "b.zip"))
    assert verified(board) == (3, [])
    assert len(ledger.read_text().splitlines()) == 3


def test_a_record_that_lost_only_its_newline_is_kept(runs, board, tmp_path):
    board.submit(pack(runs[:1], tmp_path / "a.zip"))
    ledger = board.path / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().rstrip(b"\n"))
    assert verified(board) == (1, [])
    board.submit(pack(runs[1:], tmp_path / "b.zip"))
    assert verified(board) == (3, [])


KILLED = """
import os, signal, sys
import farshift.leaderboard.board as board
from farshift.leaderboard.ledger import Ledger
place, target = sys.argv[3], getattr(board, sys.argv[3], None)
def killed(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
if place == "ledger": Ledger.append = killed
elif place == "publish": board.Board._publish = killed
elif place == "staging": board._listed = killed
board.Board(sys.argv[1]).submit(sys.argv[2])
"""


@pytest.mark.parametrize("place", ["staging", "ledger", "publish"])
def test_a_submit_that_is_killed_leaves_all_or_nothing(runs, board, tmp_path, place):
    file = pack(runs, tmp_path / "s.zip")
    done = subprocess.run([sys.executable, "-c", KILLED, board.path, file, place], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert verified(board) == ((3, []) if place == "publish" else (0, []))
    assert board.submit(file)[1] is (place != "publish")
    assert verified(board) == (3, [])
    assert not list((board.path / "incoming").iterdir())


def test_an_init_that_was_killed_can_be_repeated(tmp_path):
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "ledger.jsonl").write_text("")
    assert Board.init(tmp_path / "board", "again").name == "again"


def test_a_board_with_a_changed_score_shows_no_page(runs, board, tmp_path):
    board.submit(pack(runs, tmp_path / "s.zip"))
    tampered(board, "score")
    with pytest.raises(FarshiftError, match="farshift board verify"):
        build(board)


def test_a_run_enters_a_board_once(runs, board, tmp_path):
    board.submit(pack(runs, tmp_path / "a.zip"))
    with pytest.raises(FarshiftError, match="on this board already: pack the others without it"):
        board.submit(pack(runs[:1], tmp_path / "b.zip", note="another card"))


def test_entries_of_an_older_scorer_are_kept_and_said_to_be_old(runs, board, tmp_path, monkeypatch):
    board.submit(pack(runs, tmp_path / "s.zip"))
    monkeypatch.setattr("farshift.benchmarks.benchmark.SCORER", 99)
    found = board.verify()
    assert (found.entries, found.differences) == (3, [])
    assert len(found.not_recomputed) == 3
    assert "older identity" in build(board).read_text()


def test_an_entry_of_an_unknown_benchmark_is_said_to_be_one(runs, board, tmp_path, monkeypatch):
    board.submit(pack(runs, tmp_path / "s.zip", note="a first <try>"))
    assert any("a first &lt;try&gt;" in page.read_text() for page in (build(board).parent / "entries").iterdir())
    known = {"scan/length": find_benchmark("scan/length")}
    monkeypatch.setattr("farshift.benchmarks.benchmark.benchmarks", lambda: known)
    found = board.verify()
    assert found.differences == []
    assert len(found.not_recomputed) == 2
    assert all("no benchmark named 'modadd97/xi35'" in why and "FARSHIFT_PATH" in why for why in found.not_recomputed)


def test_data_that_cannot_be_had_is_no_difference(runs, board, tmp_path, monkeypatch):
    from farshift.splits.errors import Unavailable

    board.submit(pack(runs, tmp_path / "s.zip"))

    def unavailable(*_: object) -> None:
        raise Unavailable("no network")

    monkeypatch.setattr("farshift.leaderboard.board.check", unavailable)
    found = board.verify()
    assert found.differences == []
    assert "no network" in found.not_recomputed[0]


def test_pages_show_every_entry_escape_names_and_are_the_same_bytes_each_time(runs, board, tmp_path):
    board.submit(pack(runs, tmp_path / "s.zip", team="<script>alert(1)</script>"))
    index = build(board)
    text = index.read_text()
    assert "worse &lt;b&gt;" in text
    assert "<script>" not in text
    assert text.index("good") < text.index("worse"), "ordered by OOD score"
    assert '1 <span class="ci">of 5' in text, "fewer seeds than the protocol asks for are shown"
    pages = {path.name: path.read_bytes() for path in (board.path / "site" / "entries").iterdir()}
    assert len(pages) == 3
    assert any(b"Score by severity" in page for page in pages.values())
    again = build(board, tmp_path / "again")
    assert again.read_bytes() == index.read_bytes()
    assert {path.name: path.read_bytes() for path in (tmp_path / "again" / "entries").iterdir()} == pages


def test_an_empty_board_has_a_page_and_a_folder_in_use_is_not_taken(board, tmp_path):
    assert "No entries yet" in build(board).read_text()
    with pytest.raises(FarshiftError, match="exists and is not empty"):
        Board.init(board.path, "again")
    with pytest.raises(FarshiftError, match="is no board: make one with farshift board init"):
        Board(tmp_path / "absent")


def test_entries_of_other_identities_never_share_a_table(runs, board, tmp_path):
    from farshift.leaderboard.standings import tables

    quick = tmp_path / "quick"
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=quick, name="quick one", budget="quick")
    short = tmp_path / "short"
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=short, name="short one", steps=7)
    board.submit(pack([*runs, quick, short], tmp_path / "s.zip"))
    found = {
        (table.benchmark, table.budget, table.steps): [row.score["model"] for row in table.rows]
        for table in tables(board.standings())
    }
    assert found == {
        ("scan/length", "full", None): ["echo"],
        (ON, "full", None): ["good", "worse <b>"],
        (ON, "full", 7): ["short one"],
        (ON, "quick", None): ["quick one"],
    }


def test_steps_set_by_hand_are_shown(board, tmp_path):
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=tmp_path / "short", steps=7)
    board.submit(pack([tmp_path / "short"], tmp_path / "s.zip"))
    assert "7 steps, set by hand" in build(board).read_text()


class Stages(models.Adder):
    """Two checkpoints, the second one worse; leaves some rows open."""

    def fit(self, train, val, budget):
        return {"steps": 2}

    def checkpoints(self):
        yield "early", models.Adder(self.seed, 0.1)
        yield "late", models.Bad(lambda batch: [None if a < 10 else 0 for a in batch["a"]])


def test_pages_show_how_candidates_were_chosen_other_metrics_and_lost_answers(board, tmp_path):
    for rule in ("last", "id_val"):
        fs.evaluate(Stages, on=ON, seeds=2, out=tmp_path / rule, selection=rule, name=rule)
        board.submit(pack([tmp_path / rule], tmp_path / f"{rule}.zip"))
    page = build(board)
    index = page.read_text()
    assert index.count("<h2>modadd97/xi35") == 2, "one table for each rule"
    assert "candidates chosen by id_val" in index
    entries = {path: path.read_text() for path in (page.parent / "entries").iterdir()}
    (last,) = (text for text in entries.values() if "2 candidates, chosen by last" in text)
    assert "answers" in last
    assert "abstained and 0 failed; each counts as wrong" in last
    assert "<td>oracle</td>" in last
    assert "nll@1" in last
    assert "n/a (the model gave no class probabilities)" in last
    assert board.verify().differences == []
