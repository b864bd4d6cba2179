"""Import: a run of what another runner recorded. The logs are written here, in the form that the runner gives them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from farshift import FarshiftError, evaluate, score
from farshift.benchmarks.answers import FAILED
from farshift.benchmarks.interop import export_benchmark, import_run
from farshift.benchmarks.runs.run import Run
from farshift.benchmarks.scoring.shown_rows import show_rows
from farshift.core.errors import BadRun, MissingExtra
from interop_cases import NAME, reply_to
from support import one_line_error

TIMES = [f"2026-11-21T12-34-5{second}.488568" for second in range(10)]


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="module")
def task(home, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "task"
    export_benchmark(NAME, "lm-eval", folder)
    return folder


def samples_of(task: Path, sheet: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (task / "data" / f"{sheet}.jsonl").read_text("utf-8")[:-1].split("\n")]


def sample_line(doc: dict[str, Any], said: str, sent: Any = None) -> dict[str, Any]:
    """A sample as lm-evaluation-harness 0.4.13 logs it; its score is a lie, which nobody should read."""
    line = {"doc_id": 0, "doc": doc, "target": doc["target"], "resps": [[said]], "filtered_resps": [said]}
    line |= {"filter": "none", "metrics": ["token_accuracy"], "token_accuracy": 1.0}
    arguments = {"arg_0": doc["prompt"] if sent is None else sent, "arg_1": {"until": ["\n"]}}
    return (
        line | dict.fromkeys(("doc_hash", "prompt_hash", "target_hash"), "0") | {"arguments": {"gen_args_0": arguments}}
    )


def lm_eval_logs(
    task: Path,
    folder: Path,
    time: str = TIMES[0],
    says: Callable[[str], str] = reply_to,
    sends: Callable[[str], Any] = lambda prompt: prompt,
    model: str = "tiny/model",
) -> list[Path]:
    """The logs of one call of lm-evaluation-harness, a file a task, in a folder named after the model."""
    folder.mkdir(parents=True, exist_ok=True)
    results = {"results": {}, "model_name": model, "lm_eval_version": "0.4.13"}
    (folder / f"results_{time}.json").write_text(json.dumps(results))
    written = []
    for sheet in ("id", "id_val", "ood"):
        docs = samples_of(task, sheet)
        lines = [sample_line(doc, says(doc["prompt"]), sends(doc["prompt"])) for doc in docs]
        written.append(folder / f"samples_farshift_echo_long_{sheet}_{time}.jsonl")
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        written[-1].write_text(text, encoding="utf-8")
    return written


def rewritten(path: Path, change: Callable[[list[str]], list[str]]) -> Path:
    """A log with other lines."""
    lines = path.read_text("utf-8")[:-1].split("\n")
    path.write_text("".join(line + "\n" for line in change(lines)), encoding="utf-8")
    return path


def edited(line: str, **fields: Any) -> str:
    return json.dumps(json.loads(line) | fields)


class _Asked:
    """A model of one's own that says the same, asked by the harness."""

    def __init__(self, prompt):
        self.prompt = prompt

    def predict(self, batch):
        return [self.prompt.read(reply_to(text)) for text in self.prompt.texts(batch)]


def test_an_imported_run_scores_as_if_the_harness_had_asked(task, tmp_path):
    run = import_run(lm_eval_logs(task, tmp_path / "logs"), "lm-eval", NAME, tmp_path / "run")
    requested = evaluate(_Asked, NAME, seeds=1, out=tmp_path / "asked")
    there, here = score(run), score(requested)
    for name in ("entry_identity", "id", "ood", "gap", "views", "metrics", "severity"):
        assert getattr(there, name) == getattr(here, name)
    assert 0 < there.ood.value < 1


def test_the_run_card_says_where_the_answers_come_from(task, tmp_path):
    run = import_run(lm_eval_logs(task, tmp_path / "logs"), "lm-eval", NAME, tmp_path / "run")
    card = run.card.to_dict()["model"]
    expected = {"name": "tiny/model", "kind": "imported", "tool": "lm-eval 0.4.13", "prompt": "exact"}
    assert card.items() >= expected.items()
    other = lm_eval_logs(task, tmp_path / "other", says=lambda prompt: "something else")
    again = import_run(other, "lm-eval", NAME, tmp_path / "again", name="mine")
    assert again.card.model.name == "mine"
    assert again.card.model.code != card["code"]


def test_a_model_in_a_local_folder_goes_by_the_folder_s_name_and_a_text_without_an_answer_fails(task, tmp_path):
    model = str(tmp_path / "secret" / "tiny-7b")
    logs = lm_eval_logs(task, tmp_path / "logs", model=model, says=lambda prompt: " \n")
    run = import_run(logs, "lm-eval", NAME, tmp_path / "run")
    assert run.model == "tiny-7b"
    assert set(run.predictions()["status"].to_pylist()) == {FAILED}
    assert score(run).ood.value == 0.0


def test_a_text_that_no_file_can_hold_is_a_failed_row(task, tmp_path):
    logs = lm_eval_logs(task, tmp_path / "logs", says=lambda prompt: "fine")
    rewritten(logs[0], lambda lines: [edited(lines[0], resps=[["half \ud800"]]), *lines[1:]])
    run = import_run(logs, "lm-eval", NAME, tmp_path / "run")
    assert run.predictions()["status"].to_pylist().count(FAILED) == 1
    rows = show_rows(run, 1000, "id")
    assert {row["output"] for row in rows} == {"fine", "half \ud800"}


def test_the_same_import_again_gives_the_finished_run(task, tmp_path):
    logs = lm_eval_logs(task, tmp_path / "logs")
    first = import_run(logs, "lm-eval", NAME, tmp_path / "run")
    assert import_run(logs, "lm-eval", NAME, tmp_path / "run").digest == first.digest
    other = lm_eval_logs(task, tmp_path / "logs", TIMES[1], says=lambda prompt: "no")
    with pytest.raises(BadRun, match="has a finished run"):
        import_run(other, "lm-eval", NAME, tmp_path / "run")


def test_every_call_of_the_runner_is_a_seed_whatever_the_order_of_its_files(task, tmp_path):
    calls = [lm_eval_logs(task, tmp_path / "logs", TIMES[n], says=lambda prompt, n=n: f"word{n}") for n in range(3)]
    by_task = [call[position] for position in range(3) for call in calls]
    run = import_run(by_task, "lm-eval", NAME, tmp_path / "run")
    assert run.seeds == (0, 1, 2)
    result = run.predictions().group_by("seed").aggregate([("prediction", "distinct")]).sort_by("seed")
    assert result["prediction_distinct"].to_pylist() == [["word0"], ["word1"], ["word2"]]


def test_tasks_that_were_run_one_by_one_make_one_seed(task, tmp_path):
    logs = [lm_eval_logs(task, tmp_path / "logs", TIMES[position])[position] for position in range(3)]
    assert import_run(logs, "lm-eval", NAME, tmp_path / "run").seeds == (0,)


def test_files_that_were_renamed_are_told_apart_by_their_rows(task, tmp_path):
    renamed = []
    for seed in range(2):
        for path in lm_eval_logs(task, tmp_path / f"logs{seed}", says=lambda prompt, n=seed: f"word{n}"):
            renamed.append(path.rename(tmp_path / f"{seed}-{path.name.split('_2026')[0]}.jsonl"))
    run = import_run(renamed, "lm-eval", NAME, tmp_path / "run", name="mine")
    assert run.seeds == (0, 1)
    assert run.card.model.extra["tool"] == "lm-eval"
    with pytest.raises(BadRun, match="do not name the model: give --name"):
        import_run(renamed, "lm-eval", NAME, tmp_path / "nameless")


def chat(prompt: str) -> list[str]:
    """What lm-evaluation-harness logs of a prompt that went to a chat endpoint."""
    return [json.dumps([{"role": "user", "content": prompt, "type": "text"}], ensure_ascii=False)]


@pytest.mark.parametrize(
    ("sends", "prompt"),
    [
        (chat, "exact"),
        (lambda prompt: f"<|user|>{prompt}<|assistant|>", "wrapped"),
        (lambda prompt: [json.dumps([{"content": "Be brief."}, {"content": prompt}])], "wrapped"),
    ],
)
def test_a_prompt_within_something_else_is_said_on_the_card(task, tmp_path, sends, prompt):
    run = import_run(lm_eval_logs(task, tmp_path / "logs", sends=sends), "lm-eval", NAME, tmp_path / "run")
    assert run.card.model.extra["prompt"] == prompt


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda lines: [*lines[:-1], lines[-1][:50]], r"line 12, is not JSON: the file is truncated"),
        (lambda lines: [lines[0], "{", *lines[1:]], r"line 2, is not JSON: the file was edited"),
        (lambda lines: [], r"line 1, is not JSON"),
        (lambda lines: ["[" * 100_000, *lines], r"line 1, is not JSON"),
        (lambda lines: ["[]", *lines], r"line 1, is not one prompt with one response"),
        (lambda lines: [edited(lines[0], resps=[["a", "b"]])], r"is not one prompt with one response"),
        (lambda lines: [edited(lines[0], resps=[[7]])], r"is not one prompt with one response"),
        (lambda lines: [edited(lines[0], arguments={})], r"is not one prompt with one response"),
        (lambda lines: [edited(lines[0], doc={"question": "?"})], r"line 1, has no row id"),
        (
            lambda lines: lines[1:],
            r"seed 0 has 42 of the 43 rows .* 1 missing row ids \(first [0-9a-f]{16}\); run every exported task without",
        ),
        (
            lambda lines: [lines[0].replace('"entry_identity": "', '"entry_identity": "00')],
            r"line 1, is of another benchmark, or of another version of it \(identity 00",
        ),
        (
            lambda lines: [edited(lines[0], doc=json.loads(lines[0])["doc"] | {"row_id": "0" * 16})],
            r"0000000000000000 is not a predicted row of echo/long",
        ),
        (
            lambda lines: [lines[0].replace('"arg_0": "Reverse', '"arg_0": "Please reverse')],
            r"line 1, was sent another prompt than echo/long exports",
        ),
    ],
)
def test_a_log_that_is_not_what_was_exported_is_one_line(task, tmp_path, change, complaint):
    logs = lm_eval_logs(task, tmp_path / "logs")
    rewritten(logs[0], change)
    with pytest.raises(BadRun, match=complaint) as refused:
        import_run(logs, "lm-eval", NAME, tmp_path / "run")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_logs_that_do_not_belong_together_are_refused(task, tmp_path):
    logs = lm_eval_logs(task, tmp_path / "a", model="a")
    others = lm_eval_logs(task, tmp_path / "b", model="b", says=lambda prompt: "other")
    with pytest.raises(BadRun, match=r"several models \(a, b\): import each separately"):
        import_run([*logs, *others], "lm-eval", NAME, tmp_path / "run")
    assert import_run([*logs, *others], "lm-eval", NAME, tmp_path / "run", name="both").seeds == (0, 1)
    with pytest.raises(BadRun, match=r"is the same log as .*: give each log once"):
        import_run([*logs, logs[0]], "lm-eval", NAME, tmp_path / "twice")


@pytest.mark.parametrize(
    ("files", "source", "on", "complaint"),
    [
        (["absent.jsonl"], "lm-eval", NAME, "cannot be read"),
        (["picture.jsonl"], "lm-eval", NAME, "cannot be read as text"),
        (["."], "lm-eval", NAME, "cannot be read"),
        ([], "lm-eval", NAME, "these logs have no samples"),
        (["absent"], "helm", NAME, "no runner named 'helm'"),
        (["absent"], "lm-eval", "optdigits/writers", "no prompt"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, files, source, on, complaint):
    (tmp_path / "picture.jsonl").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(FarshiftError, match=complaint):
        import_run([tmp_path / name for name in files], source, on, tmp_path / "run")


def test_the_command_prints_the_score_of_the_import(task, tmp_path, farshift, farshift_json):
    logs = lm_eval_logs(task, tmp_path / "logs")
    arguments = ["--from", "lm-eval", "--on", NAME, "--out", tmp_path / "run"]
    result = farshift_json("benchmarks", "import", *logs, *arguments)
    assert result["score"]["model"] == "tiny/model"
    arguments = ["--from", "lm-eval", "--on", NAME, "--out", tmp_path / "other"]
    assert "seed 0 has 12 of the 43 rows" in one_line_error(farshift("benchmarks", "import", logs[0], *arguments))


def inspect_log(task: Path, epochs: int = 1, status: str = "success") -> SimpleNamespace:
    """A log of Inspect 0.3.285 as its reader gives it, as far as it is read."""
    samples = [
        SimpleNamespace(
            id=doc["row_id"],
            epoch=epoch,
            metadata={key: doc[key] for key in ("row_id", "entry_identity")},
            messages=[
                SimpleNamespace(role="user", text=doc["prompt"]),
                SimpleNamespace(role="assistant", text=f"word{epoch}"),
            ],
            output=SimpleNamespace(choices=["one"], completion=f"word{epoch}"),
        )
        for sheet in ("id", "id_val", "ood")
        for doc in samples_of(task, sheet)
        for epoch in range(1, epochs + 1)
    ]
    spec = SimpleNamespace(run_id="run", model="mockllm/model", packages={"inspect_ai": "0.3.285"})
    return SimpleNamespace(status=status, eval=spec, samples=samples)


def installed(monkeypatch: pytest.MonkeyPatch, read_eval_log: Callable[..., Any]) -> None:
    """Stands for an installed Inspect with this reader; the real one reads real logs in test_interop_real.py."""
    module = ModuleType("inspect_ai.log")
    vars(module)["read_eval_log"] = read_eval_log
    monkeypatch.setitem(sys.modules, "inspect_ai", ModuleType("inspect_ai"))
    monkeypatch.setitem(sys.modules, "inspect_ai.log", module)


def import_inspect(folder: Path, log: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Run:
    installed(monkeypatch, lambda path, **_: log)
    (folder / "a.eval").write_bytes(b"a")
    return import_run([folder / "a.eval"], "inspect", NAME, folder / "run")


def test_every_epoch_of_inspect_is_a_seed(task, tmp_path, monkeypatch):
    run = import_inspect(tmp_path, inspect_log(task, epochs=2), monkeypatch)
    assert run.seeds == (0, 1)
    assert (run.model, run.card.model.extra["tool"]) == ("mockllm/model", "inspect 0.3.285")
    result = run.predictions().group_by("seed").aggregate([("prediction", "distinct")]).sort_by("seed")
    assert result["prediction_distinct"].to_pylist() == [["word1"], ["word2"]]


def test_a_sample_that_inspect_got_no_answer_to_is_a_failed_row(task, tmp_path, monkeypatch):
    log = inspect_log(task)
    log.samples[0].output = SimpleNamespace(choices=[], completion="")
    run = import_inspect(tmp_path, log, monkeypatch)
    assert run.predictions()["status"].to_pylist().count(FAILED) == 1


def test_a_log_of_inspect_that_is_unfinished_or_broken_is_refused(task, tmp_path, monkeypatch):
    with pytest.raises(BadRun, match=r"a.eval is unfinished \(status error\): finish it by `inspect eval-retry`"):
        import_inspect(tmp_path, inspect_log(task, status="error"), monkeypatch)

    def broken(path: str, **_: Any) -> None:
        raise ValueError("File is not a zip file\nand more")

    installed(monkeypatch, broken)
    with pytest.raises(BadRun, match=r"a.eval cannot be read as a log of Inspect: File is not a zip file$"):
        import_run([tmp_path / "a.eval"], "inspect", NAME, tmp_path / "run")


def test_without_inspect_its_logs_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    (tmp_path / "a.eval").write_bytes(b"a")
    with pytest.raises(MissingExtra, match="needs inspect_ai: import them in an environment with Inspect"):
        import_run([tmp_path / "a.eval"], "inspect", NAME, tmp_path / "run")
