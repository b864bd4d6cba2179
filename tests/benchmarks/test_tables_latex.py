"""LaTeX tables: what they print, what is bold and why, and that LaTeX takes them whatever is in a name."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest
from farshift import FarshiftError
from farshift.benchmarks.statistics.interval import NotAvailable
from farshift.benchmarks.tables import render_table
from farshift.benchmarks.tables.latex import escape_latex, find_best_names
from hypothesis import given
from hypothesis import strategies as st
from latex_reader import printed, read_tables
from records import estimate, many, record

NASTY = "a & b % $ # _ { } ~ ^ \\ | * `x` <é> --- [1] é"


def one_table(records, **settings):
    (table,) = read_tables(render_table(records, "latex", **settings))
    return table


def percent(found):
    return "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * end for end in (found.value, found.low, found.high)))


def test_of_one_benchmark_each_model_is_a_row_with_its_intervals():
    records = many(4)
    (tabular,) = one_table(records).tabulars
    assert (tabular.shape, tabular.heads) == ("lrrr", ["model", "ID", "OOD", "gap"])
    assert tabular.groups == [("scan/length", 2, 4)]
    for row, item in zip(tabular.rows, records, strict=True):
        assert [cell.text for cell in row] == [item.model, percent(item.id), percent(item.ood), percent(item.gap)]


def test_benchmarks_stand_side_by_side_with_intervals_beneath_and_what_is_lacking_is_a_dash():
    records = [record("lstm"), record("knn"), record("knn", "vowel/women", metric="accuracy@1", ood=0.4)]
    table = one_table(records)
    (tabular,) = table.tabulars
    assert tabular.groups == [("scan/length", 2, 4), ("vowel/women", 5, 7)]
    texts = [[cell.text for cell in row] for row in tabular.rows]
    assert [row[0] for row in texts] == ["lstm", "", "knn", ""]
    assert texts[0][4:] == ["--"] * 3 and texts[1][4:] == [""] * 3
    assert [f"{number} {ends}" for number, ends in zip(texts[2][1:], texts[3][1:], strict=True)] == [
        percent(item) for each in records[1:] for item in (each.id, each.ood, each.gap)
    ]
    assert "Metrics: exact_match (%): scan/length; accuracy (%): vowel/women." in table.note.text


def test_what_does_not_fit_a_page_stands_beneath():
    names = ["a/b", "c/d", "e/f", "g/h", "i/j"]
    table = one_table([record(benchmark=name) for name in names])
    assert [[title for title, _, _ in each.groups] for each in table.tabulars] == [names[:2], names[2:4], names[4:]]
    long = one_table([record("a-model-of-a-long-name-" * 3, benchmark=name) for name in names[:2]])
    assert len(long.tabulars) == 2


def test_bold_is_the_best_and_those_in_its_tie_group_and_the_note_says_so():
    records = [record("a", ood=0.5), record("b", ood=0.49), record("c", ood=0.2)]
    shown = one_table(records, leaders=[False, True, False])
    assert [row[2].bold for row in shown.tabulars[0].rows] == ["", "49.0", ""]
    assert "do not differ significantly from it (max-t over all pairs, paired rows, 5 %)" in shown.note.text
    guessed = one_table(records)
    assert [row[2].bold for row in guessed.tabulars[0].rows] == ["50.0", "49.0", ""]
    assert "those whose intervals overlap with that of the best (not a test)" in guessed.note.text
    assert not [cell.bold for row in one_table(records[:1]).tabulars[0].rows for cell in row if cell.bold]
    assert "Bold" not in one_table(records[:1]).note.text
    assert not any(cell.bold for row in guessed.tabulars[0].rows for at, cell in enumerate(row) if at != 2)


def test_of_a_metric_that_is_better_lower_the_lowest_is_best():
    result = {"low": estimate(0.1), "near": estimate(0.12), "high": estimate(0.9)}
    assert find_best_names(result, "lower") == {"low", "near"} and find_best_names(result, "higher") == {"high"}
    assert find_best_names({"alone": estimate(0.5)}, "higher") == frozenset()


def test_marks_refer_to_worst_groups_and_to_seeds_that_are_fewer_than_asked_for():
    records = [record("lstm", groups={"17": 0.3, "a|b": 0.2}), record("mlp", seeds=3)]
    table = one_table(records)
    (tabular,) = table.tabulars
    assert tabular.heads == ["model", "ID", "OOD", "gap", "worst group"]
    first, second = tabular.rows
    assert (first[4].text, first[4].raised) == ("20.0a [16.0, 24.0]", "a")
    assert second[2].raised == "b" and second[4].text == "--"
    assert "3 of 5 seeds." in table.note.text and "a|b, of 2 groups." in table.note.text
    assert "biased towards worse values" in table.note.text and "Seeds: 5." in table.note.text


def test_a_score_that_there_is_not_is_a_dash_and_a_metric_outside_0_to_1_is_not_in_percent():
    item = replace(record(), gap=NotAvailable("not defined"))
    assert one_table([item]).tabulars[0].rows[0][3].text == "--"
    error = one_table([record(metric="rmse@1", better="lower", bounds=None, id=0.5, ood=0.62)])
    assert [cell.text for cell in error.tabulars[0].rows[0]][1:] == [
        "0.500 [0.480, 0.520]",
        "0.620 [0.600, 0.640]",
        "-0.120 [-0.148, -0.092]",
    ]
    assert "rmse, lower is better" in error.note.text and "percent" not in error.note.text


def test_what_cannot_be_compared_is_a_group_of_its_own():
    table = one_table([record(), record(budget="quick"), record(identity="cd" * 32)])
    titles = [title for each in table.tabulars for title, _, _ in each.groups]
    assert titles == ["scan/length, identity d78b35ce", "scan/length (quick)", "scan/length, identity cdcdcdcd"]
    assert "entries with different identities are not comparable" in table.note.text


def test_a_table_has_a_caption_and_a_label_to_refer_to():
    usual = one_table(many(2))
    assert (usual.caption, usual.label) == ("Scores on scan/length.", "tab:scan-length")
    requested = one_table(many(2), caption=NASTY, label="tab:my_results")
    assert (requested.caption, requested.label) == (NASTY, "tab:my_results")
    with pytest.raises(FarshiftError, match="invalid LaTeX label"):
        render_table(many(1), "latex", label="a{b}")
    with pytest.raises(FarshiftError, match="the format csv has no caption: omit --caption"):
        render_table(many(1), "csv", caption="x")


def test_any_name_stays_in_its_cell_and_reads_as_it_was():
    records = [record(NASTY), record("plain_name"), record("[x] two\nlines"), record("*y", "*x/y")]
    rows = [row for each in one_table(records).tabulars for row in each.rows]
    assert [row[0].text for row in rows if row[0].text] == [NASTY, "plain_name", "[x] two lines", "*y"]


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=30))
def test_any_text_is_printed_as_it_was(text):
    # Braces around it keep what begins and ends it from what stands beside it.
    assert printed(f"{{{escape_latex(text)}}}").text == text
    assert "--" not in escape_latex(text)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX on this machine")
def test_latex_itself_takes_the_tables(tmp_path):
    records = [*many(4, groups={"a|b": 0.1, "b": 0.3}), *many(2, "a_b/c"), record(NASTY.replace("`", ""), seeds=1)]
    tables = [render_table(records, "latex")]
    body = "\n".join([r"\documentclass{article}", r"\usepackage{booktabs}", r"\begin{document}", *tables])
    (tmp_path / "a.tex").write_text(body + "\n\\end{document}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
