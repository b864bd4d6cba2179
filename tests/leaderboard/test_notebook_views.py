"""What a notebook shows of scores, comparisons and standings: tables of the right numbers, in which no name is HTML."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from farshift.benchmarks.comparison.compare import Comparison, Difference
from farshift.benchmarks.scoring.record import ViewScores
from farshift.benchmarks.statistics.interval import NotAvailable
from farshift.leaderboard.client import Standings
from made_tables import entry, snapshot
from records import estimate, record

NASTY = "<img src=x onerror=alert(1)> & \"it\" 'is'"
DIFFERENCE = Difference(0.2, 0.1, 0.3, True, {"value": 0.2, "low": 0.1, "high": 0.3, "row_se": 0.01})


def score():
    lacking = NotAvailable(f"no {NASTY}")
    return replace(record(NASTY), metrics={"f1@1": ViewScores(estimate(0.5), lacking, lacking)})


def comparison():
    difference = {
        "id": DIFFERENCE,
        "ood": replace(DIFFERENCE, distinguishable=None),
        "gap": NotAvailable(f"no {NASTY}"),
    }
    return Comparison("scan/length", NASTY, "lstm", {"left": 3, "right": 1}, difference, f"paired, {NASTY}")


def board():
    built = [entry(NASTY, 0.8, team=NASTY), entry("weak", 0.2), entry("weak", 0.4, "vowel/women")]
    return Standings(snapshot(built, name=NASTY).record())


class Cells:
    """The tags of a text, which have no attributes; the text of each cell by its row; and all other text."""

    def __init__(self, text):
        elements = [*ElementTree.fromstring(f"<p>{text}</p>").iter()]
        assert not any(element.attrib for element in elements)
        self.tags = {element.tag for element in elements}
        self.rows = [["".join(cell.itertext()) for cell in element] for element in elements if element.tag == "tr"]
        self.other = "".join(element.text or "" for element in elements if element.tag not in ("td", "th"))


@pytest.mark.parametrize("make", [score, comparison, board])
def test_html_is_one_table_whose_names_are_text(make):
    result = Cells(make()._repr_html_())
    assert result.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    assert len({len(row) for row in result.rows}) == 1
    assert NASTY in result.other + " ".join(cell for row in result.rows for cell in row)


def test_html_of_a_score_has_every_measure_by_every_metric():
    head, *rows = Cells(score()._repr_html_()).rows
    assert head == ["metric", "measure", "value"]
    assert [row[:2] for row in rows] == [
        *(["exact_match", name] for name in ("id", "ood", "gap")),
        *(["f1", name] for name in ("id", "ood", "gap")),
    ]
    assert rows[1][2].startswith("0.200") and rows[4][2] == f"n/a (no {NASTY})"


def test_html_of_a_comparison_says_what_is_distinguishable_and_what_there_is_not():
    _, *rows = Cells(comparison()._repr_html_()).rows
    assert [row[0] for row in rows] == ["id", "ood", "gap"]
    assert rows[0][1] == "+0.200 [+0.100, +0.300], distinguishable"
    assert rows[1][1].endswith("more seeds needed") and rows[2][1] == f"n/a (no {NASTY})"


def test_html_of_standings_has_a_row_an_entry_with_its_rank_set():
    head, *rows = Cells(board()._repr_html_()).rows
    assert head == ["table", "rank", "model", "team", "ID", "OOD", "GAP", "ties"]
    by_model = [(row[0], row[1], row[2]) for row in rows]
    assert ("scan/length", "1", NASTY) in by_model and ("scan/length", "2", "weak") in by_model
    assert ("vowel/women", "1", "weak") in by_model


def test_a_data_frame_of_a_score_has_its_numbers_and_why_there_are_none():
    pytest.importorskip("pandas")
    item = score()
    frame = item.to_pandas()
    row = frame[(frame.metric == "exact_match@1") & (frame.measure == "ood")].iloc[0]
    assert (row.value, row.low, row.high, row.model) == (item.ood.value, item.ood.low, item.ood.high, NASTY)
    lacking = frame[frame.metric == "f1@1"].set_index("measure")
    assert lacking.loc["ood", "n/a"] == f"no {NASTY}" and lacking.loc["id", "value"] == 0.5
    assert len(frame) == 6


def test_a_data_frame_of_a_comparison_has_a_row_a_difference():
    pytest.importorskip("pandas")
    frame = comparison().to_pandas().set_index("score")
    assert [*frame.index] == ["id", "ood", "gap"]
    assert (frame.loc["id", "value"], frame.loc["id", "distinguishable"]) == (0.2, True)
    assert frame.loc["gap", "n/a"] == f"no {NASTY}"


def test_a_data_frame_of_standings_has_a_row_an_entry_in_its_table():
    pytest.importorskip("pandas")
    shown = board()
    frame = shown.to_pandas()
    assert len(frame) == 3
    first = frame[frame.model == NASTY].iloc[0]
    assert (first.benchmark, first.team, first["rank"]) == ("scan/length", NASTY, [1, 1])
    (expected,) = [row["ood"]["value"] for row in shown.record()["tables"][0]["rows"] if row["model"] == NASTY]
    assert first["ood.value"] == expected
