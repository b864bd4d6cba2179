"""Challenges: a run again of the same model, scored like a submission, shown beside the entry, never in its place."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import farshift as fs
import pytest
from farshift.core.errors import BadSubmission, FarshiftError, UnknownName
from farshift.leaderboard.board import Board
from farshift.leaderboard.challenges import read_challenges
from farshift.leaderboard.ledger import Record
from farshift.leaderboard.operations.challenge import challenge, read_challenge_bodies, reply, verify_challenges
from farshift.leaderboard.operations.submit import submit
from farshift.leaderboard.operations.verify import verify
from farshift.leaderboard.publish.write import build
from farshift.leaderboard.submission.pack import pack
from farshift.leaderboard.tables.snapshot import take_snapshot

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import models

ON = "modadd97/xi35"


@pytest.fixture(scope="module")
def again(tmp_path_factory) -> dict[str, Path]:
    """Runs again: of the model called good, worse than it was; of another model; on fewer steps."""
    base = tmp_path_factory.mktemp("again")
    fs.evaluate(lambda seed: models.Adder(seed, 0.3), on=ON, seeds=2, out=base / "good", name="good")
    fs.evaluate(lambda seed: models.Adder(seed, 0.3), on=ON, seeds=2, out=base / "other", name="other")
    fs.evaluate(lambda seed: models.Adder(seed, 0.3), on=ON, seeds=1, out=base / "short", name="good", steps=3)
    return {path.name: path for path in base.iterdir()}


@pytest.fixture(scope="module")
def entered_once(runs, tmp_path_factory) -> Path:
    """A board with the entry called good, whose rows are kept."""
    place = tmp_path_factory.mktemp("board")
    board = Board.init(place / "board", "A test board")
    submit(board, pack(runs[:2], place / "s.zip", team="us"))
    take_snapshot(board)
    return board.path


@pytest.fixture
def entered(entered_once, tmp_path):
    """A copy of that board for this test alone, and the entry's name."""
    board = Board(shutil.copytree(entered_once, tmp_path / "board"))
    (name,) = (one.entry for one in board.standings() if one.score.model == "good")
    return board, name


def test_a_challenge_is_scored_and_shown_beside_the_entry_which_stays_as_it_is(entered, again):
    board, name = entered
    before = {one.entry: one.score for one in board.standings()}
    found, new = challenge(board, name, again["good"], "them", "30 % of our answers are wrong")
    assert new
    assert found.score == fs.score(again["good"]).to_dict(), "the same score as offline"
    assert found.difference["ood"]["value"] == pytest.approx(
        found.score["ood"]["value"] - before[name].ood.value, abs=2e-6
    )
    assert found.difference["ood"]["high"] < 0
    assert found.difference["ood"]["distinguishable"]
    assert {one.entry: one.score for one in board.standings()} == before
    (row,) = (row for table_view in take_snapshot(board).views for row in table_view.rows if row.challenges)
    assert (row.standing.entry, row.challenges) == (name, (found,))
    page = (build(board).parent / "entries" / f"{name}.html").read_text()
    assert "30 % of our answers are wrong" in page
    assert f"{100 * found.score['ood']['value']:.1f}" in page
    assert verify(board).differences == []


def test_filing_the_same_again_changes_nothing(entered, again):
    board, name = entered
    first, _ = challenge(board, name, again["good"], "them", "why")
    records = len(board.ledger.records())
    assert challenge(board, name, again["good"], "them", "why") == (first, False)
    assert len(board.ledger.records()) == records


@pytest.mark.slow
def test_a_packed_submission_challenges_as_a_run_folder_does(entered, again, tmp_path):
    board, name = entered
    file = pack([again["good"]], tmp_path / "c.zip", team="them", note="why")
    found, _ = challenge(board, name, file, "them", "why")
    assert found.score["model"] == "good"
    with pytest.raises(FarshiftError, match="a packed challenge says who files it and why"):
        challenge(board, name, file, "others", "why")


def test_a_challenge_may_be_answered(entered, again):
    board, name = entered
    found, _ = challenge(board, name, again["good"], "them", "why")
    reply(board, found.challenge, "us", "you left out the carry")
    reply(board, found.challenge, "the board", "both runs are whole")
    (now,) = read_challenges(board.ledger.records())
    assert [(one["by"], one["note"]) for one in now.answers] == [
        ("us", "you left out the carry"),
        ("the board", "both runs are whole"),
    ]
    with pytest.raises(UnknownName, match="no challenge named"):
        reply(board, "0" * 16, "us", "to what?")


def test_what_is_no_run_of_the_same_model_and_protocol_is_refused_and_leaves_no_trace(entered, runs, again, tmp_path):
    board, name = entered
    records = len(board.ledger.records())
    with pytest.raises(FarshiftError, match="has no run of good on modadd97/xi35"):
        challenge(board, name, again["other"], "them", "why")
    with pytest.raises(FarshiftError, match="has no run of good on modadd97/xi35"):
        challenge(board, name, again["short"], "them", "why")
    with pytest.raises(FarshiftError, match="is the run behind entry .* itself"):
        challenge(board, name, runs[0], "them", "why")
    with pytest.raises(BadSubmission, match="has 2 runs: a challenge is one run"):
        challenge(board, name, pack([again["good"], again["other"]], tmp_path / "two.zip"), "them", "why")
    with pytest.raises(FarshiftError, match="a challenge needs a reason"):
        challenge(board, name, again["good"], "them", "  ")
    with pytest.raises(FarshiftError, match="a challenge needs a team"):
        challenge(board, name, again["good"], "", "why")
    with pytest.raises(UnknownName, match="no entry on this board named"):
        challenge(board, "0" * 16, again["good"], "them", "why")
    with pytest.raises(FarshiftError):
        challenge(board, name, tmp_path / "absent.zip", "them", "why")
    assert len(board.ledger.records()) == records
    assert not (board.path / "challenges").exists()


FORGED = {
    "score": (
        lambda body: body["score"]["ood"].update(value=0.999),
        "its score, computed again, differs from the ledger",
    ),
    "difference": (
        lambda body: body["difference"]["ood"].update(value=-0.5),
        "its difference to the entry, computed again, is another than in the ledger",
    ),
    "team": (lambda body: body.update(team="nobody"), "its team is 'nobody' in the ledger and 'them' in its file"),
    "reason": (lambda body: body.update(reason="spite"), "its reason is 'spite' in the ledger and 'why' in its file"),
    "entry": (lambda body: body.update(entry="0" * 16), "its entry was never submitted"),
    "name": (lambda body: body.update(challenge="0" * 16), "its name is not that of its entry and submission"),
}


@pytest.fixture(scope="module")
def challenged_once(entered_once, again, tmp_path_factory) -> Path:
    """That board with a challenge."""
    board = Board(shutil.copytree(entered_once, tmp_path_factory.mktemp("challenged") / "board"))
    (name,) = (one.entry for one in board.standings() if one.score.model == "good")
    challenge(board, name, again["good"], "them", "why")
    return board.path


@pytest.mark.attack("operator", "anything that is stated, edited: challenges, times, cards, triggers, derived files")
@pytest.mark.parametrize("what", FORGED)
def test_a_board_that_signs_another_challenge_than_was_filed_is_found_by_verify(challenged_once, tmp_path, what):
    board = Board(shutil.copytree(challenged_once, tmp_path / "board"))
    assert verify(board).whole
    last = board.ledger.records()[-1]
    forged = json.loads(json.dumps(last.body))
    change, complaint = FORGED[what]
    change(forged)
    rewritten(board, last.seq, forged)
    found = verify(board)
    assert any(complaint in one for one in found.differences), found
    assert any("the history was rewritten from record" in one for one in found.differences), found


def rewritten(board: Board, seq: int, body: dict) -> None:
    """Rewrite a record and all after it with the board's own key."""
    records = board.ledger.records()
    with board.ledger.store.writing() as connection:
        triggers = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
        for name, _ in triggers:
            connection.exec_driver_sql(f"DROP TRIGGER {name}")
        connection.exec_driver_sql(f"DELETE FROM records WHERE seq >= {seq}")
        for _, sql in triggers:
            connection.exec_driver_sql(sql)
    board.ledger.append([(one.kind, body if one.seq == seq else one.body) for one in records[seq:]])


@pytest.mark.attack("disk", "a changed byte in a file of a board")
@pytest.mark.slow
def test_a_challenge_s_file_that_was_changed_is_found_by_verify(entered, again):
    board, name = entered
    challenge(board, name, again["good"], "them", "why")
    (file,) = (board.path / "challenges").iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert any("challenges/" in difference for difference in verify(board).differences)


def test_the_command_files_a_challenge_and_its_reply(entered, again, farshift, farshift_json):
    board, name = entered
    found = farshift_json(
        "board", "challenge", board.path, name, "--with", again["good"], "--team", "t", "--reason", "r"
    )
    assert found["new"]
    assert found["entry"] == name
    done = farshift("board", "reply", board.path, found["challenge"], "--by", "us", "--note", "no")
    assert done.stdout.strip() == f"challenge {found['challenge']}: 1 replies"
    told = farshift_json("board", "standings", board.path)
    (row,) = (row for table in told["tables"] for row in table["rows"] if row["entry"] == name)
    assert row["challenges"][0]["answers"][0]["note"] == "no"


@pytest.mark.parametrize("changed", [{"submission": "../../outside"}, {"score": None}, {"entry": 7}])
def test_a_strangers_record_that_lacks_what_a_challenge_has_is_named_and_nothing_is_opened(board, changed):
    body = {
        "challenge": "0" * 16,
        "entry": "1" * 16,
        "team": "t",
        "reason": "r",
        "submission": "2" * 64,
        "score": {},
        "difference": {},
    }
    record = Record(seq=5, time="now", kind="challenged", body=body | changed, previous="", hash="", signature="")
    (name,) = changed
    assert read_challenge_bodies([record]) == (
        [],
        [f"record 5 lacks what a record of the kind challenged has ({name})"],
    )
    assert verify_challenges([record], {}, {}) == ([], [])
