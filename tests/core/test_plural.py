"""Messages count one thing as one."""

from __future__ import annotations

import farshift as fs
from farshift.core.text import format_count
from made_runs import ON


def test_one_is_singular_and_more_or_none_plural():
    assert [format_count(number, "entry", "entries") for number in (0, 1, 2)] == ["0 entries", "1 entry", "2 entries"]
    assert format_count(1000, "row") == "1,000 rows"


def test_replicates_of_one_seed_are_over_one_seed(tmp_path):
    run = fs.evaluate(lambda seed: lambda batch: batch["a"], on=ON, seeds=1, out=tmp_path / "run")
    assert fs.replicates(run)["replicates"] == "1 seed"
