"""Inspect: a benchmark as a task file, and Inspect's logs (`.eval` or `.json`), read by Inspect's reader.

Written for and tested with inspect_ai 0.3.285.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.errors import BadRun, MissingExtra, get_first_line, replace_error_message
from . import Log, LogSample
from ._sheets import ExportedBenchmark

_CODE = '''\
"""The tasks of this folder: each sheet of samples on its own, and all of them in one."""

from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, MemoryDataset, json_dataset
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Score, grouped, mean, scorer
from inspect_ai.solver import generate

from farshift.benchmarks.prompting.grading import Grader

HERE = Path(__file__).parent
GRADER = Grader.read(HERE / "benchmark.json")
FIELDS = FieldSpec(
    id="row_id", input="prompt", target="target", metadata=["row_id", "part", "view", "label", "entry_identity"]
)


@scorer([grouped(mean(), "view", all=False)], name=GRADER.metric.name)
def graded():
    """The benchmark's metric of what the model said; its mean by view."""

    async def score(state, target):
        said = state.output.completion
        return Score(value=GRADER.value(said, state.metadata["label"]), answer=str(GRADER.prompt.read(said)))

    return score


def asked(*sheets):
    samples = [one for sheet in sheets for one in json_dataset(str(HERE / "data" / f"{{sheet}}.jsonl"), FIELDS)]
    pin = GRADER.prompt.pin
    return Task(
        dataset=MemoryDataset(samples, name="{name}"),
        solver=generate(),
        scorer=graded(),
        config=GenerateConfig(temperature=0.0, max_tokens=pin.max_tokens, stop_seqs=pin.stop or None),
        version=pin.version,
        metadata={metadata},
    )
'''


def command(exported: ExportedBenchmark, folder: Path) -> str:
    """Return the command that runs the exported benchmark from any folder; its logs are written beside it."""
    return _format_run_command(exported, f"{folder}/task.py", f"{folder}-logs")


def _format_run_command(exported: ExportedBenchmark, file: str, logs: str) -> str:
    return f"inspect eval {shlex.quote(f'{file}@{exported.name}')} --model MODEL --log-dir {shlex.quote(logs)}"


def files(exported: ExportedBenchmark) -> dict[str, bytes]:
    """Return the exported folder: a task file, and the samples of each sheet."""
    run = _format_run_command(exported, "task.py", "../logs")
    contents = exported.write_files("Inspect", "inspect", run, "../logs/*.eval")
    return contents | {"task.py": _format_task_code(exported).encode()}


def _format_task_code(exported: ExportedBenchmark) -> str:
    sheets = {task: repr(sheet) for task, sheet in exported.tasks.items()}
    tasks = {exported.name: ", ".join(sheets.values())} | sheets
    functions = [f"\n\n@task\ndef {task}():\n    return asked({names})\n" for task, names in tasks.items()]
    return _CODE.format(name=exported.name, metadata=exported.metadata()) + "".join(functions)


def logs(paths: Sequence[Path]) -> list[Log]:
    """Read Inspect's logs: those of one call for one model belong together, separately for each epoch. `MissingExtra`
    if Inspect is not installed."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise replace_error_message(
            MissingExtra, "reading Inspect's logs needs inspect_ai: import them in an environment with Inspect"
        ) from error
    return [log for path in paths for log in _split_epochs(path, _open_log(read_eval_log, path))]


def _open_log(read: Any, path: Path) -> Any:
    try:
        return read(str(path), resolve_attachments="core", exclude_fields={"events", "store"})
    except MemoryError:  # does not mean that the file is damaged
        raise
    except Exception as error:  # its reader may raise anything for a damaged or foreign file
        first = get_first_line(error, 200)
        raise BadRun(f"{path} cannot be read as a log of Inspect: {first}") from error


def _split_epochs(path: Path, log: Any) -> list[Log]:
    if log.status != "success":
        # Its unfinished samples would count as failed predictions.
        raise BadRun(f"{path} is unfinished (status {log.status}): finish it by `inspect eval-retry` first")
    epochs: dict[int, list[LogSample]] = {}
    for sample in log.samples or ():
        epochs.setdefault(sample.epoch, []).append(_read_sample(sample, f"{path}, sample {sample.id}"))
    version = log.eval.packages.get("inspect_ai")
    tool = f"inspect {version}" if version else ""
    return [
        Log((log.eval.run_id, log.eval.model, epoch), log.eval.model, tool, samples)
        for epoch, samples in sorted(epochs.items())
    ]


def _read_sample(sample: Any, where: str) -> LogSample:
    """The model's input is all of the conversation before its answer."""
    sent = [message.text for message in sample.messages if message.role != "assistant"]
    output = sample.output.completion if sample.output.choices else None
    return LogSample(where, sample.metadata.get("row_id"), sample.metadata.get("entry_identity"), sent, output)
