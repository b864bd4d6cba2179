"""lm-evaluation-harness: a benchmark as a group of tasks, and the harness's sample logs (`--log_samples`).

Written for and tested with version 0.4.13. Its logs are read without it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...core.documents import parse_json, read_json
from ...core.errors import BadRun
from . import Log, LogSample
from ._sheets import ExportedBenchmark

_CODE = '''\
"""What the tasks of this folder call: their samples, and the grade of an answer."""

import json
from pathlib import Path

import datasets

try:
    from farshift.benchmarks.prompting.grading import Grader
except ImportError:
    raise SystemExit("utils.py grades by Farshift: pip install farshift, in the environment of lm_eval") from None

HERE = Path(__file__).parent
GRADER = Grader.read(HERE / "benchmark.json")


def samples(sheet, **metadata):
    """The samples of a task, found beside this file from wherever the tool is called."""
    with (HERE / "data" / f"{sheet}.jsonl").open(encoding="utf-8", newline="\\n") as lines:
        return {"test": datasets.Dataset.from_list([json.loads(line) for line in lines])}


def process_results(doc, results):
    """The metric of one sample, of what the model said."""
    return {GRADER.metric.name: GRADER.value(results[0], doc["label"])}
'''

_LOG_NAME = re.compile(r"samples_.*_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.jsonl")


def command(exported: ExportedBenchmark, folder: Path) -> str:
    """Return the command that runs the exported benchmark from any folder; its logs are written beside it."""
    where, logs = shlex.quote(str(folder)), shlex.quote(f"{folder}-logs")
    return f"{_format_run_command(exported, where)} --output_path {logs}"


def _format_run_command(exported: ExportedBenchmark, include: str) -> str:
    return (
        "lm_eval run --model hf --model_args pretrained=MODEL "
        f"--tasks {exported.name} --include_path {include} --log_samples"
    )


def files(exported: ExportedBenchmark) -> dict[str, bytes]:
    """Return the exported folder: a group, a task and the samples for each sheet, and the grading code."""
    version, run = exported.grader.prompt.pin.version, f"{_format_run_command(exported, '.')} --output_path ../logs"
    contents = exported.write_files("lm-evaluation-harness", "lm-eval", run, "../logs/*/samples_*.jsonl")
    group = {"group": exported.name, "task": [*exported.tasks], "metadata": {"version": version}}
    contents |= {"utils.py": _CODE.encode(), f"{exported.name}.yaml": _format_yaml(group)}
    for task, sheet in exported.tasks.items():
        contents[f"{task}.yaml"] = _format_task(exported, task, sheet)
    return contents


class _Function(str):
    """The name of a function in utils.py, which the tool imports."""


def _format_task(exported: ExportedBenchmark, name: str, sheet: str) -> bytes:
    """A task of the tool: unchanged prompts, greedy decoding up to a stop string, each output graded by itself."""
    grader = exported.grader
    return _format_yaml(
        {
            "task": name,
            # The tool resolves relative paths from its working directory: a function finds its files from anywhere, and
            # reads every text as text (a JSON loader parses some as dates).
            "custom_dataset": _Function("utils.samples"),
            "dataset_kwargs": {"sheet": sheet},
            "test_split": "test",
            "output_type": "generate_until",
            "doc_to_text": "prompt",
            "doc_to_target": "target",
            "num_fewshot": 0,
            "generation_kwargs": {
                "until": list(grader.prompt.pin.stop),
                "max_gen_toks": grader.prompt.pin.max_tokens,
                "do_sample": False,
                "temperature": 0.0,
            },
            "process_results": _Function("utils.process_results"),
            "metric_list": [
                {
                    "metric": grader.metric.name,
                    "aggregation": "mean",
                    "higher_is_better": grader.metric.better == "higher",
                }
            ],
            "metadata": {"version": grader.prompt.pin.version, **exported.metadata()},
        }
    )


def _format_yaml(fields: dict[str, Any]) -> bytes:
    """Format YAML with one field per line; values in the syntax that YAML shares with JSON."""
    return "".join(f"{name}: {_format_value(value)}\n" for name, value in fields.items()).encode()


def _format_value(value: Any) -> str:
    if isinstance(value, _Function):
        return f"!function {value}"
    # JSON escapes a character beyond 16 bits as two, which YAML reads as two characters.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isascii() and letter != "\x7f" else f"\\U{ord(letter):08x}" for letter in text)


def logs(paths: Sequence[Path]) -> list[Log]:
    """Read the tool's `samples_<task>_<time>.jsonl`: all files of one call have one time, and are beside its
    `results_<time>.json`, which has the model's name and the tool's version."""
    return [_read_log(path) for path in paths]


def _read_log(path: Path) -> Log:
    named = _LOG_NAME.fullmatch(path.name)
    time = named["time"] if named else ""
    results = _read_results(path.parent, time) if time else {}
    version = results.get("lm_eval_version")
    return Log(
        (str(path.resolve().parent), time) if time else (str(path.resolve()),),
        str(results.get("model_name") or ""),
        f"lm-eval {version}" if version else "",
        list(_iterate_samples(path)),
    )


def _read_results(folder: Path, time: str) -> dict[str, Any]:
    """Read the tool's record of a call; empty if the file is missing or not the tool's."""
    for path in sorted(folder.glob(f"*_{time}.json")):
        try:
            content = read_json(path)
        except (OSError, ValueError):
            continue
        if isinstance(content, dict):
            return content
    return {}


def _iterate_samples(path: Path) -> Iterator[LogSample]:
    try:
        lines = path.read_text("utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRun(f"{path} cannot be read as text: give the tool's samples_*.jsonl ({error})") from error
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            sample = parse_json(line, surrogates=True)
        except ValueError as error:
            last = "the file is truncated" if number == len(lines) else "the file was edited"
            raise BadRun(f"{where}, is not JSON: {last}, or it is not a samples_*.jsonl") from error
        yield _read_sample(sample, where)


def _read_sample(sample: Any, where: str) -> LogSample:
    try:
        doc, sent, ((output,),) = sample["doc"], sample["arguments"]["gen_args_0"]["arg_0"], sample["resps"]
        row_id, identity, texts = doc.get("row_id"), doc.get("entry_identity"), _extract_texts(sent)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        texts, output = [], None
    if not texts or not all(isinstance(text, str) for text in (*texts, output)):
        raise BadRun(f"{where}, is not one prompt with one response: give the samples_*.jsonl of an exported task")
    return LogSample(where, row_id, identity, texts, output)


def _extract_texts(sent: Any) -> list[Any]:
    """The texts sent: a prompt, or for a chat endpoint its messages as JSON in a list of one."""
    if isinstance(sent, str):
        return [sent]
    (messages,) = sent
    return [message["content"] for message in json.loads(messages)]
