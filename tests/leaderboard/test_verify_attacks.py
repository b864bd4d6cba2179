"""What a dishonest operator, or a disk, changes on a board beside scores: `verify` names each."""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from base64 import b64decode
from hashlib import sha256
from pathlib import Path

import pytest
import tomli_w
from farshift.benchmarks.benchmark import SCORER
from farshift.core.errors import BadData, FarshiftError
from farshift.leaderboard.board import Board
from farshift.leaderboard.exports import publish, unlike
from farshift.leaderboard.ledger.checkpoint import (
    COSIGNATURE,
    Checkpoint,
    Signature,
    cosigned,
    merkle_root,
    read_checkpoint,
    signed_with,
    verifier_key,
)
from farshift.leaderboard.ledger.keys import create_key
from farshift.leaderboard.operations import recompute as recomputing
from farshift.leaderboard.operations.export import export
from farshift.leaderboard.operations.places import opened, verify_at, viewed
from farshift.leaderboard.operations.reference import reference
from farshift.leaderboard.operations.submit import submit
from farshift.leaderboard.operations.verify import verify
from farshift.leaderboard.operations.withdraw import withdraw
from farshift.leaderboard.operations.witness import checkpoint, witness
from farshift.leaderboard.publish.write import build
from farshift.leaderboard.submission.pack import pack
from farshift.leaderboard.tables.row_scores import packed, unpacked
from farshift.leaderboard.tables.snapshot import take_snapshot

sys.path.insert(0, str(Path(__file__).parent))
import servers
from newer_scorer import newer_scorer
from remembering import remembering


@pytest.fixture(scope="module")
def shown(runs, tmp_path_factory) -> Path:
    """A board with two entries, its rows and pages; tests take a copy."""
    folder = tmp_path_factory.mktemp("shown")
    board = Board.init(folder / "board", "A test board")
    with remembering():
        submit(board, pack(runs[:2], folder / "s.zip", team="us"))
    build(board)
    return board.path


@pytest.fixture
def board(shown, remembered, tmp_path) -> Board:
    return Board(shutil.copytree(shown, tmp_path / "board"))


@pytest.fixture
def exported(board, tmp_path) -> Path:
    return export(board, tmp_path / "export").out


def test_a_board_as_it_is_has_nothing_wrong(board):
    found = verify(board)
    assert found.whole, found
    assert found.verified == found.entries == 2
    assert found.notes == []


def renamed(board: Board) -> None:
    card = board.card | {"name": "The official board"}
    (board.path / "board.toml").write_text(tomli_w.dumps(card))


def older(board: Board) -> None:
    card = board.card | {"opened": "2001-01-01T00:00:00Z"}
    (board.path / "board.toml").write_text(tomli_w.dumps(card))


def with_trigger(board: Board) -> None:
    with board.ledger.store.writing() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER quietly AFTER INSERT ON records WHEN NEW.kind = 'withdrawn' "
            "BEGIN UPDATE records SET body = '{}' WHERE seq = NEW.seq; END"
        )


def without_trigger(board: Board) -> None:
    with board.ledger.store.writing() as connection:
        connection.exec_driver_sql("DROP TRIGGER records_remain")


def rows_changed(board: Board) -> None:
    """The same means, and other rows: rank sets would change."""
    file = sorted((board.path / "derived" / "rows").iterdir())[0]
    rows = unpacked(file.read_bytes())
    rows.ood.scores[:] = rows.ood.scores[:, ::-1]
    file.write_bytes(packed(rows))


def page_changed(board: Board) -> None:
    page = board.path / "site" / "index.html"
    page.write_text(page.read_text().replace("How far does", "Ranks are exact. How far does"))


def entry_page_changed(board: Board) -> None:
    page = sorted((board.path / "site" / "entries").iterdir())[0]
    page.write_bytes(page.read_bytes().replace(b"<h1>", b"<h1>State of the art: "))


def page_added(board: Board) -> None:
    pages = sorted((board.path / "site" / "entries").iterdir())
    shutil.copy(pages[0], pages[0].with_name("0123456789abcdef.html"))


def page_of_another_history(board: Board) -> None:
    page = board.path / "site" / "index.html"
    page.write_text(page.read_text().replace(board.records()[-1].hash, "0" * 64))


EDITS = {
    "the board's name": (renamed, "board.toml has the name 'The official board', and the board was opened as"),
    "when it was opened": (older, "board.toml says that it was opened at '2001-01-01T00:00:00Z', and the ledger at"),
    "a trigger that rewrites": (with_trigger, "database has the trigger quietly on records, which no migration makes"),
    "a trigger that is gone": (without_trigger, "database lacks the trigger records_remain on records"),
    "rows that are kept": (rows_changed, "is not what its submission gives: delete it"),
    "the front page": (page_changed, "site/index.html shows something else than the ledger gives"),
    "an entry's page": (entry_page_changed, ".html shows something else than the ledger gives"),
    "a page of no entry": (page_added, "site/entries/0123456789abcdef.html is no page of this board"),
    "a page of another history": (page_of_another_history, "which this ledger does not have"),
}


@pytest.mark.attack("operator", "anything that is shown, edited: times, cards, triggers, derived files, pages")
@pytest.mark.parametrize("what", EDITS)
def test_what_is_shown_and_was_edited_is_named(board, what):
    edit, complaint = EDITS[what]
    edit(board)
    found = verify_at(str(board.path))
    (difference,) = found.differences
    assert complaint in difference


def at_times(board: Board, *times: str) -> list[str]:
    """What is wrong with the board when its last records are of these times, signed with its key."""
    moments = iter(times)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("farshift.leaderboard.ledger.book.now", lambda: next(moments))
        patch.setattr("farshift.leaderboard.ledger.book._not_before", lambda head, time: time)
        for one in board.standings():
            withdraw(board, one.entry, "a bug")
    return verify(board).differences


@pytest.mark.attack("operator", "records with times of the past or the future")
def test_records_out_of_the_order_of_their_times_or_yet_to_come_are_named(board):
    last = board.records()[-1].seq
    assert at_times(board, "2020-02-02T00:00:00Z", "2999-01-01T00:00:00Z") == [
        f"record {last + 1} is of 2020-02-02T00:00:00Z, before the records that it follows",
        f"record {last + 2} is of 2999-01-01T00:00:00Z, which is yet to come",
    ]


def test_a_clock_that_is_set_back_writes_no_earlier_record(board, monkeypatch):
    before = board.records()[-1].time
    monkeypatch.setattr("farshift.leaderboard.ledger.book.now", lambda: "2020-02-02T00:00:00Z")
    withdraw(board, board.standings()[0].entry, "a bug")
    assert board.records()[-1].time == before
    assert verify(board).differences == []


@pytest.mark.attack("operator", "scores that cannot be recomputed, passed off as verified")
def test_scores_of_another_scorer_are_not_verified_and_are_no_difference(board):
    shutil.rmtree(board.path / "site")
    with newer_scorer(SCORER + 1):
        found = verify(board)
    assert not found.whole
    assert found.differences == []
    assert found.verified == 0
    assert all(f"scored by scorer {SCORER}" in why for why in found.not_recomputed)
    assert len(found.not_recomputed) == 2


@pytest.mark.attack("operator", "scores that cannot be recomputed, passed off as verified")
def test_what_cannot_be_recomputed_fails_the_command_too(board, farshift):
    page = board.path / "site" / "index.html"
    page.write_text(re.sub('content="Farshift [^"]*"', 'content="Farshift 0.0"', page.read_text()))
    done = farshift("board", "verify", board.path)
    assert done.returncode == 1
    assert "2 entries: 2 verified, 1 not recomputed" in done.stdout
    assert "not recomputed: site: its pages were written by Farshift 0.0, this is" in done.stdout


def rewritten(board: Board) -> Board:
    """The same board with its first submission's team another, signed with the same key: everything fits."""
    key = (board.path / "private" / "key.pem").read_bytes()
    file = next((board.path / "submissions").iterdir()).read_bytes()
    place = board.path.with_name("rewritten")
    (place / "private").mkdir(parents=True, mode=0o700)
    (place / "private" / "key.pem").write_bytes(key)
    (place / "private" / "key.pem").chmod(0o600)
    again = Board.init(place, "A test board")
    (place.parent / "again.zip").write_bytes(file)
    withdrawn, _ = submit(again, place.parent / "again.zip")
    withdraw(again, withdrawn[0], "it was too good")
    return again


@pytest.mark.attack("operator", "a history rewritten with the same key")
def test_a_history_rewritten_with_the_same_key_is_refused_by_who_saw_the_first(board, exported, tmp_path, cache):
    assert verify_at(str(exported)).whole
    copy = export(rewritten(board), tmp_path / "copy").out
    (found,) = verify_at(str(copy)).differences
    assert "the history was rewritten from record 0 on: on 2" in found
    with pytest.raises(FarshiftError, match="the history was rewritten from record 0 on"), viewed(str(copy)):
        pass


@pytest.mark.attack("host", "another board, with another key, under the address of the first")
def test_an_address_that_gets_another_board_with_another_key_is_told(board, exported, tmp_path, cache):
    with servers.web(**served(exported)) as site:
        assert verify_at(site.url).whole
        other = export(Board.init(tmp_path / "other", "A test board"), tmp_path / "other export").out
        site.files = {f"/{name}": content for name, content in served(other).items()}
        (found,) = verify_at(site.url).differences
    assert f"has the key {Board(tmp_path / 'other').ledger.key}, and had {board.ledger.key} when" in found


def served(place: Path) -> dict[str, bytes]:
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.attack("operator", "a history rewritten with the same key")
def test_a_witness_signs_what_it_saw_and_holds_the_board_to_it(board, exported, tmp_path, monkeypatch):
    file = tmp_path / "seen.checkpoint"
    with opened(str(exported)) as copy:
        _, told = witness(copy, tmp_path / "witness.pem", file, "example.org/w")
    assert file.read_text().splitlines()[:2] == [f"farshift-board/{board.ledger.key}", "4"]
    known = {"witness": [file], "witness_key": [told]}
    found = verify_at(str(exported), **known)
    assert found.whole
    assert found.notes[-1].startswith(f"{file}: example.org/w saw 4 records at 2")
    withdraw(board, board.standings()[0].entry, "a bug")
    assert verify_at(str(board.path), **known).differences == []
    with opened(str(board.path)) as copy:
        assert witness(copy, tmp_path / "witness.pem", file, "example.org/w")[0].size == 5
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "who never looked"))
    assert f"{file} is of 5 records, and the ledger has 4" in verify_at(str(exported), **known).differences[0]
    forged = rewritten(board)
    (found,) = verify_at(str(forged.path), **known).differences
    assert "the first 5 records are not those that were witnessed: the history was rewritten" in found
    with pytest.raises(FarshiftError, match="not signed: .* the history was rewritten"):
        witness(forged, tmp_path / "witness.pem", file)


def test_a_record_that_is_later_than_the_witness_who_saw_it_is_named(board, tmp_path):
    file = tmp_path / "seen.checkpoint"
    made = cosigned(checkpoint(board), create_key(tmp_path / "witness.pem"), "w", 1_000_000_000)
    file.write_text(made.note())
    told = verifier_key("w", COSIGNATURE, create_key(tmp_path / "witness.pem").public)
    (found,) = verify_at(str(board.path), witness=[file], witness_key=[told]).differences
    assert found == f"{file} was signed at 2001-09-09T01:46:40Z, and record 0 in it is of a later time"


@pytest.mark.attack("operator", "a forged witness's checkpoint")
def test_a_checkpoint_that_was_changed_or_is_of_another_is_refused(board, tmp_path):
    file = tmp_path / "seen.checkpoint"
    made, told = witness(board, tmp_path / "witness.pem", file)
    other = witness(board, tmp_path / "other.pem", tmp_path / "other.checkpoint")[1]
    with pytest.raises(BadData, match="is not signed with a key that was given"):
        verify_at(str(board.path), witness=[file], witness_key=[other])
    with pytest.raises(BadData, match="is not a key as NAME"):
        verify_at(str(board.path), witness=[file], witness_key=["witness+00+AA"])
    file.write_text(made.note().replace("\n4\n", "\n3\n"))
    with pytest.raises(BadData, match="signature by witness is wrong"):
        verify_at(str(board.path), witness=[file], witness_key=[told])
    for bad in ("", "x\n\n", "x\ny\nz\n\n— a b\n", "x\n1\n" + "A" * 43 + "=\n\n— a ?\n", "x" * (1 << 17)):
        with pytest.raises(BadData, match="is not a checkpoint|not one"):
            read_checkpoint(bad.encode(), "it")


def test_a_board_signs_its_own_checkpoint(board):
    made = checkpoint(board)
    read = read_checkpoint(made.note().encode(), "it")
    assert read == made
    assert made.root == merkle_root([bytes.fromhex(record.hash) for record in board.records()])


def test_notes_are_those_of_other_programs():
    """The example of the signed-note specification (C2SP)."""
    key = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
    line = "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM="
    signature = Signature("example.com/foo", b64decode(line))
    note = Checkpoint("", 0, b"", "This is an example message.\n", (signature,))
    assert signed_with(note, key) == signature
    with pytest.raises(BadData, match="is wrong"):
        signed_with(Checkpoint("", 0, b"", "This is another message.\n", (signature,)), key)


def test_a_merkle_root_is_that_of_the_standard():
    """RFC 6962, section 2.1, by its recursion."""

    def recursive(leaves: list[bytes]) -> bytes:
        if len(leaves) < 2:
            return sha256(b"\0" + leaves[0]).digest() if leaves else sha256().digest()
        k = 1 << (len(leaves) - 1).bit_length() - 1
        return sha256(b"\1" + recursive(leaves[:k]) + recursive(leaves[k:])).digest()

    for count in range(34):
        leaves = [bytes([number]) for number in range(count)]
        assert merkle_root(leaves) == recursive(leaves)


def test_outsiders_draw_the_tables_and_pages_of_an_export_as_the_board_does(board, exported, tmp_path, cache):
    due = take_snapshot(board).record()
    zipped = shutil.make_archive(str(tmp_path / "export"), "zip", tmp_path, "export")
    with servers.web(
        **served(exported), **{f"site/{name}": one for name, one in served(board.path / "site").items()}
    ) as site:
        for place in (str(exported), zipped, site.url):
            with viewed(place) as view:
                assert take_snapshot(view).record() == due
                page = build(view, tmp_path / "pages" / Path(place).name)
                assert served(page.parent) == served(board.path / "site")
                publish(take_snapshot(view), "csv", tmp_path / "table.csv")
            assert verify_at(place, pages=str(page.parent)).whole
        page.write_text(page.read_text().replace("2 entries", "3 entries"))
        (found,) = verify_at(zipped, pages=str(page.parent)).differences
        assert "index.html shows something else than the ledger gives" in found
        assert verify_at(site.url, pages=f"{site.url}/site").whole
    assert unlike(take_snapshot(board), "csv", tmp_path / "table.csv") == []
    text = (tmp_path / "table.csv").read_text()
    (tmp_path / "table.csv").write_text(text.replace("good", "best"))
    (wrong,) = unlike(take_snapshot(board), "csv", tmp_path / "table.csv")
    assert "is not what the board gives at record 3" in wrong


def test_the_models_that_tables_are_compared_with_are_in_an_export(board, tmp_path, cache):
    (board.path / "settings.toml").write_text('[baselines]\n"modadd97/xi35" = "good"\n')
    reference(board, [one.entry for one in board.standings()])
    with viewed(str(export(board, tmp_path / "export").out)) as view:
        assert take_snapshot(view).views[0].baseline == "good"


@pytest.mark.attack("host", "archives passed off as exports")
def test_an_archive_that_is_no_export_is_refused(exported, tmp_path):
    (tmp_path / "x.zip").write_bytes(b"PK nothing")
    with pytest.raises(BadData, match="is no zip file"):
        verify_at(str(tmp_path / "x.zip"))
    with zipfile.ZipFile(tmp_path / "y.zip", "w") as file:
        file.writestr("readme", "hello")
    with pytest.raises(BadData, match="holds no export of a board"):
        verify_at(str(tmp_path / "y.zip"))
    with zipfile.ZipFile(tmp_path / "z.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("board.toml", "x" * (1 << 17))
    with pytest.raises(BadData, match="has 131072 bytes; at most 65536 are taken"):
        verify_at(str(tmp_path / "z.zip"))


@pytest.mark.attack("disk", "a forged or damaged note of what was verified before")
def test_a_verification_goes_on_where_one_was_cut_off_and_trusts_no_file_blindly(board, monkeypatch, cache):
    shutil.rmtree(board.path / "site")
    shutil.rmtree(board.path / "derived")
    assert (verify(board).before, verify(board).before, verify(board, fresh=True).before) == (0, 1, 0)
    (kept,) = (cache / "boards" / "computed").iterdir()
    good = kept.read_bytes()
    content = json.loads(good.partition(b"\n")[2])
    content["runs"]["0"]["score"] = "0" * 64
    kept.write_bytes(good.partition(b"\n")[0] + b"\n" + json.dumps(content).encode())
    assert verify(board).before == 0, "a file that was changed is computed again"
    assert kept.read_bytes() == good
    monkeypatch.setattr(recomputing, "code_digest", lambda: "another version")
    assert verify(board).before == 0, "another version computes for itself"


@pytest.mark.slow
def test_several_processes_verify_as_one_does(board, runs, tmp_path, cache, monkeypatch):
    monkeypatch.setattr("farshift.leaderboard.operations.verify_entries.MANY", 1)
    submit(board, pack(runs[2:], tmp_path / "s.zip", team="them"))
    shutil.rmtree(board.path / "site")
    assert verify(board, workers=2) == verify(board, fresh=True)
    assert verify(board, workers=2).before == 2
