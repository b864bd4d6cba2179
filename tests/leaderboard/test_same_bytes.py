"""A board's site and exports are the same bytes from another folder, locale, time zone, and order of hashes."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

ELSEWHERE = f"""
import contextlib, locale, sys, time
sys.path.insert(0, {str(TESTS)!r})
with contextlib.suppress(locale.Error):
    locale.setlocale(locale.LC_ALL, "")
time.tzset()
"""

MAKE = """
import hashlib
from made_tables import entry, snapshot
from farshift.leaderboard.exports import exported, formats
from farshift.leaderboard.publish.site import Site

kinds = {"modadd97/xi35": "corrupted-label", "scan/length": "length"}
made = [
    entry(f"IBIS-{k} ıi", 0.3 + 0.1 * k, on, team="Éire" if k else "us", kind=kind, groups={"left": 0.5, "right": 0.6})
    for k in range(3)
    for on, kind in kinds.items()
]
board = snapshot(made, baseline="IBIS-0 ıi")
files = dict(Site(board).rendered())
for form in formats():
    given = {"dataset": "somebody/shifts", "source": "https://example.org/board"} if form == "hf" else None
    files |= {f"{form}/{name}": content for name, content in exported(board, form, given).items()}
for name, content in files.items():
    print(hashlib.sha256(content).hexdigest(), ascii(name))
"""

PLACES = {
    "Turkish": {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "1"},
    "German": {"LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de", "TZ": "America/St_Johns", "PYTHONHASHSEED": "4242"},
}


@pytest.fixture(scope="module")
def here() -> list[str]:
    """The digests of all files of the board, made in this process, in the order that they were made in."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(MAKE, {})
    return said.getvalue().splitlines()


@pytest.mark.parametrize("place", ["Turkish", pytest.param("German", marks=pytest.mark.slow)])
def test_a_board_is_the_same_bytes_wherever_it_is_made(tmp_path, place, here):
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE + MAKE],
        cwd=tmp_path,
        env={**os.environ, **PLACES[place]},
        check=True,
        capture_output=True,
        text=True,
    )
    assert len(here) > 30
    assert done.stdout.splitlines() == here
