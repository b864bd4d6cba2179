"""Verification finds every change: in a board's folder, in an export of it, and behind a URL."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import servers
import tomli_w
from farshift import FarshiftError
from farshift.benchmarks.benchmark import SCORER, find_benchmark
from farshift.cli import app
from farshift.core.errors import Unavailable
from farshift.leaderboard.board import Board
from farshift.leaderboard.exports import list_differences, write_export
from farshift.leaderboard.ledger.record import read_line
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.submit import declare_references, submit_runs, withdraw_entry
from farshift.leaderboard.operations.verify import verify_at, verify_board
from farshift.leaderboard.publish.site import build_site
from farshift.leaderboard.storage.board_files import compute_digests
from farshift.leaderboard.storage.readers import ExportReader, UrlReader, open_board_view
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.tables.snapshot import take_snapshot
from farshift.loaders.files import http
from newer_scorer import newer_scorer
from remembering import remembering
from typer.testing import CliRunner


@pytest.fixture(scope="module")
def made(runs, tmp_path_factory) -> Path:
    """A board with three entries, one of them withdrawn; tests take a copy."""
    folder = tmp_path_factory.mktemp("made")
    board = Board.init(folder / "board", "A test board")
    with remembering():
        entries, _ = submit_runs(board, pack_runs(runs, folder / "s.zip", team="us"))
    withdraw_entry(board, entries[2], "a bug")
    return board.path


@pytest.fixture
def board(made, remembered, tmp_path):
    return Board(shutil.copytree(made, tmp_path / "board"))


@pytest.fixture
def exported(board, tmp_path) -> Path:
    return export_board(board, tmp_path / "export").out


def differences(place: Path | str, **known: str) -> list[str]:
    result = verify_at(str(place), **known)
    assert result.not_recomputed == []
    return result.differences


def score_files(place: Path) -> list[Path]:
    return sorted((place / "scores").glob("*/*.json"))


def lines(place: Path) -> list[bytes]:
    return (place / "ledger.jsonl").read_bytes().splitlines(keepends=True)


def with_lines(place: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    (place / "ledger.jsonl").write_bytes(b"".join(change(lines(place))))


def test_an_export_verifies_and_holds_no_secret(board, exported):
    result = verify_at(str(exported))
    here = verify_board(board)
    assert result == here
    assert result.differences == result.not_recomputed == []
    assert (result.entries, result.records) == (3, 6)
    assert result.head == board.ledger.records()[-1].hash
    names = {path.name for path in exported.iterdir()}
    assert names == {"board.toml", "ledger.jsonl", "scores", "submissions"}
    assert [read_line(line.rstrip(b"\n")) for line in lines(exported)] == board.ledger.records()
    assert b"store" not in (exported / "board.toml").read_bytes()
    with pytest.raises(FarshiftError, match="is an export of a board"):
        Board(exported)


def test_an_export_is_brought_up_to_date_and_overwrites_nothing_else(board, exported, tmp_path):
    again = export_board(board, exported)
    assert (again.files, again.new) == (4, 0)
    next(iter(score_files(exported))).unlink()
    assert export_board(board, exported).new == 1
    assert differences(exported) == []
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.tex").write_text("mine")
    with pytest.raises(FarshiftError, match="contains other files than an export of this board .thesis.tex."):
        export_board(board, tmp_path / "used")
    other = Board.init(tmp_path / "other", "another")
    with pytest.raises(FarshiftError, match="contains other files than an export of this board"):
        export_board(other, exported)
    score_files(board.path)[0].write_text("{}")
    with pytest.raises(FarshiftError, match="is missing or was changed: run farshift board verify"):
        export_board(board, tmp_path / "new")


def score_changed(place: Path) -> None:
    file = score_files(place)[0]
    record = json.loads(file.read_text())
    record["ood"]["value"] = 0.999
    file.write_text(json.dumps(record))


def scores_swapped(place: Path) -> None:
    first, second, _ = score_files(place)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def score_added(place: Path) -> None:
    shutil.copytree(score_files(place)[0].parent, place / "scores" / "0123456789abcdef")


def submission_changed(place: Path) -> None:
    file = next((place / "submissions").iterdir())
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


FILES = {
    "a score was changed": (score_changed, [".json was changed: its sha256 differs from the ledger's"]),
    "two scores were swapped": (scores_swapped, [".json was changed"] * 2),
    "a score is gone": (lambda place: score_files(place)[0].unlink(), [".json is missing"]),
    "a score was added": (score_added, [f"scores/0123456789abcdef/{SCORER}.json is not named in any record"]),
    "a submission was changed": (submission_changed, [".zip was changed: its sha256 differs from the ledger's"]),
    "a submission is gone": (lambda place: shutil.rmtree(place / "submissions"), [".zip is missing"]),
}


@pytest.mark.attack("disk", "a changed byte in a file of a board")
@pytest.mark.parametrize("what", FILES)
@pytest.mark.parametrize("where", ["board", "export"])
def test_every_changed_file_is_named(board, exported, what, where):
    position = board.path if where == "board" else exported
    tamper, complaints = FILES[what]
    tamper(position)
    result = differences(position)
    assert len(result) == len(complaints), result
    assert all(complaint in item for complaint, item in zip(complaints, result, strict=True)), result


def test_a_link_to_another_file_is_no_file_of_a_board(exported, tmp_path):
    file = score_files(exported)[0]
    shutil.move(file, tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    assert any("is missing" in item for item in differences(exported))


LEDGER = {
    "a record was removed": (lambda r: [*r[:2], *r[3:]], "record 2 is missing before record 3"),
    "a line is not a record": (lambda r: [*r[:3], b"{}\n", *r[4:]], "ledger.jsonl: line 4 is not a record"),
    "the last line is cut off": (lambda r: [*r[:-1], r[-1][:-9]], "ledger.jsonl: the last line is incomplete"),
    "everything was removed": (lambda r: [], "does not begin with the board's opening"),
    "the scores were cut off": (lambda r: r[:2], "was submitted but never scored"),
    "the submission was cut off": (lambda r: r[:1], ".zip is not named in any record"),
}


@pytest.mark.attack("host", "an edited export of a ledger")
@pytest.mark.parametrize("what", LEDGER)
def test_every_change_of_an_exported_ledger_is_named(exported, what):
    change, complaint = LEDGER[what]
    with_lines(exported, change)
    result = differences(exported)
    assert any(complaint in item for item in result), result


@pytest.mark.attack("operator", "removal of the last records")
def test_records_that_were_cut_off_are_found_with_a_head_from_an_earlier_look(exported, monkeypatch, tmp_path):
    head = verify_at(str(exported)).head
    assert differences(exported, head=head) == []
    with_lines(exported, lambda records: records[:-1])
    (result,) = differences(exported)
    assert "the ledger has 5 records, but on 2" in result
    assert "this user saw 6: the last records were removed, or this is an older copy" in result
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "who never looked"))
    assert differences(exported) == [], "the withdrawal is gone, and nothing says so"
    assert any(f"no record has the given hash {head}" in item for item in differences(exported, head=head))


def forged(exported: Path, made: Path, tmp_path: Path) -> Path:
    """The same board, rewritten and signed with another key: everything in it fits."""
    other = Board.init(tmp_path / "forged", "A test board")
    (file,) = (made / "submissions").iterdir()
    submit_runs(other, file)
    return export_board(other, tmp_path / "forged-export").out


@pytest.mark.attack("host", "another board, with another key, at the address of the first")
def test_a_board_signed_with_another_key_is_told_by_the_key_from_an_earlier_look(board, exported, made, tmp_path):
    copy = forged(exported, made, tmp_path)
    assert differences(copy) == []
    assert any("this is another board, or a forged copy" in item for item in differences(copy, key=board.ledger.key))
    shutil.copy(exported / "board.toml", copy / "board.toml")
    result = differences(copy, key=board.ledger.key)
    assert f"no record is signed by the board's key {board.ledger.key}" in result
    assert any("but the board was opened with" in item for item in result)


def test_a_card_without_a_good_key_verifies_nothing(exported):
    (exported / "board.toml").write_text(tomli_w.dumps({"format": 2, "name": "x", "opened": "x", "key": "none"}))
    assert "no record is signed by the board's key none" in differences(exported)


def submitted(board: Board) -> dict:
    return board.ledger.records()[1].body


SIGNED = {
    "a score that the predictions do not give": (
        lambda board: resubmitted(board, score=lambda record: record | {"ood": record["ood"] | {"value": 0.5}}),
        "its recomputed score differs from the ledger",
    ),
    "another team than the submission's": (
        lambda board: resubmitted(board, body={"team": "me"}),
        "its team is 'me' in the ledger but 'us' in the submission",
    ),
    "another name of the model": (
        lambda board: resubmitted(board, item={"model": "better"}),
        "its model is 'better' in the ledger but 'good' in the submission",
    ),
    "another name of the entry": (
        lambda board: resubmitted(board, entry="0123456789abcdef"),
        "its name does not match its submission, run and identity",
    ),
    "a submission without runs": (
        lambda board: board.ledger.append([("submitted", {"submission": "x"})]),
        "(submitted) has missing or invalid fields (entries)",
    ),
    "an entry a second time": (
        lambda board: board.ledger.append([("submitted", submitted(board))]),
        " again",
    ),
    "a score of no entry": (
        lambda board: board.ledger.append(
            [("scored", {"entry": "0" * 16, "entry_identity": "0" * 64, "scorer": SCORER, "files": {}})]
        ),
        "refers to 0000000000000000, which was never submitted",
    ),
    "a removal without a reason": (
        lambda board: board.ledger.append([("removed", {"entry": submitted(board)["entries"][0]["entry"]})]),
        "(removed) has missing or invalid fields (reason)",
    ),
    "a withdrawal twice": (
        lambda board: board.ledger.append([("withdrawn", board.ledger.records()[-1].body)]),
        "which was already withdrawn",
    ),
    "a file outside the board": (
        lambda board: board.ledger.append([("window_opened", {"window": "w", "files": {"../../etc/passwd": "0" * 64}})]),
        "names '../../etc/passwd', which is not a valid path for a board's file",
    ),
    "another file in the place of one": (
        lambda board: board.ledger.append([("window_opened", {"window": "w", "files": dict.fromkeys(submitted(board)["files"], "0" * 64)})]),
        "than an earlier record",
    ),
    "files that are none": (
        lambda board: board.ledger.append([("window_opened", {"window": "w", "files": ["scores/x"]})]),
        "files is not a mapping",
    ),
    "a second opening": (
        lambda board: board.ledger.append([("opened", {"name": "again", "key": board.ledger.key})]),
        "opens the board again",
    ),
}  # fmt: skip


def resubmitted(board, score=dict, body=None, item=None, entry=""):
    """Rewrite the board with its own key, one thing in its first entry being another: what a dishonest board can do."""
    records = board.ledger.records()
    card = board.card
    output = json.loads(json.dumps(records[1].body)) | (body or {})
    first = output["entries"][0]
    content = (board.path / "scores" / first["entry"] / f"{SCORER}.json").read_bytes()
    content = json.dumps(score(json.loads(content)), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    name = entry or first["entry"]
    scored = {"entry": name, "entry_identity": records[2].body["entry_identity"], "scorer": SCORER}
    output["entries"] = [first | (item or {}) | {"entry": name}]
    zipped = {path: (board.path / path).read_bytes() for path in output["files"]}
    shutil.rmtree(board.path / "scores")
    (board.path / "ledger.sqlite").unlink()
    shutil.move(board.path / "private", board.path.parent / "kept")
    (board.path / "board.toml").unlink()
    shutil.rmtree(board.path)
    board.path.mkdir()
    shutil.move(board.path.parent / "kept", board.path / "private")
    again = Board.init(board.path, card["name"])
    files = {f"scores/{name}/{SCORER}.json": content}
    again.enter([("submitted", output), ("scored", scored | {"files": compute_digests(files)})], zipped | files)


@pytest.mark.attack("operator", "false scores, teams and names with a valid signature")
@pytest.mark.parametrize("what", SIGNED)
def test_what_a_dishonest_board_signs_is_found_too(board, what):
    tamper, complaint = SIGNED[what]
    tamper(board)
    result = verify_at(str(board.path)).differences
    assert any(complaint in item for item in result), result


def test_an_entry_of_an_unknown_benchmark_is_said_not_to_be_recomputed(board, monkeypatch):
    known = {"scan/length": find_benchmark("scan/length")}
    monkeypatch.setattr("farshift.leaderboard.operations.verify.load_benchmarks", lambda: known)
    result = verify_board(board)
    assert result.differences == []
    assert (result.verified, result.entries_not_recomputed, len(result.not_recomputed)) == (1, 2, 1)
    (line,) = result.not_recomputed
    assert "and 1 other entry: benchmark modadd97/xi35 is not defined here" in line
    assert "set FARSHIFT_PATH to the folder that defines it" in line


def test_data_that_cannot_be_had_is_no_difference(board, monkeypatch):
    def unavailable(*_: object) -> None:
        raise Unavailable("no network")

    monkeypatch.setattr("farshift.leaderboard.operations.verify.validate_submission", unavailable)
    result = verify_board(board)
    assert result.differences == []
    assert result.entries_not_recomputed == 3
    assert len(result.not_recomputed) == 1
    assert "and 2 other entries: no network" in result.not_recomputed[0]


def served(place: Path) -> dict[str, bytes]:
    files = [path for path in place.rglob("*") if path.is_file()]
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in files}


def test_an_export_behind_a_url_is_verified_from_there(board, exported, cache):
    with servers.web(**{f"boards/ours/{name}": content for name, content in served(exported).items()}) as site:
        result = verify_at(f"{site.url}/boards/ours/")
    assert result == verify_at(str(exported))
    assert {path for path, _ in site.requests} == {f"/boards/ours/{name}" for name in served(exported)}


@pytest.mark.attack("host", "other files at the address of an export")
def test_a_url_with_other_files_is_found_out(board, exported, cache, monkeypatch):
    files = served(exported)
    gone, other = sorted(name for name in files if name.startswith("scores"))[:2]
    with servers.web(**files | {other: b"{}"}) as site:
        del site.files[f"/{gone}"]
        result = verify_at(site.url).differences
        changed, absent = sorted(result, key=lambda one: "404" in one)
        assert changed == f"{other} was changed: its sha256 differs from the ledger's"
        assert absent.startswith(f"{gone} could not be read: ")
        site.files["/board.toml"] = b"x" * (1 << 17)
        with pytest.raises(FarshiftError, match="answered with over 65536 bytes"):
            verify_at(site.url)
        site.files["/board.toml"] = b"<html>"
        with pytest.raises(FarshiftError, match=f"^{site.url} is not a Farshift board: {site.url}/board.toml is not"):
            verify_at(site.url)
        with pytest.raises(FarshiftError, match=f"^{site.url}/a is not a Farshift board: .*/a/board.toml: .* 404"):
            verify_at(f"{site.url}/a")
    with pytest.raises(FarshiftError, match="a board is a folder, or a URL with http"):
        verify_at("ftp://example.org/board")


@pytest.mark.attack("host", "an export that writes outside its folder")
@pytest.mark.parametrize("path", ["../outside.txt", "scores/../../outside.txt", "private/key.pem", "/etc/hostname"])
def test_a_copy_gives_nothing_from_elsewhere(board, exported, cache, tmp_path, path):
    (tmp_path / "outside.txt").write_text("not the board's")
    with servers.web(**served(exported)) as site:
        site.files |= {f"/{path}": b"x", "/outside.txt": b"x"}
        copies = [board, ExportReader(exported), UrlReader(site.url, tmp_path / "fetched" / "here")]
        assert [copy.file(path) for copy in copies] == [None] * 3
    assert (tmp_path / "outside.txt").read_text() == "not the board's"


@pytest.mark.attack("host", "an endless export")
def test_no_more_is_fetched_in_all_than_a_stranger_may_send(exported, cache, monkeypatch):
    monkeypatch.setattr("farshift.leaderboard.storage.readers.MAX_FETCHED", 20_000)
    with servers.web(**served(exported)) as site:
        result = verify_at(site.url).differences
    assert any("more than 20000 bytes in total" in item for item in result), result


def test_a_connection_that_breaks_is_asked_again(exported, cache, monkeypatch):
    monkeypatch.setattr("farshift.core.retry.PAUSE", 0.01)
    with servers.web(**served(exported)) as site:
        site.faults = {"/ledger.jsonl": ["500", "cut", "cut"], "/board.toml": ["429"]}
        assert verify_at(site.url).differences == []


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
    assert result.entries_not_recomputed == 3
    assert done.exit_code == 1
    assert "3 entries: 0 verified, 3 not recomputed" in " ".join(done.output.split())


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
    assert "differs from the board's export at record 5" in wrong


def test_the_models_that_tables_are_compared_with_are_in_an_export(board, tmp_path, cache):
    (board.path / "settings.toml").write_text('[baselines]\n"modadd97/xi35" = "good"\n')
    declare_references(board, [item.entry for item in board.standings()])
    with open_board_view(str(export_board(board, tmp_path / "export").out)) as view:
        assert take_snapshot(view).views[0].baseline == "good"


@pytest.mark.slow
def test_several_processes_verify_as_one_does(runs, tmp_path, cache, monkeypatch):
    monkeypatch.setattr("farshift.leaderboard.operations.verify.MANY", 1)
    board = Board.init(tmp_path / "two", "Two submissions")
    for name, some in (("us", runs[:2]), ("them", runs[2:])):
        submit_runs(board, pack_runs(some, tmp_path / f"{name}.zip", team=name))
    assert verify_board(board, workers=2) == verify_board(board)


def test_a_proxy_that_cannot_be_used_is_one_line(monkeypatch):
    monkeypatch.setattr(http, "_clients", {})
    monkeypatch.setenv("ALL_PROXY", "bogus://proxy")
    with pytest.raises(Unavailable, match=r"^http://board\.example/board\.toml cannot be reached: .*proxy"):
        verify_at("http://board.example")
