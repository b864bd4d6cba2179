"""A board whose files lie in an object store: a real server that speaks S3, and PostgreSQL between two machines."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import s3
from farshift import FarshiftError
from farshift.core.errors import Unavailable
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.storage.board_files import list_named_files
from farshift.leaderboard.submission.pack import pack_runs
from test_board import KILLED

pytestmark = pytest.mark.usefixtures("remembered")


@pytest.fixture(scope="module")
def stores():
    with s3.storing() as running:
        yield running


@pytest.fixture(scope="module")
def file(runs, tmp_path_factory) -> Path:
    return pack_runs(runs[:2], tmp_path_factory.mktemp("packed") / "both.zip")


@pytest.fixture
def kept(stores, tmp_path) -> Board:
    """A board whose ledger lies in its folder, its files in a store."""
    return Board.init(tmp_path / "kept", "In a store", files=stores.bucket())


@pytest.fixture(scope="module")
def filled(stores, file, tmp_path_factory) -> Board:
    """Such a board with two entries, for tests that leave it as it is."""
    board = Board.init(tmp_path_factory.mktemp("shown") / "board", "In a store", files=stores.bucket())
    assert submit_runs(board, file)[1]
    return board


def without_copies(board: Board, folder: Path) -> Board:
    """A board from a folder that has no copies of the files in the store."""
    copied = shutil.copytree(board.path, folder, ignore=shutil.ignore_patterns("submissions", "scores", "derived"))
    return Board(copied)


def named(board: Board) -> list[str]:
    return sorted(list_named_files(board.records()))


def test_what_is_entered_lies_in_the_store_and_verifies_from_there(filled, stores, tmp_path):
    assert stores.files(filled.objects.url) == named(filled) != []
    bare = without_copies(filled, tmp_path / "bare")
    assert [item.entry for item in bare.standings()] == [item.entry for item in filled.standings()]
    result = verify_board(bare)
    assert (result.verified, result.differences, result.not_recomputed) == (2, [], [])


def test_an_export_and_its_card_do_not_say_where_the_files_lay(filled, file, tmp_path):
    export_board(without_copies(filled, tmp_path / "bare"), tmp_path / "out")
    assert (
        tmp_path / "out" / "submissions" / f"{filled.standings()[0].submission}.zip"
    ).read_bytes() == file.read_bytes()
    assert "files" not in tomllib.loads((tmp_path / "out" / "board.toml").read_text())


@pytest.mark.attack("host", "a stored object that the ledger names, replaced or removed")
def test_verification_reads_the_store_and_not_the_copies_of_the_folder_and_tells_what_no_record_names(filled, stores):
    first, last, *_ = named(filled)
    stray = "scores/0123456789abcdef/4.json"
    before = {path: (filled.path / path).read_bytes() for path in (first, last)}
    try:
        for path, content in ((first, b"another"), (last, None), (stray, b"{}")):
            stores.overwrite(filled.objects.url, path, content)
        output = verify_board(filled).differences
    finally:
        for path, content in (before | {stray: None}).items():
            stores.overwrite(filled.objects.url, path, content)
    assert f"{first} was changed: its sha256 differs from the ledger's" in output
    assert f"{last} is missing" in output
    assert f"{stray} is not named in any record" in output


@pytest.mark.parametrize("place", ["ledger", pytest.param("publish", marks=pytest.mark.slow)])
def test_a_submit_that_is_killed_leaves_all_or_nothing_in_the_store(kept, file, stores, place, python):
    plain = {name: value for name, value in os.environ.items() if name not in stores.environment}
    done = python.run("-c", KILLED, kept.path, file, place, json.dumps(stores.environment), env=plain)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(stores.files(kept.objects.url)) == 3, "the files are there before the record is"
    assert len(kept.standings()) == (2 if place == "publish" else 0)
    assert stores.files(kept.objects.url) == named(kept)
    assert submit_runs(kept, file)[1] is (place == "ledger")
    assert verify_board(kept).differences == []


def test_a_store_that_does_not_answer_leaves_the_ledger_as_it_was(kept, file, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    board = Board(kept.path)
    with pytest.raises(Unavailable, match=r"s3://.* cannot be reached: ") as output:
        submit_runs(board, file)
    assert "not-to-be-seen" not in str(output.value)
    assert len(board.records()) == 1
    assert not (board.path / "submissions").exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("/some/folder", "use one such as s3://BUCKET/FOLDER"),
        ("https://example.org/x", "use one such as s3://BUCKET/FOLDER"),
        ("s3://", "use one such as s3://BUCKET/FOLDER"),
        ("s3://key:secret@bucket/x", "set keys in the environment"),
        ("nowhere://bucket/x", "fsspec has no driver for nowhere://"),
    ],
)
def test_another_sort_of_address_is_refused_before_anything_is_made(url, said, tmp_path):
    with pytest.raises(FarshiftError, match=said) as output:
        Board.init(tmp_path / "board", "a test", files=url)
    assert "secret" not in str(output.value)
    assert not (tmp_path / "board").exists()


def test_a_folder_of_the_store_that_is_in_use_is_not_taken(filled, tmp_path):
    with pytest.raises(FarshiftError, match="is not empty"):
        Board.init(tmp_path / "other", "another", files=filled.objects.url)


def on_another_machine(board: Board, folder: Path) -> Board:
    """The same board from a folder that has its card and its private files, and nothing else."""
    folder.mkdir()
    shutil.copy(board.path / "board.toml", folder)
    shutil.copytree(board.path / "private", folder / "private")
    return Board(folder)


@pytest.mark.slow
def test_two_machines_keep_one_board(stores, server, runs, tmp_path):
    here = Board.init(tmp_path / "here", "shared", server.database(), stores.bucket())
    there = on_another_machine(here, tmp_path / "there")
    first, same = (pack_runs(runs[:1], tmp_path / f"{note}.zip", note=note) for note in ("first", "again"))
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(submit_runs, board, file) for board, file in ((here, first), (there, first), (there, same))]
        output = [str(job.exception() or "") for job in jobs]
    refused = [item for item in output if item]
    assert refused, "one of the two files with the same run is refused"
    assert all("is the same run as entry" in item for item in refused)
    entries = [[item.entry for item in board.standings()] for board in (here, there)]
    assert entries[0] == entries[1]
    assert len(entries[0]) == 1
    assert stores.files(here.objects.url) == named(there)
    assert verify_board(there).differences == []


def test_a_writer_waits_for_one_on_another_machine(server, stores, tmp_path):
    here = Board.init(tmp_path / "here", "shared", server.database(), stores.bucket())
    there = on_another_machine(here, tmp_path / "there")
    order: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        with here.locked():
            waiting = pool.submit(lambda: _hold(there, order))
            order.append("here")
            assert not waiting.done()
        waiting.result(60)
    assert order == ["here", "there"]


def _hold(board: Board, order: list[str]) -> None:
    with board.locked():
        order.append("there")


def test_a_mistake_of_ours_is_not_called_an_absence_of_the_store(filled, monkeypatch):
    for mistake in (TypeError("ours"), KeyError("ours")):
        monkeypatch.setattr(filled.objects._files, "info", _raising(mistake))
        with pytest.raises(type(mistake), match="ours"):
            filled.objects.get("scores/x/1.json", 10)
    with pytest.raises(ValueError, match="not a valid path"):
        filled.objects.put("../outside", b"")


def _raising(error: Exception):
    def raises(*_: object, **__: object) -> None:
        raise error

    return raises
