"""The real runners, called as a user calls them, on an exported benchmark and a scripted endpoint on loopback: their
scores are the scores of the imported run.

They live in an environment of their own: that of the Python that FARSHIFT_INTEROP_PYTHON names, else `.venv-interop` in
the repository, made once of requirements-interop.txt.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import llm_server
import pytest
from farshift import read_run
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.interop import export_benchmark
from farshift.benchmarks.runs.run import Run
from farshift.benchmarks.scoring.answered_rows import RunPredictions
from interop_cases import NAME, reply_to
from support import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tools() -> Path:
    """The folder of the runners' commands, Farshift installed beside them."""
    named = os.environ.get("FARSHIFT_INTEROP_PYTHON")
    if named:
        return Path(named).parent
    home = ROOT / ".venv-interop"
    ready = home / ".ready"
    expected = (ROOT / "requirements-interop.txt").read_text()
    if not ready.exists() or ready.read_text() != expected:
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        python = home / "bin" / "python"
        install = [python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt"]
        subprocess.run([*install, "-r", ROOT / "requirements-interop.txt", "-e", ROOT], check=True)
        ready.write_text(expected)
    return home / "bin"


def typed(command: str, tools: Path, **environment: str) -> None:
    """Run a command as a user types it, from a folder that has nothing to do with it."""
    name, *arguments = shlex.split(command)
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OPENAI_API_KEY": "none"}
    done = subprocess.run(
        [tools / name, *arguments],
        cwd="/",
        env=os.environ | offline | environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def imported(tools: Path, logs: list[Path], source: str, out: Path) -> tuple[Run, dict[str, float]]:
    """The run, and its scores not rounded, that Farshift makes of the logs, called beside the runners."""
    command = [
        tools / "farshift",
        "benchmarks",
        "import",
        *logs,
        "--from",
        source,
        "--on",
        NAME,
        "--out",
        out,
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    run = read_run(out)
    benchmark = find_benchmark(NAME)
    scored = RunPredictions(benchmark, run.predictions(), run)
    views = {name: scored.view(name, {0: "last"}).value(benchmark.metrics[0]) for name in ("id", "ood")}
    for name, value in views.items():
        assert 0 < value < 1
        assert json.loads(done.stdout)["score"][name]["value"] == pytest.approx(value, abs=1e-6)
    return run, views


@pytest.mark.parametrize(
    ("backend", "path", "more"),
    [
        ("local-completions", "completions", ""),
        ("local-chat-completions", "chat/completions", " --apply_chat_template"),
    ],
)
def test_lm_eval_and_the_imported_run_have_one_score(tools, home, tmp_path, backend, path, more):
    command = export_benchmark(NAME, "lm-eval", tmp_path / "task")["command"]
    with llm_server.llm(reply_to) as server:
        model = f"model=tiny,base_url={server.url}/{path},tokenizer_backend=None,tokenized_requests=False"
        arguments = f"--model {backend} --model_args {model}{more}"
        typed(command.replace("--model hf --model_args pretrained=MODEL", arguments), tools)
    logs = sorted((tmp_path / "task-logs").glob("*/samples_*.jsonl"))
    (results,) = (tmp_path / "task-logs").glob("*/results_*.json")
    theirs = json.loads(results.read_text())["results"]
    run, ours = imported(tools, logs, "lm-eval", tmp_path / "run")
    assert (run.model, run.card.model.extra["prompt"]) == ("tiny", "exact")
    for view, value in ours.items():
        assert value == pytest.approx(theirs[f"farshift_echo_long_{view}"]["token_accuracy,none"], abs=1e-9)


class _Complete(llm_server._Handler):
    """Says what Inspect insists on besides: the model's name and the total of its tokens."""

    def _said(self, request, prompt, fault):
        body = super()._said(request, prompt, fault)
        usage = body["usage"] | {"total_tokens": sum(body["usage"].values())}
        return body | {"model": request["model"], "usage": usage}


@pytest.mark.parametrize("form", ["eval", "json"])
def test_inspect_and_the_imported_run_have_one_score(tools, home, tmp_path, monkeypatch, form):
    monkeypatch.setattr(llm_server, "_Handler", _Complete)
    command = export_benchmark(NAME, "inspect", tmp_path / "task")["command"].replace("MODEL", "openai-api/loop/tiny")
    with llm_server.llm(reply_to) as server:
        typed(f"{command} --display plain --log-format {form}", tools, LOOP_BASE_URL=server.url, LOOP_API_KEY="none")
    (log,) = (tmp_path / "task-logs").glob(f"*.{form}")
    script = (
        "import json, sys; from inspect_ai.log import read_eval_log; log = read_eval_log(sys.argv[1]); "
        "print(json.dumps({name: one.value for name, one in log.results.scores[0].metrics.items()}))"
    )
    done = subprocess.run([tools / "python", "-c", script, log], capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout)
    run, ours = imported(tools, [log], "inspect", tmp_path / "run")
    assert (run.model, run.card.model.extra["prompt"]) == ("openai-api/loop/tiny", "exact")
    for view, value in ours.items():
        assert value == pytest.approx(theirs[view], abs=1e-9)
