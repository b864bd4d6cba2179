"""Answers to a sealed draw, and the export of a window that is over, damaged: named, and never taken or believed."""

from __future__ import annotations

import io
import zipfile
import zlib

import pytest
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.sealed.submit import submit_answers
from fuzz.draw import Draw
from fuzz.folders import bound, failures, few_and_many, outcome_of, verified
from sealed_cases import WINDOW, kinds

pytestmark = pytest.mark.attack("entrant", "hundreds of damaged sealed answers and exports of windows")


def members(archive: bytes) -> dict[str, bytes] | None:
    """What the files of a zip hold, by name; None where it cannot be read."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as result:
            return {name: result.read(name) for name in result.namelist()}
    except (zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, RuntimeError, EOFError, OSError, KeyError):
        return None


@few_and_many(8)
def test_damaged_answers_are_refused_and_the_good_ones_taken_afterwards(opened, clock, handed, tmp_path, cases, name):
    good, before = handed.answers["ann"].read_bytes(), kinds(opened)
    file = tmp_path / "damaged.zip"

    def look() -> str:
        submit_answers(opened, WINDOW, file, clock=clock)
        return "FAILED\nit was taken"

    refused = 0
    for case in range(cases):
        draw = Draw(f"{name}/{case}")
        file.write_bytes(draw.damaged(good, near=draw.one([None, 400, 3000])))
        if members(file.read_bytes()) == members(good):
            continue  # nothing that the team signed: a file's date or rights in the archive
        result = outcome_of(look)
        assert result == "refused", f"case {case}: {result}"
        refused += 1
    assert refused > cases // 2, "the damage is to what was signed"
    assert kinds(opened) == before, "nothing of it is in the ledger"
    submit_answers(opened, WINDOW, handed.answers["ann"], clock=clock)


@few_and_many(8, 2)
def test_damaged_exports_of_a_window_that_is_over_are_named(revealed, decoded_once, tmp_path, cases, name):
    position = export_board(revealed, tmp_path / "export").out
    full = bound(position)
    failed, seen = failures(position, cases, name, lambda: verified(position, full))
    assert failed == {}
    assert {"named", "refused", "says the same"} >= seen >= {"named"}
