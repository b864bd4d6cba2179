"""Answers are signed: one of each key, whatever the names; equal ones are one; and a receipt binds the board."""

from __future__ import annotations

import json
import shutil
import tomllib
import zipfile
from dataclasses import replace
from hashlib import sha256

import pytest
import tomli_w
import typer
from farshift import FarshiftError
from farshift.cli.sealed import sealed_verify
from farshift.core.errors import BadData, BadSubmission
from farshift.leaderboard.board import Board
from farshift.leaderboard.ledger.record import Record, hash_record
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.sealed.receipt import Receipt, find_receipt_problems, read_receipt
from farshift.leaderboard.sealed.results import make_window_results
from farshift.leaderboard.sealed.seal import close_window
from farshift.leaderboard.sealed.submit import pack_answers, submit_answers
from farshift.leaderboard.sealed.verify import verify_sealed
from farshift.leaderboard.validation.card import sign_card
from sealed_cases import CLOSES, OPENS, WINDOW, Clock, key_of, kinds
from test_window_verify import changed, list_folder

pytestmark = pytest.mark.usefixtures("decoded_once")


def packed_again(answers, out, key=None, **changes):
    """The same answers with another card: signed by a key, or by nobody."""
    with zipfile.ZipFile(answers) as bundle:
        files = {entry.filename: bundle.read(entry) for entry in bundle.infolist()}
    card = {name: value for name, value in tomllib.loads(files["submission.toml"].decode()).items()}
    card.pop("signature")
    card |= changes
    files["submission.toml"] = tomli_w.dumps(card if key is None else sign_card(card, key)).encode()
    with zipfile.ZipFile(out, "w") as bundle:
        for name, content in files.items():
            bundle.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return out


@pytest.mark.attack("entrant", "answers to a window, submitted twice under two names")
def test_one_submission_is_taken_of_each_key_whatever_name_it_gives(opened, handed, clock, tmp_path):
    """A team that answers again under another name, once it has thought again."""
    ann = handed.answers["ann"]
    first = submit_answers(opened, WINDOW, ann, clock)
    again = submit_answers(opened, WINDOW, ann, clock)
    assert (first.new, again.new, again.answers_record) == (True, False, first.answers_record)
    other = packed_again(ann, tmp_path / "other.zip", key_of(ann.parent, "ann"), team="Zoe")
    with pytest.raises(FarshiftError, match="only one is accepted for each key"):
        submit_answers(opened, WINDOW, other, clock)
    assert kinds(opened).count("submitted") == 1


@pytest.mark.attack("entrant", "answers to a window under another team's name, to lock that team out")
def test_a_squatter_of_a_name_locks_nobody_out(opened, handed, clock, tmp_path):
    """A stranger who answers first under the name of a team that is known."""
    bob, key = handed.answers["bob"], key_of(tmp_path, "stranger")
    submit_answers(opened, WINDOW, packed_again(bob, tmp_path / "squat.zip", key, team="ann"), clock)
    assert submit_answers(opened, WINDOW, handed.answers["ann"], clock).new
    clock.set(CLOSES)
    close_window(opened, WINDOW, clock)
    names = [entry["team"] for entry in make_window_results(opened, WINDOW)["entries"]]
    assert len(set(names)) == 2
    assert all(name.startswith("ann [") for name in names)  # with the fingerprints of their keys
    assert verify_board(opened).differences == []


@pytest.mark.attack("entrant", "answers without a signature, or with another team's")
def test_answers_that_nobody_signed_or_whose_signature_is_another_s_are_refused(opened, handed, clock, tmp_path):
    ann = handed.answers["ann"]
    with pytest.raises(FarshiftError, match="is not signed: create your team's key with farshift team --create"):
        submit_answers(opened, WINDOW, packed_again(ann, tmp_path / "unsigned.zip"), clock)
    with zipfile.ZipFile(ann) as bundle:
        signature = tomllib.loads(bundle.read("submission.toml").decode())["signature"]
    stolen = packed_again(ann, tmp_path / "stolen.zip", team="eve", signature=signature)
    with pytest.raises(BadSubmission, match="does not match this card"):
        submit_answers(opened, WINDOW, stolen, clock)
    with zipfile.ZipFile(ann) as bundle, zipfile.ZipFile(tmp_path / "swapped.zip", "w") as out:
        for entry in bundle.infolist():
            content = bundle.read(entry)
            out.writestr(zipfile.ZipInfo(entry.filename, (1980, 1, 1, 0, 0, 0)), content.replace(b"ann", b"eve"))
    with pytest.raises(BadSubmission):
        submit_answers(opened, WINDOW, tmp_path / "swapped.zip", clock)
    assert "submitted" not in kinds(opened)


def test_answers_are_not_packed_without_a_key(handed, tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "home"))
    with pytest.raises(FarshiftError, match="farshift team --create"):
        pack_answers(None, tmp_path / "a.zip", handed.draw, "ann")


@pytest.fixture
def copied(opened, handed, clock, tmp_path):
    """A closed window with ann's answers, and the same ones from a stranger later."""
    submit_answers(opened, WINDOW, handed.answers["ann"], clock)
    copy = packed_again(handed.answers["ann"], tmp_path / "copy.zip", key_of(tmp_path, "eve"), team="eve")
    submit_answers(opened, WINDOW, copy, clock)
    submit_answers(opened, WINDOW, handed.answers["cheat"], clock)
    clock.set(CLOSES)
    close_window(opened, WINDOW, clock)
    return opened


@pytest.mark.attack("entrant", "the same answers to a window, submitted again under another key")
def test_equal_answers_are_one_whoever_sends_them(copied):
    """A friend who sends a team's answers once more, under another key: shown as equal, and counted once."""
    ann, eve, cheat = make_window_results(copied, WINDOW)["entries"]
    assert [item["equal_to"] for item in (ann, eve, cheat)] == ["", "ann", ""]
    assert eve["contrast"] == ann["contrast"]
    for view in ("id", "ood"):  # Holm's correction is over two, not three
        assert cheat["contrast"][view]["p_holm"] <= 2 * cheat["contrast"][view]["p"] + 1e-6
    assert verify_board(copied).differences == []


@pytest.mark.attack("operator", "equal answers presented as different, or under another key")
def test_a_board_that_makes_equal_answers_different_is_found(copied):
    records = changed(copied, "scored", predictions="0" * 64)
    differences, _ = verify_sealed(list_folder(copied.path), records, Clock(CLOSES))
    assert any("has predictions that do not match the digest" in line for line in differences)
    records = changed(copied, "submitted", signed_by="0" * 64)
    differences, _ = verify_sealed(list_folder(copied.path), records, Clock(CLOSES))
    assert any("which differs from the ledger" in line for line in differences)
    assert any("has more than one submission" in line for line in differences)


@pytest.fixture
def taken(opened, handed, clock, tmp_path):
    """A board, and the receipt that ann got from it."""
    submit_answers(opened, WINDOW, handed.answers["ann"], clock).write(tmp_path / "receipt.json")
    return opened, tmp_path / "receipt.json"


def test_a_receipt_is_signed_and_names_what_was_taken(taken, handed):
    board, file = taken
    output, receipt = json.loads(file.read_text()), read_receipt(file)
    record = board.ledger.records()[-1]
    assert (output["board"], output["seq"], output["hash"], output["time"]) == (
        board.ledger.key,
        record.seq,
        record.hash,
        record.time,
    )
    assert output["signed_by"] == key_of(handed.answers["ann"].parent, "ann").public
    assert output["submission"] == receipt.submission
    assert find_receipt_problems(receipt, board.ledger.records(), board.ledger.key) == []


@pytest.mark.attack("entrant", "an altered receipt, to accuse a board falsely")
@pytest.mark.parametrize("name", ["team", "window", "submission", "time", "board", "hash", "record"])
def test_a_receipt_that_an_entrant_changed_is_refused(taken, name):
    """An entrant who accuses a board."""
    _, file = taken
    output = json.loads(file.read_text())
    output[name] = {**output["record"], "time": "2031-01-02T00:00:00Z"} if name == "record" else "00" * 32
    file.write_text(json.dumps(output))
    with pytest.raises(BadData, match=r"was changed|not signed|not a receipt"):
        read_receipt(file)


@pytest.mark.attack("entrant", "a forged receipt, to accuse a board falsely")
def test_a_receipt_of_another_key_is_refused(taken, tmp_path):
    board, file = taken
    stranger = key_of(tmp_path, "stranger")
    record = board.ledger.records()[-1]
    body = record.body | {"team": "eve"}
    hash = hash_record(record.seq, record.time, record.kind, body, record.previous)
    forged = Receipt(board.ledger.key, replace(record, body=body, hash=hash, signature=stranger.sign(hash)))
    forged.write(file)
    with pytest.raises(BadData, match="is not signed by the board"):
        read_receipt(file)


def rewritten(board, kept):
    """The ledger as its operator might write it anew: these records, chained and signed by the board's own key."""
    previous, result = "0" * 64, []
    for seq, record in enumerate(kept):
        hash = hash_record(seq, record.time, record.kind, record.body, previous)
        result.append(
            Record(seq, record.time, record.kind, record.body, previous, hash, board.ledger.signing.sign(hash))
        )
        previous = hash
    return result


@pytest.mark.attack("operator", "answers dropped from a rewritten ledger")
def test_answers_that_a_board_dropped_are_proved_by_the_receipt(taken, clock, handed):
    """An operator who rewrites its ledger without the answers of a team that it does not like."""
    board, file = taken
    receipt, key = read_receipt(file), board.ledger.key
    clock.set(OPENS, seconds=600)
    submit_answers(board, WINDOW, handed.answers["bob"], clock)
    honest = board.ledger.records()
    assert find_receipt_problems(receipt, honest, key) == []
    without = rewritten(board, [record for record in honest if record.body.get("team") != "ann"])
    (problem,) = find_receipt_problems(receipt, without, key)
    assert f"record {receipt.seq} differs from the receipt's (submitted at 2031-01-01T00:10:00Z)" in problem
    clock.set(CLOSES)
    late = board.ledger.append([("window_closed", {"window": WINDOW})])[0]
    short = rewritten(board, [*honest[: receipt.seq - 1], late])
    (problem,) = find_receipt_problems(receipt, short, key)
    assert "is missing in the ledger, which has records after" in problem


@pytest.mark.attack("entrant", "an outdated or forged ledger, to accuse a board falsely")
def test_an_older_or_forged_copy_of_the_ledger_proves_nothing(taken, tmp_path):
    board, file = taken
    receipt, records = read_receipt(file), board.ledger.records()
    with pytest.raises(FarshiftError, match="get a newer copy"):
        find_receipt_problems(receipt, records[:-1], board.ledger.key)
    with pytest.raises(FarshiftError, match="has invalid records"):
        find_receipt_problems(receipt, [*records[:-1], replace(records[-1], kind="withdrawn")], board.ledger.key)
    other = Board.init(tmp_path / "other", "Other")
    with pytest.raises(FarshiftError, match="is from the board with the key"):
        find_receipt_problems(receipt, other.ledger.records(), other.ledger.key)


@pytest.mark.attack("operator", "answers accepted and never scored")
def test_answers_that_were_taken_and_never_scored_are_named(taken, clock):
    board, file = taken
    clock.set(CLOSES)
    close_window(board, WINDOW, clock)
    assert find_receipt_problems(read_receipt(file), board.ledger.records(), board.ledger.key) == []
    left = rewritten(board, [record for record in board.ledger.records() if record.kind != "scored"])
    (problem,) = find_receipt_problems(read_receipt(file), left, board.ledger.key)
    assert "never scored" in problem


def test_answers_of_windows_of_earlier_versions_stay_as_they_were(opened, handed, clock, tmp_path):
    """Unsigned, with the digest of a secret: one of each name."""
    submit_answers(opened, WINDOW, handed.answers["ann"], clock)
    body = opened.ledger.records()[-1].body
    unsigned = packed_again(handed.answers["ann"], tmp_path / "unsigned.zip")
    digest = sha256(unsigned.read_bytes()).hexdigest()
    position = f"sealed/{WINDOW}/answers/{digest}.zip"
    old = {name: value for name, value in body.items() if name != "signed_by"}
    old |= {"team_key": "ab" * 32, "submission": digest, "files": {position: digest}}
    board = Board(shutil.copytree(opened.path, tmp_path / "old"))
    board.enter([("submitted", {**old, "team": "Old  Team"})], {position: unsigned.read_bytes()})
    assert verify_sealed(list_folder(board.path), board.ledger.records(), Clock(OPENS)) == ([], [])
    board.ledger.append([("submitted", {**old, "team": " old team", "submission": "0" * 64, "files": {}})])
    differences, _ = verify_sealed(list_folder(board.path), board.ledger.records(), Clock(OPENS))
    assert differences == [f"window {WINDOW}: team 'old team' has more than one submission"]


def test_a_receipt_is_checked_against_a_board_or_an_export_by_command(taken, capsys, tmp_path):
    board, file = taken
    sealed_verify(file, str(board.path))
    assert "The ledger contains them." in capsys.readouterr().out
    export_board(board, tmp_path / "export")
    stored = [record for record in board.ledger.records() if record.kind != "submitted"]
    later = replace(stored[-1], kind="withdrawn", time="2031-02-01T00:00:00Z", body={"entry": "a", "reason": "b"})
    lines = [record.line() + b"\n" for record in rewritten(board, [*stored, later])]
    (tmp_path / "export" / "ledger.jsonl").write_bytes(b"".join(lines))
    with pytest.raises(typer.Exit) as left:
        sealed_verify(file, str(tmp_path / "export"))
    assert left.value.exit_code == 1
    assert "receipt and ledger prove it" in " ".join(capsys.readouterr().out.split())
