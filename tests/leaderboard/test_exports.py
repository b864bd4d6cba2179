"""Exports: every format says what the table says, in its own words, and the same board gives the same bytes."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest
import yaml
from farshift import FarshiftError
from farshift.benchmarks.scoring.trained_check import MARK
from farshift.leaderboard.exports import make_export_files, write_export
from farshift.leaderboard.exports._table import make_slugs
from farshift.leaderboard.exports.hf import dump_yaml
from hypothesis import given
from hypothesis import strategies as st
from latex_reader import read_tables
from made_tables import entry, snapshot

OPTIONS = {"hf": {"dataset": "somebody/shifts", "source": "https://example.org/board"}}


@pytest.fixture(scope="module")
def board():
    built = [
        entry("strong", 0.8, groups={"left": 0.7, "right": 0.9}),
        entry("weak & 50%", 0.2, groups={"left": 0.1, "right": 0.3}),
        entry("=HYPERLINK()", 0.5, team="them", groups={"left": 0.4, "right": 0.6}),
        entry("once", 0.52, team="", seeds=1, groups={"left": 0.4, "right": 0.6}),
    ]
    return snapshot(built, {("us", built[0][0].score.entry_identity): 5}, baseline="strong")


@pytest.mark.parametrize("form", ["csv", "eee", "hf", "latex", "markdown", "parquet"])
def test_the_same_board_gives_the_same_bytes(board, form):
    assert make_export_files(board, form, OPTIONS.get(form)) == make_export_files(board, form, OPTIONS.get(form))


def test_csv_has_every_number_as_recorded_and_runs_no_formula(board):
    (content,) = make_export_files(board, "csv").values()
    lines = list(csv.DictReader(io.StringIO(content.decode())))
    (table_view,) = board.views
    assert [line["model"] for line in lines] == ["strong", "once", "'=HYPERLINK()", "weak & 50%"]
    for line, row in zip(lines, table_view.rows, strict=True):
        assert float(line["ood"]) == row.standing.score.ood.value
        assert float(line["ood_low"]) == row.standing.score.ood.low
        assert (int(line["rank_low"]), int(line["rank_high"])) == row.rank
        assert line["attempts"] == ("5" if row.standing.team == "us" else "")
    assert lines[0]["optimism"] != ""
    assert lines[1]["ood_seed_se"] == "", "a single seed has no standard error over seeds"
    assert lines[0]["against_baseline"] == ""
    assert float(lines[3]["against_baseline"]) < 0


def test_latex_has_rank_sets_and_says_what_its_plus_minus_and_its_bold_type_are(board):
    (view,) = board.views
    rows = (*view.rows[:3], replace(view.rows[3], not_learnt="no better than a constant prediction"))
    (content,) = make_export_files(replace(board, views=(replace(view, rows=rows),)), "latex").values()
    (table,) = read_tables(content.decode())
    tabular = table.tabular
    assert tabular.heads == ["rank", "ties", "model", "ID", "OOD", "gap", "best"]
    assert list(tabular.blocks) == ["exact_match (%)"]
    texts = [[cell.text for cell in row] for row in tabular.rows]
    assert [row[:3] for row in texts[:2]] == [["1", "a", "strong"], ["2--3", "b", "once"]]
    assert texts[3][2] == f"weak & 50% ({MARK})"
    assert not any(absent in table.note.text for absent in ("Brackets", "Behind", "Attempts", "Against"))
    assert [row[4].bold != "" for row in tabular.rows] == [True, False, False, False]
    assert "The number after ± is the standard error, over test rows and training seeds." in table.note.text
    assert "Bold: the best OOD score, and those that share a letter with it." in table.note.text
    assert table.label.startswith("tab:scan-length-") and table.caption == "scan/length."


def test_latex_has_bold_type_for_all_of_the_first_tie_group_and_takes_a_caption_and_a_label():
    built = [entry("one", 0.5), entry("other", 0.5), entry("third", 0.1), entry("one", 0.5, "vowel/women")]
    options = {"caption": "All & more.", "label": "tab:all"}
    tables = read_tables(make_export_files(snapshot(built), "latex", options)["standings.tex"].decode())
    first = next(table for table in tables if "scan/length" in table.caption)
    assert [row[4].bold != "" for row in first.tabular.rows] == [True, True, False]
    assert {table.caption for table in tables} == {"All & more. scan/length.", "All & more. vowel/women."}
    assert all(table.label.startswith("tab:all:") for table in tables)
    (alone,) = read_tables(make_export_files(snapshot(built[:2]), "latex", options)["standings.tex"].decode())
    assert (alone.caption, alone.label) == ("All & more.", "tab:all")


def test_markdown_has_a_row_an_entry_and_the_meaning_beneath(board):
    (content,) = make_export_files(board, "markdown").values()
    text = content.decode()
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len({line.count(" | ") for line in rows}) == 1
    assert "| once | 2-3 | b |" in text
    assert "Rank sets: all 4 true OOD ranks are in their sets simultaneously" in text


def test_community_evals_have_the_fields_that_the_hub_asks_for(board):
    """Hub documentation, Evaluation Results: dataset.id, dataset.task_id and value are required; a source needs url."""
    output = make_export_files(board, "hf", OPTIONS["hf"])
    benchmark = yaml.safe_load(output["eval.yaml"])
    assert {"name", "description", "evaluation_framework", "tasks"} <= set(benchmark)
    tasks = [task["id"] for task in benchmark["tasks"]]
    assert tasks == ["scan-length-ood", "scan-length-id"]
    assert all({"id", "config", "split"} == set(task) for task in benchmark["tasks"])
    files = {path: yaml.safe_load(content) for path, content in output.items() if path != "eval.yaml"}
    assert sorted(path.split("/")[1] for path in files) == ["hyperlink-them", "once", "strong-us", "weak-50-us"]
    for path, results in files.items():
        assert path.split("/")[2] == ".eval_results"
        for result in results:
            assert result["dataset"]["id"] == "somebody/shifts"
            assert result["dataset"]["task_id"] in tasks
            assert 0 <= result["value"] <= 100
            assert result["source"]["url"] == "https://example.org/board"
            assert "95 % t interval" in result["notes"]
    (strong,) = (results for path, results in files.items() if "strong" in path)
    score = board.views[0].rows[0].standing.score
    assert strong[0]["value"] == pytest.approx(100 * score.ood.value)
    assert "rank set 1 of 4" in strong[0]["notes"]


def test_community_evals_need_a_data_set_and_refuse_what_they_do_not_know(board):
    with pytest.raises(FarshiftError, match="needs --dataset: the Hub data set"):
        make_export_files(board, "hf")
    with pytest.raises(FarshiftError, match="write the data set as OWNER/NAME"):
        make_export_files(board, "hf", {"dataset": "shifts"})
    with pytest.raises(FarshiftError, match="has no option --dataset"):
        make_export_files(board, "csv", {"dataset": "a/b"})
    with pytest.raises(FarshiftError, match="no export format named 'xml'"):
        make_export_files(board, "xml")


STRING, NUMBER = str, (int, float)
REQUIRED: dict[str, object] = {
    "schema_version": STRING,
    "evaluation_id": STRING,
    "retrieved_timestamp": STRING,
    "source_metadata": {
        "source_type": ("documentation", "evaluation_run"),
        "source_organization_name": STRING,
        "evaluator_relationship": ("first_party", "third_party", "collaborative", "other"),
    },
    "model_info": {
        "name": STRING,
        "id": STRING,
        "additional_details": {
            "deployment_type": ("self_deployed", "externally_managed", "unknown"),
            "model_availability": ("open_weights", "closed_weights", "unknown"),
        },
    },
    "eval_library": {"name": STRING, "version": STRING},
}
RESULT: dict[str, object] = {
    "evaluation_name": STRING,
    "source_data": {"dataset_name": STRING, "source_type": ("url", "hf_dataset", "other")},
    "metric_config": {
        "lower_is_better": bool,
        "score_type": ("binary", "continuous", "levels"),
        "min_score": NUMBER,
        "max_score": NUMBER,
    },
    "score_details": {
        "score": NUMBER,
        "uncertainty": {
            "standard_error": {"value": NUMBER},
            "confidence_interval": {"lower": NUMBER, "upper": NUMBER, "confidence_level": NUMBER},
            "num_samples": int,
        },
    },
}
"""What version 0.3.0 of EveryEvalEver's eval.schema.json requires of a log and of each of its results."""


def lacking(found: Mapping[str, object], wanted: Mapping[str, object], where: str = "") -> list[str]:
    """Which required fields a record lacks, or has of another type."""
    problems = []
    for name, kind in wanted.items():
        value = found.get(name)
        if isinstance(kind, Mapping):
            inner = value if isinstance(value, Mapping) else {}
            problems += lacking(inner, kind, f"{where}{name}.")
        elif isinstance(kind, tuple) and all(isinstance(item, str) for item in kind):
            problems += [] if value in kind else [f"{where}{name}: {value!r}"]
        elif not isinstance(value, kind):
            problems.append(f"{where}{name}: {value!r}")
    return problems


def test_every_eval_ever_logs_have_all_that_its_schema_requires(board):
    results = make_export_files(board, "eee", {"source": "https://example.org"})
    assert len(results) == 4
    for path, content in results.items():
        log = json.loads(content)
        assert lacking(log, REQUIRED) == []
        assert [problem for result in log["evaluation_results"] for problem in lacking(result, RESULT)] == []
        data, collection, developer, model, name = path.split("/")
        assert (data, collection, f"{developer}/{model}") == ("data", "farshift", log["model_info"]["id"])
        assert UUID(name.removesuffix(".json")).version == 4
        details = [log["model_info"]["additional_details"], log["source_metadata"]["additional_details"]]
        details += [result["score_details"]["details"] for result in log["evaluation_results"]]
        assert all(isinstance(value, str) for detail in details for value in detail.values()), "all must be strings"
    broken = json.loads(next(iter(results.values())))
    del broken["evaluation_results"][0]["score_details"]["uncertainty"]["standard_error"]
    assert lacking(broken["evaluation_results"][0], RESULT), "the check can fail"


def test_every_eval_ever_has_the_score_its_standard_error_and_interval(board):
    row = board.views[0].rows[0]
    (log,) = (
        json.loads(content)
        for content in make_export_files(board, "eee").values()
        if json.loads(content)["model_info"]["name"] == "strong"
    )
    by_view = dict(zip(("id", "ood", "gap"), log["evaluation_results"], strict=True))
    for view, result in by_view.items():
        score, output = getattr(row.standing.score, view), result["score_details"]
        assert output["score"] == score.value
        interval = output["uncertainty"]["confidence_interval"]
        assert (interval["lower"], interval["upper"]) == (score.low, score.high)
        error = output["uncertainty"]["standard_error"]["value"]
        assert error == pytest.approx((score.row_se**2 + score.seed_se**2) ** 0.5, abs=1e-6)
    assert by_view["ood"]["score_details"]["details"]["rank_set"] == "1"
    assert [by_view[view]["metric_config"]["lower_is_better"] for view in by_view] == [False, False, True]
    assert by_view["gap"]["metric_config"]["min_score"] == -1


def test_a_single_file_goes_where_it_is_told_and_many_into_a_folder(board, tmp_path):
    assert write_export(board, "csv", tmp_path / "table.csv") == [tmp_path / "table.csv"]
    assert write_export(board, "csv", tmp_path / "folder") == [tmp_path / "folder" / "standings.csv"]
    written = write_export(board, "hf", tmp_path / "hub", OPTIONS["hf"])
    assert tmp_path / "hub" / "eval.yaml" in written
    assert len(written) == 5


@given(st.lists(st.text(max_size=12), unique=True, max_size=8))
def test_different_names_never_share_a_path(names):
    result = make_slugs(names)
    assert len(set(result.values())) == len(names)
    assert all(re.fullmatch(r"[a-z0-9._-]+", slug) and slug not in (".", "..") for slug in result.values())


names = st.from_regex(r"[a-z]{1,6}", fullmatch=True) | st.text(max_size=6) | st.sampled_from(["no", "ON", "null", "y"])
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(names, plain, min_size=1, max_size=4))
def test_what_is_written_as_yaml_is_read_back(value):
    assert yaml.safe_load(dump_yaml(value)) == value
