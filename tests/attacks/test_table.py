"""The table of attacks: nothing that was lost or never ran is called held."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from attacks.table import Attack, table

ROOT = Path(__file__).parent.parent.parent

ATTACKS = """
import pytest

@pytest.mark.attack("entrant", "a copy of the first")
@pytest.mark.parametrize("case", [1, 2, 3])
def test_copies(case):
    assert case < LIMIT

@pytest.mark.attack("disk", "a full one")
def test_full():
    pytest.skip("no such file system here")
"""


def ran(folder: Path, limit: int, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_them.py").write_text(ATTACKS.replace("LIMIT", str(limit)))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = attack(who, what): one\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "attacks.table", "-p", "no:cacheprovider", *options, "."]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(("limit", "state", "options"), [(9, "held", ()), (3, "BROKEN", ("-n", "2"))])
def test_an_attack_is_held_where_every_case_is(tmp_path, limit, state, options):
    """In one process, and in two that each ran some cases."""
    done = ran(tmp_path, limit, *options)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["entrant", "a", "copy", "of", "the", "first", "3", state] in lines
    assert ["disk", "a", "full", "one", "1", "not", "run"] in lines
    assert (done.returncode == 0) == (state == "held")
    assert ("1 of 2 attacks held" in done.stdout) == (state == "held")


def test_a_lost_case_counts_more_than_any_number_that_held():
    assert Attack("host", "x", ("passed", "failed", "passed")).state == "BROKEN"
    assert Attack("host", "x", ("skipped",)).state == "not run"
    assert table([Attack("disk", "y", ("passed",)), Attack("entrant", "z", ("passed",))])[1].startswith("entrant")
