"""Tables say what the records say, whatever is in a name."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from dataclasses import replace
from io import StringIO

import pytest
from farshift import FarshiftError
from farshift.benchmarks.statistics.interval import NotAvailable
from farshift.benchmarks.tables import render_table
from farshift.benchmarks.tables.latex import escape_latex
from farshift.benchmarks.tables.markdown import escape_markdown as markdown_escaped
from farshift.core.errors import UnknownName
from hypothesis import given
from hypothesis import strategies as st
from latex_reader import printed, read_tables
from records import many, record

WORST = ["worst group", "worst-group score"]
HEAD = ["benchmark", "kind", "metric", "model", "seeds", "selection", "ID", "OOD", "gap"]
NASTY = "a & b % $ # _ { } ~ ^ \\ | * `x` <é> --- [1] 模型"


def csv_rows(records):
    return list(csv.DictReader(StringIO(render_table(records, "csv"), newline="")))


def markdown_rows(records):
    """The cells of the table, header first, as Markdown reads them."""
    lines = render_table(records, "markdown").split("\n\n")[0].splitlines()
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
        if "---" not in line.split("|")[1]
    ]
    return [[re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", cell) for cell in row] for row in cells]


def percent(found):
    return "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * end for end in (found.value, found.low, found.high)))


def test_each_record_is_a_row_in_its_order():
    records = [*many(4), record("knn", "optdigits/writers", kind="domain", seeds=3, metric="accuracy@1")]
    head, *rows = markdown_rows(records)
    assert head == HEAD
    for row, item in zip(rows, records, strict=True):
        seeds = "5" if len(item.seeds) == 5 else "3 of 5"
        metric = {"exact_match@1": "exact_match (%)", "accuracy@1": "accuracy (%)"}[item.metric]
        words = [item.benchmark, item.kind, metric, item.model, seeds, item.selection]
        assert row == [*words, percent(item.id), percent(item.ood), percent(item.gap)]


def test_the_worst_group_has_its_columns_where_there_is_one():
    records = [record("lstm", groups={"17": 0.3, "a|b": 0.2, "18": 0.9}), record("mlp")]
    head, first, second = markdown_rows(records)
    assert head == [*HEAD, *WORST]
    assert first[-2:] == ["a|b (of 3)", percent(records[0].worst_group.estimate)]
    assert second[-2:] == ["", ""]


def test_a_score_that_there_is_not_is_an_empty_cell():
    item = record()
    item = replace(item, gap=NotAvailable("not defined on these rows and answers"))
    assert markdown_rows([item])[1][-1] == ""
    (row,) = csv_rows([item])
    assert (row["gap"], row["gap_low"], row["gap_high"]) == ("", "", "")


def test_a_metric_outside_0_to_1_is_not_in_percent():
    item = record(metric="rmse@1", better="lower", bounds=None, id=0.5, ood=0.62)
    _, row = markdown_rows([item])
    assert row[2] == "rmse, lower is better"
    assert row[6:] == ["0.500 [0.480, 0.520]", "0.620 [0.600, 0.640]", "-0.120 [-0.148, -0.092]"]
    assert "percent" not in render_table([item], "markdown")


def test_what_cannot_be_compared_is_told_apart():
    rows = markdown_rows([record(), record(budget="quick"), record(identity="cd" * 32)])[1:]
    assert [row[0] for row in rows] == [
        "scan/length, identity d78b35ce",
        "scan/length (quick)",
        "scan/length, identity cdcdcdcd",
    ]


def test_the_caption_says_what_the_brackets_and_units_are():
    text = render_table([record(), record("knn", seeds=1), record("mlp", budget="quick")], "markdown").replace("\\", "")
    assert "Brackets: 95% t interval over rows and 5 training seeds; for knn: 95% t interval over rows only" in text
    assert "Metrics marked (%) are in percent, and their gaps in percentage points." in text
    assert "scan/length: entries with different identities are not comparable." in text
    assert "biased towards worse values" not in text
    assert "biased towards worse values" in render_table([record(groups={"a": 0.1, "b": 0.2})], "markdown")


def test_any_name_stays_in_its_cell_and_reads_as_it_was():
    records = [record(NASTY), record("plain_name"), record("[x] two\nlines")]
    assert [row[3] for row in markdown_rows(records)[1:]] == [NASTY, "plain_name", "[x] two lines"]


plain = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=30)


@given(plain)
def test_markdown_reads_any_text_as_it_was_and_finds_no_cell_in_it(text):
    source = markdown_escaped(text)
    assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", source) == text
    assert re.search(r"(?<!\\)(\\\\)*[|*`<]", source) is None


def test_an_underscore_in_a_word_stays_readable_in_markdown():
    assert markdown_escaped("exact_match@1 _this_ my__init__") == r"exact_match@1 \_this\_ my\_\_init\_\_"


def test_csv_has_every_number_in_full():
    records = [*many(3), record("knn", groups={"a": 0.123456, "b": 0.5})]
    for row, item in zip(csv_rows(records), records, strict=True):
        for name in ("id", "ood", "gap"):
            for column, key in ((name, "value"), (f"{name}_low", "low"), (f"{name}_high", "high")):
                assert float(row[column]) == getattr(getattr(item, name), key)
        assert (row["model"], row["benchmark"], row["metric"]) == (item.model, item.benchmark, item.metric)
        assert (row["seeds"], row["protocol_seeds"], row["steps"]) == ("5", "5", "")
        assert (row["interval"], row["entry_identity"]) == (item.interval, item.entry_identity)
    assert row["worst_group"] == "a"
    assert float(row["worst_group_score_low"]) == records[-1].worst_group.estimate.low


def test_csv_lines_end_as_rfc_4180_says_and_names_are_quoted():
    text = render_table([record('a "b", c\nd')], "csv")
    assert text.endswith("\r\n")
    assert text.split("\r\n")[0].startswith("benchmark,kind,metric,better,model,")
    assert '"a ""b"", c\nd"' in text
    assert csv_rows([record('a "b", c\nd')])[0]["model"] == 'a "b", c\nd'


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_a_name_that_a_spreadsheet_would_run_is_defused_and_a_number_is_not(start):
    item = record(f"{start}cmd|' /C calc'!A0", ood=0.99)
    (row,) = csv_rows([item])
    assert row["model"] == "'" + item.model
    assert row["gap"].startswith("-0.0")


def test_formats_are_found_and_another_is_refused_with_those_there_are():
    with pytest.raises(UnknownName, match="no table format named 'html': choose from csv, latex, markdown"):
        render_table(many(1), "html")
    for format in ("csv", "latex", "markdown"):
        with pytest.raises(FarshiftError, match="no score records given"):
            render_table([], format)


def test_a_new_format_is_one_new_file(tmp_path, monkeypatch):
    folder = tmp_path / "benchmarks" / "tables"
    folder.mkdir(parents=True)
    (folder / "names.py").write_text("def render(records):\n    return ' '.join(r.model for r in records)\n")
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    assert render_table(many(2), "names") == "lstm transformer"


def latex(records, **settings):
    (table,) = read_tables(render_table(records, "latex", **settings))
    return table


def test_latex_has_a_block_a_benchmark_with_the_cells_of_markdown():
    records = [
        record("lstm", groups={"17": 0.3, "a|b": 0.2}),
        record("knn", seeds=3),
        record("knn", "vowel/women", metric="rmse@1", better="lower", bounds=None, ood=0.98),
        replace(record("lstm", budget="quick"), gap=NotAvailable("not defined")),
    ]
    table = latex(records)
    assert (table.tabular.shape, table.tabular.heads) == ("llrrrlr", [*HEAD[3:5], *HEAD[6:], *WORST])
    titles = [
        "scan/length, exact_match (%)",
        "vowel/women, rmse, lower is better",
        "scan/length (quick), exact_match (%)",
    ]
    assert list(table.tabular.blocks) == titles
    cells = [[cell.text for cell in row] for row in table.tabular.rows]
    head, *rows = markdown_rows(records)
    wanted = [[row[head.index(name)] for name in table.tabular.heads] for row in rows]
    assert cells == [[text or ("--" if at in (2, 3, 4, 6) else "") for at, text in enumerate(row)] for row in wanted]
    assert table.note.text == render_table(records, "markdown").split("\n\n")[1].strip().replace("\\", "")


def test_latex_has_the_leaders_in_bold_and_says_why():
    records = [record("a", ood=0.5), record("b", ood=0.49), record("c", ood=0.2)]
    table = latex(records, leaders=[True, True, False])
    assert [[cell.bold for cell in row] for row in table.tabular.rows] == [
        [""] * 3 + [percent(item.ood) if item.model != "c" else "", ""] for item in records
    ]
    assert "do not differ significantly from it (max-t over all pairs, paired rows, 5 %)" in table.note.text
    assert "Bold" not in latex(records).note.text


def test_latex_has_a_caption_and_a_label_to_refer_to():
    usual = latex(many(2))
    assert (usual.caption, usual.label) == ("Scores on scan/length.", "tab:scan-length")
    requested = latex(many(2), caption=NASTY, label="tab:my_results")
    assert (requested.caption, requested.label) == (NASTY, "tab:my_results")
    with pytest.raises(FarshiftError, match="invalid LaTeX label"):
        render_table(many(1), "latex", label="a{b}")
    with pytest.raises(FarshiftError, match="the format csv has no caption: omit --caption"):
        render_table(many(1), "csv", caption="x")


def test_any_name_stays_in_its_cell_of_latex():
    records = [record(NASTY), record("plain_name"), record("[x] two\nlines"), record("*y", "*x/y")]
    assert [row[0].text for row in latex(records).tabular.rows] == [NASTY, "plain_name", "[x] two lines", "*y"]


@given(plain)
def test_latex_prints_any_text_as_it_was(text):
    # Braces around it keep what begins and ends it from what stands beside it.
    assert printed(f"{{{escape_latex(text)}}}").text == text
    assert "--" not in escape_latex(text)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX on this machine")
def test_latex_itself_takes_the_tables(tmp_path):
    records = [*many(4, groups={"a|b": 0.1, "b": 0.3}), *many(2, "a_b/c"), record("a & b % $ # _ { } ~ ^", seeds=1)]
    table = render_table(records, "latex")
    body = "\n".join([r"\documentclass{article}", r"\usepackage{booktabs}", r"\begin{document}", table])
    (tmp_path / "a.tex").write_text(body + "\n\\end{document}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
