"""Verification of a window that is over: on the board, from an export, and after any change to what the board kept."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.sealed.drawing import draw_sealed_rows
from farshift.leaderboard.sealed.published import read_draw
from farshift.leaderboard.sealed.seal import make_opening_files
from farshift.leaderboard.sealed.verify import verify_sealed
from farshift.leaderboard.sealed.window import get_window_path, read_windows
from farshift.leaderboard.storage.readers import ExportReader
from sealed_cases import ON, SEED, WINDOW

pytestmark = pytest.mark.usefixtures("decoded_once")


def test_a_revealed_window_verifies_on_the_board_and_from_an_export(revealed, tmp_path):
    assert verify_board(revealed).differences == []
    export_board(revealed, tmp_path / "export")
    result = verify_board(ExportReader(tmp_path / "export"))
    assert (result.differences, result.not_recomputed) == ([], [])
    assert list((tmp_path / "export").rglob("answers/*.zip"))


@pytest.mark.parametrize("what", ["draw/draw.toml", "draw/inputs.parquet", "profile.json", "scores", "answers"])
def test_a_changed_or_missing_file_is_found(revealed, what):
    position = revealed.path / "sealed" / WINDOW / what
    path = next(iter(sorted(position.iterdir()))) if position.is_dir() else position
    content = path.read_bytes()
    path.write_bytes(content + b" ")
    assert any(path.name in line and "changed" in line for line in verify_board(revealed).differences)
    path.unlink()
    assert any(path.name in line and "missing" in line for line in verify_board(revealed).differences)


def list_folder(path: Path) -> dict[str, Path]:
    """The files of a board's folder by their paths."""
    return {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}


def changed(board, kind, **body):
    """The board's records, those of a kind with another body."""
    return [
        replace(record, body=record.body | body) if record.kind == kind else record for record in board.ledger.records()
    ]


@pytest.mark.attack("operator", "a seed other than the committed one")
def test_a_seed_other_than_the_committed_one_is_found(revealed):
    records = changed(revealed, "seed_revealed", seed="00" * 32)
    differences, _ = verify_sealed(list_folder(revealed.path), records)
    assert any("does not match the commitment" in line for line in differences)


@pytest.mark.attack("operator", "terms changed after the commitment")
def test_terms_that_were_changed_after_the_commitment_are_found(revealed):
    records = changed(revealed, "window_opened", closes="2032-01-01T00:00:00Z")
    differences, _ = verify_sealed(list_folder(revealed.path), records)
    assert any("the terms or the commitment in draw.toml differ" in line for line in differences)


@pytest.mark.attack("operator", "rows chosen by the board, with the committed seed")
def test_other_inputs_than_the_seed_gives_are_found(revealed, tmp_path):
    """A board that hands out rows of its own choice and reveals the committed seed."""
    window = read_windows(revealed.ledger.records())[WINDOW]
    benchmark = find_benchmark(ON)
    forged = make_opening_files(window.terms, SEED, draw_sealed_rows(benchmark, bytes(32)), benchmark)
    shutil.copytree(revealed.path / "sealed", tmp_path / "sealed")
    for path, content in forged.items():
        (tmp_path / path).write_bytes(content)
    digest = read_draw((tmp_path / get_window_path(WINDOW, "card")).parent).digest
    records = changed(revealed, "window_opened", inputs=digest)
    differences, _ = verify_sealed(list_folder(tmp_path), records)
    assert any("gives a draw that differs from the published one" in line for line in differences)


@pytest.mark.attack("operator", "a score that does not follow from the answers")
def test_a_score_that_the_answers_do_not_give_is_found(revealed, tmp_path):
    shutil.copytree(revealed.path / "sealed", tmp_path / "sealed")
    path = min((tmp_path / "sealed" / WINDOW / "scores").iterdir())
    path.write_text(path.read_text().replace('"accuracy@1"', '"accuracy@2"'))
    differences, _ = verify_sealed(list_folder(tmp_path), revealed.ledger.records())
    assert any("its recomputed score differs" in line for line in differences)


@pytest.mark.attack("operator", "answers accepted and never scored")
def test_records_in_an_order_that_no_board_writes_are_found(revealed):
    opening, window, answers, *_ = records = revealed.ledger.records()
    another = replace(answers, body=answers.body | {"submission": "0" * 64})
    unscored = [record for record in records if record.kind != "scored"]
    for changed_records, why in (
        ([opening, answers, window], "invalid fields"),
        ([opening, answers, window], "has a record submitted before it was opened"),
        ([*records, replace(answers, seq=99)], "has a record submitted after its seed was revealed"),
        ([opening, window, window], "was opened twice"),
        ([*records[:2], another, *records[2:]], "has more than one submission"),
        (unscored, "was never scored"),
    ):
        result = verify_sealed(list_folder(revealed.path), changed_records)[0]
        assert any(why in line for line in result), why


def test_a_window_of_a_benchmark_that_is_not_here_is_not_recomputed(revealed, monkeypatch):
    monkeypatch.delenv("FARSHIFT_PATH")
    differences, not_recomputed = verify_sealed(list_folder(revealed.path), revealed.ledger.records())
    assert differences == []
    assert len(not_recomputed) == 1
    assert "no benchmark named 'coins/longer'" in not_recomputed[0]
    assert "set FARSHIFT_PATH" in not_recomputed[0]


@pytest.mark.attack("disk", "a flipped byte in the scores of a sealed window")
def test_one_flipped_byte_of_a_sealed_score_is_named_in_a_line(revealed, decoded_once):
    file = sorted(revealed.path.glob("sealed/*/scores/*.json"))[0]
    content = bytearray(file.read_bytes())
    content[0] ^= 0x80
    file.write_bytes(content)
    name = file.relative_to(revealed.path).as_posix()
    assert verify_board(revealed).differences == [f"{name} was changed: its sha256 differs from the ledger's"]
