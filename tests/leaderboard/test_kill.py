"""Kill -9 at any moment loses no record that was acknowledged, and leaves nothing half done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.attack("disk", "hundreds of times kill -9 of processes that write to a ledger")


@pytest.mark.parametrize(
    ("store", "lives"),
    [
        ("sqlite", 12),
        pytest.param("sqlite", 150, marks=pytest.mark.slow),
        pytest.param("postgresql", 150, marks=pytest.mark.slow),
    ],
)
def test_no_acknowledged_record_is_lost(store, lives, tmp_path, python, request):
    url = request.getfixturevalue("server").database() if store == "postgresql" else ""
    done = python.run(Path(__file__).parent / "killing.py", tmp_path, url, lives, lives, timeout=900)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["kills"] == lives
    assert result["acknowledged"] >= lives
