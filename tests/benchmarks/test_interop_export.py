"""Export: what other runners are given of a benchmark; and their seeds."""

from __future__ import annotations

import json
import os
import shlex
from itertools import product
from pathlib import Path

import pytest
import yaml
from farshift import FarshiftError
from farshift.benchmarks.benchmark import find_benchmark, make_canary, make_guid
from farshift.benchmarks.interop import Log, LogSample, combine_logs, export_benchmark
from farshift.benchmarks.interop._sheets import make_export
from farshift.benchmarks.interop.lm_eval import _format_yaml
from farshift.benchmarks.model_inputs.load import load_model_inputs
from farshift.benchmarks.prompting.grading import Grader
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interop_cases import NAME
from support import one_line_error

TOOLS = ("lm-eval", "inspect")


pytestmark = pytest.mark.usefixtures("home")


def sheets(folder: Path) -> dict[str, list[dict]]:
    """The samples of an exported folder by sheet."""
    read = {path.stem: path.read_text("utf-8").removesuffix("\n").split("\n") for path in (folder / "data").iterdir()}
    return {name: [json.loads(line) for line in lines] for name, lines in read.items()}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class _Tagged(yaml.SafeLoader):
    """Reads YAML as the tool does, a function by its name."""


_Tagged.add_constructor("!function", lambda loader, node: f"function {loader.construct_scalar(node)}")


@pytest.fixture(scope="module")
def exported(home, tmp_path_factory):
    """The folder of a benchmark that was exported for a runner, and what was returned."""
    done: dict[tuple[str, str], tuple[Path, dict]] = {}

    def export(tool: str = "inspect", name: str = NAME) -> tuple[Path, dict]:
        if (tool, name) not in done:
            folder = tmp_path_factory.mktemp("exported") / "task"
            done[tool, name] = folder, export_benchmark(name, tool, folder)
        return done[tool, name]

    return export


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", [NAME, "modadd97/xi35"])
def test_every_row_that_a_run_predicts_is_one_sample(exported, tool, name):
    folder, result = exported(tool, name)
    samples = [sample for sheet in sheets(folder).values() for sample in sheet]
    benchmark, model_inputs = find_benchmark(name), load_model_inputs(find_benchmark(name))
    expected = {}
    for part in benchmark.predicted_parts:
        rows = model_inputs.part(part)
        for row_id, prompt in zip(rows.row_ids, model_inputs.prompt.texts(rows.batch(slice(None))), strict=True):
            expected[f"{row_id:016x}"] = part, prompt
    assert {sample["row_id"]: (sample["part"], sample["prompt"]) for sample in samples} == expected
    assert result["rows"] == len(samples) == len(expected)
    assert {sample["entry_identity"] for sample in samples} == {benchmark.identity("full")}
    mark = make_canary(benchmark)
    assert {sample["canary"] for sample in samples} == {mark}, "it goes with every row"
    assert not any(make_guid(benchmark) in sample["prompt"] for sample in samples)
    assert mark in (folder / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "expected"), [(NAME, ["id", "id_val", "ood"]), ("modadd97/xi35", ["fit_clean", "id", "id_val", "ood"])]
)
def test_a_view_s_sheet_holds_its_rows_and_their_true_labels(exported, name, expected):
    benchmark, result = find_benchmark(name), sheets(exported("inspect", name)[0])
    assert sorted(result) == expected, "rows that another view has are not asked again"
    for view in ("id", "ood"):
        part, truth = benchmark.view(view)
        assert [int(sample["row_id"], 16) for sample in result[view]] == part.row_ids.tolist()
        assert [sample["label"] for sample in result[view]] == truth.tolist()
        assert [sample["target"] for sample in result[view]] == [str(label) for label in truth.tolist()]


def test_a_true_answer_is_graded_right_and_a_wrong_one_wrong(exported):
    folder, _ = exported()
    grader = Grader.read(folder / "benchmark.json")
    for sample in sheets(folder)["ood"]:
        if "\u2028" not in sample["label"]:  # to the extraction that is the end of the line
            assert grader.value(f" {sample['label']}\nin: more", sample["label"]) == 1.0
        assert grader.value(f"{sample['label']}\u00b6 wrong", "quite other words") == 0.0
        assert grader.value("", sample["label"]) == 0.0


def test_a_class_is_graded_by_its_index(exported):
    grader = Grader.read(exported("lm-eval", "modadd97/xi35")[0] / "benchmark.json")
    assert grader.value(" 51", 51) == 1.0
    assert grader.value(" 51", 15) == grader.value("no idea", 51) == grader.value("\ud800", 51) == 0.0


@pytest.mark.parametrize("tool", TOOLS)
def test_an_export_has_the_same_bytes_wherever_it_is_written(tmp_path, tool):
    first = export_benchmark(NAME, tool, tmp_path / "a")
    second = export_benchmark(NAME, tool, tmp_path / "deeper" / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "deeper" / "b")
    assert first["files"] == second["files"] == sorted(contents(tmp_path / "a"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "deeper"]


def test_an_lm_eval_task_generates_greedily_from_the_prompt_alone_and_the_group_names_it(exported):
    folder, _ = exported("lm-eval")
    task = yaml.load((folder / "farshift_echo_long_ood.yaml").read_bytes(), _Tagged)
    greedy = {"until": ["\n", "\u00b6"], "max_gen_toks": 64, "do_sample": False, "temperature": 0.0}
    assert (
        task.pop("metadata").items() >= {"version": 1, "entry_identity": find_benchmark(NAME).identity("full")}.items()
    )
    assert task == {
        "task": "farshift_echo_long_ood",
        "custom_dataset": "function utils.samples",
        "dataset_kwargs": {"sheet": "ood"},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "prompt",
        "doc_to_target": "target",
        "num_fewshot": 0,
        "generation_kwargs": greedy,
        "process_results": "function utils.process_results",
        "metric_list": [{"metric": "token_accuracy", "aggregation": "mean", "higher_is_better": True}],
    }
    group = yaml.safe_load((folder / "farshift_echo_long.yaml").read_bytes())
    names = {f"{name}.yaml" for name in [group["group"], *group["task"]]}
    assert names == {path.name for path in folder.glob("*.yaml")}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_exported_code_compiles_and_the_readme_warns_of_labels(exported, tool):
    folder, _ = exported(tool)
    (code,) = folder.glob("*.py")
    compile(code.read_text("utf-8"), code.name, "exec")
    readme = (folder / "README.md").read_text("utf-8")
    for words in ("holds the true labels", "Farshift must be installed", find_benchmark(NAME).identity("full")):
        assert words in readme


def test_the_command_is_safe_to_paste_whatever_the_folder_is_called(tmp_path):
    out = tmp_path / "my task; rm -rf $HOME"
    assert str(out) in shlex.split(export_benchmark(NAME, "lm-eval", out)["command"])
    inspect = shlex.split(export_benchmark(NAME, "inspect", tmp_path / "it's")["command"])
    assert inspect[:3] == ["inspect", "eval", f"{tmp_path}/it's/task.py@farshift_echo_long"]


def test_an_empty_folder_is_filled_and_an_export_that_is_there_is_left_as_it_is(tmp_path):
    folder = tmp_path / "task"
    folder.mkdir()
    export_benchmark(NAME, "inspect", folder)
    (folder / "__pycache__").mkdir()
    before = (folder / "task.py").stat().st_mtime_ns
    export_benchmark(NAME, "inspect", folder)
    assert (folder / "task.py").stat().st_mtime_ns == before


def test_a_folder_that_holds_something_else_is_refused_and_kept(tmp_path):
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "thesis.tex").write_text("years of work")
    with pytest.raises(FarshiftError, match=r"has other content than this export: choose another --out"):
        export_benchmark(NAME, "inspect", tmp_path / "task")
    export_benchmark(NAME, "inspect", tmp_path / "other")
    with pytest.raises(FarshiftError, match="has other content"):
        export_benchmark(NAME, "lm-eval", tmp_path / "other")
    assert contents(tmp_path / "task") == {"thesis.tex": b"years of work"}


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(path: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(FarshiftError, match="no space left"):
        export_benchmark(NAME, "inspect", tmp_path / "task")
    assert list(tmp_path.iterdir()) == []


def test_another_runner_is_one_more_file(home, tmp_path, monkeypatch):
    own = tmp_path / "home" / "benchmarks" / "interop" / "plain_text.py"
    own.parent.mkdir(parents=True)
    own.write_text(
        "def files(exported):\n    return {name: samples[0]['prompt'].encode() for name, samples in exported.sheets.items()}\n"
        "def command(exported, folder):\n    return f'cat {exported.name}'\n"
    )
    monkeypatch.setenv("FARSHIFT_PATH", f"{home}{os.pathsep}{tmp_path / 'home'}")
    result = export_benchmark(NAME, "plain-text", tmp_path / "task")
    assert result == {"rows": 43, "files": ["id", "id_val", "ood"], "command": "cat farshift_echo_long"}
    assert (tmp_path / "task" / "ood").read_text("utf-8").startswith('Reverse the "words"')


def test_what_cannot_be_exported_is_one_line(farshift, tmp_path):
    assert "no prompt to export: benchmarks with one are addition/carry, addition/length, " in one_line_error(
        farshift("benchmarks", "export", "optdigits/writers", "--to", "lm-eval", "--out", tmp_path / "task")
    )
    assert "no runner named 'helm': choose from inspect, lm-eval" in one_line_error(
        farshift("benchmarks", "export", NAME, "--to", "helm", "--out", tmp_path / "task")
    )


@pytest.mark.parametrize(
    ("task", "metric", "rule", "complaint"),
    [
        ('type = "regression"', "rmse", "last", "is a regression task"),
        ('type = "classification", classes = 2', "macro_f1", "last", "by macro_f1, which is not a mean over rows"),
        ('type = "classification", classes = 2', "nll", "last", "is scored by nll"),
        ('type = "sequence"', "exact_match", "leave_one_group_out", "which trains additional models"),
    ],
)
def test_a_benchmark_that_other_runners_cannot_score_is_refused(
    home, tmp_path, monkeypatch, task, metric, rule, complaint
):
    definition = home / "benchmarks/definitions/echo-long.toml"
    lines = definition.read_text("utf-8").replace(NAME, "echo/odd", 1).replace('type = "sequence"', task).split("\n")
    lines += ["[protocol]", f'selection = ["{rule}"]']
    lines = [f'metrics = [{{ name = "{metric}", version = 1 }}]' if "metrics" in line else line for line in lines]
    other = tmp_path / "home" / "benchmarks" / "definitions" / "echo-odd.toml"
    other.parent.mkdir(parents=True)
    other.write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setenv("FARSHIFT_PATH", f"{home}{os.pathsep}{tmp_path / 'home'}")
    with pytest.raises(FarshiftError, match=complaint):
        export_benchmark("echo/odd", "inspect", tmp_path / "task")


texts = st.text(st.characters(codec="utf-8"))


@pytest.fixture(scope="module")
def task(home):
    benchmark = find_benchmark(NAME)
    return benchmark, make_export(benchmark)


def log(sitting, sheet, said) -> Log:
    samples = [LogSample("here", row["row_id"], row["entry_identity"], [row["prompt"]], said) for row in sheet]
    return Log((sitting,), "tiny", "", samples)


@given(st.data(), st.integers(1, 4), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_answer_is_in_one_seed_and_every_seed_is_whole(task, data, passes, one_by_one):
    benchmark, built = task
    logs = [
        log((number, name) if one_by_one else number, sheet, f"pass {number}")
        for number, (name, sheet) in product(range(passes), built.sheets.items())
    ]
    seeds = combine_logs(benchmark, built.grader.prompt, data.draw(st.permutations(logs)))[0]
    rows = {int(sample["row_id"], 16) for sheet in built.sheets.values() for sample in sheet}
    assert [set(output) for output in seeds] == [rows] * passes
    for row in rows:
        assert sorted(output[row] for output in seeds) == [f"pass {number}" for number in range(passes)]
    if not one_by_one:
        assert all(len(set(output.values())) == 1 for output in seeds)


@given(st.lists(texts), texts)
def test_any_text_comes_back_from_a_task_file(stop, title):
    assert yaml.safe_load(_format_yaml({"until": stop, "deep": {"title": title}})) == {
        "until": stop,
        "deep": {"title": title},
    }
