"""docs/statistics.md: what it says is covered, was simulated and lies within its goal; and simulated again, still does."""

from __future__ import annotations

from math import sqrt

import pytest
from simulation.aggregate import report
from simulation.run import PAGE, ROOMS, Line, line, stored, written


@pytest.mark.parametrize("room", ROOMS)
def test_every_line_of_the_stored_tables_lies_within_its_goal(room):
    lines = stored(room)
    assert lines
    assert [str(item) for item in lines if not item.within] == []
    shares = [item for item in lines if not item.what.startswith("width")]
    assert all(item.error <= 2.0 for item in shares), "too few trials to say anything"


@pytest.mark.parametrize("room", ROOMS)
def test_a_table_is_read_as_it_was_written(room):
    lines = [
        Line("mean", "5 seeds", 94.9, 0.7, (93.0, 97.0)),
        Line("ranks", "all tie", 96.0, 0.6, (94.0, 100.0)),
        Line("size", "30 rows", 3.1, 0.5, (0.0, 5.0)),
    ]
    text = written(PAGE.read_text("utf-8"), room, lines, 1000, "2026-01-01")
    assert written(text, room, lines, 1000, "2026-01-01") == text
    assert text.count("Simulated on 2026-01-01, 1,000 trials a line.") == 1


def test_a_stored_table_gives_its_lines_back(tmp_path):
    page = tmp_path / "page.md"
    lines = [line({"what": "a", "setting": "b, c", "coverage": 0.9512, "mc_se": 0.0068, "goal": [0.93, 1.0]})]
    lines.append(line({"what": "mean", "setting": "World(1)", "coverage": 0.9, "mc_se": 0.01}))
    lines.append(line({"what": "size", "setting": "x", "coverage": 0.03, "mc_se": 0.01, "goal": [0.0, 0.05]}))
    page.write_text(
        written("<!-- simulated: ranks -->\n<!-- end of ranks -->\n", "ranks", lines, 9, "2026-01-01"), "utf-8"
    )
    assert stored("ranks", page) == lines
    assert [item.within for item in lines] == [True, False, True]


@pytest.mark.slow
def test_numbers_over_many_benchmarks_cover_as_often_as_they_say():
    """50 trials: what lies four Monte Carlo standard errors outside its goal is not chance."""
    trials = 50
    for result in report(trials):
        low, high = result["goal"]
        slack = 4 * sqrt(max(low * (1 - low), high * (1 - high), 0.05 * 0.95) / trials)
        assert low - slack <= result["coverage"] <= high + slack, result
