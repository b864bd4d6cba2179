"""`farshift score RUN --rows N`: what a model was asked, wrote and was understood to say, beside the truth."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from llm_server import llm
from support import one_line_error

ON = "prefix_sums/32_to_64"


@pytest.fixture
def run(command, cache, tmp_path) -> Path:
    """A run of a model that writes markup, whatever it is asked."""
    with llm(lambda prompt: "<b>1 0</b>") as server:
        given = ("--on", ON, "--limit", "4", "--budget", "quick", "--seeds", "1", "--out", tmp_path / "run")
        done = command("evaluate", f"openai:tiny@{server.url}", *given)
    assert done.returncode == 0, done.stderr
    return tmp_path / "run"


def test_a_language_model_s_rows_have_prompt_raw_text_answer_and_truth(command, command_json, run):
    rows = command_json("score", run, "--rows", "3")
    assert len(rows) == 3
    for row in rows:
        assert row["output"] == "<b>1 0</b>" and row["output"] not in row["input"]
        assert row["input"].endswith(tuple("01:= \n")) and set(row["truth"]) <= set("01 ")
        assert row["state"] in ("answered", "failed") and row["score"] == 0
    text = command("score", run, "--rows", "3").stdout
    assert all(f"row {row['row_id']}, seed 0" in text for row in rows)
    assert text.count("  output  <b>1 0</b>") == 3 and f"   truth  {rows[0]['truth']}" in text
    assert {row["row_id"] for row in command_json("score", run, "--rows", "9", "--view", "id")}.isdisjoint(
        row["row_id"] for row in rows
    )


def test_what_a_finished_run_is_does_not_depend_on_its_raw_texts(command, command_json, run):
    before = command("score", run, "--json").stdout
    (run / "outputs.jsonl").write_text('{"cut o')
    assert command("score", run, "--json").stdout == before
    assert {row["output"] for row in command_json("score", run, "--rows", "3")} == {None}


def test_rows_of_another_model_show_its_inputs(command):
    text = command("score", "baseline:mlp@modadd97/xi35", "--rows", "2", "--view", "id").stdout
    assert text.count("   input  a: ") == 2 and "output" not in text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--rows", "2", "--view", "train"), "no view of modadd97/xi35 named 'train'"),
        (("--view", "id"), "--view goes with --rows N"),
        (("baseline:knn@modadd97/xi35", "--rows", "2"), "--rows shows one run"),
    ],
)
def test_what_cannot_be_shown_is_refused(command, given, said):
    assert said in one_line_error(command("score", "baseline:mlp@modadd97/xi35", *given))


def test_an_exported_task_says_what_it_needs(command, tmp_path):
    assert command("benchmarks", "export", "scan/length", "--to", "lm-eval", "--out", tmp_path / "task").returncode == 0
    without = "import sys, types; sys.modules |= {'farshift': None, 'datasets': types.ModuleType('datasets')}; "
    code = f"{without}import runpy; runpy.run_path({json.dumps(str(tmp_path / 'task' / 'utils.py'))})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "utils.py grades by Farshift: pip install farshift, in the environment of lm_eval\n"
