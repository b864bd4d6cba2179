"""Other runners of language models: export a benchmark as their task, and import their log as a run. One file each.

A module has

    command(exported, folder) -> str                the command that runs the exported benchmark, MODEL left open
    files(exported) -> dict[str, bytes]             the folder of an `ExportedBenchmark` (_sheets.py), by path
    logs(paths) -> Sequence[Log]                    the runner's logs; `BadRun` says what is wrong

A runner's scores are not read: only the model's output, which is graded here by the same code (prompting/grading.py).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ...core.canonical import compute_identity
from ...core.errors import BadRun, FarshiftError, UnknownName
from ...core.files import compute_file_sha256, get_lock_path, hold_lock, translate_os_errors
from ...core.plugins import find_files_by_name, load_module
from ..benchmark import Benchmark, find_benchmark
from ..harness.evaluate import ONLY, write_recorded_run
from ..model_inputs.load import load_model_inputs
from ..prompting.grading import extract_answers
from ..prompting.prompt import Prompt
from ..runs.predictions import FILE, add_outputs
from ..runs.run import Run
from ..scoring.completeness import describe_row_id_problem
from ._sheets import iterate_prompts, make_export, require_prompt

_FOLDER = "benchmarks/interop"


def export_benchmark(name: str, to: str, out: Path) -> dict[str, Any]:
    """Write a benchmark as a task of another runner (`lm-eval`, `inspect`) into the folder `out`.

    Each row that a run predicts becomes a sample with its row id, its part, its whole prompt and its true label: the
    folder has labels, which runners need. The export is deterministic.

    Returns `rows` (their number), `files` (their paths within the folder, sorted) and `command` (the next one to run).
    Raises `FarshiftError` if the benchmark cannot be written as texts, or `out` has other content.
    """
    tool = _load_runner(to)
    task = make_export(find_benchmark(name))
    files = tool.files(task)
    _write_folder(out, files)
    return {"rows": task.rows, "files": sorted(files), "command": tool.command(task, out.resolve())}


def _write_folder(out: Path, files: Mapping[str, bytes]) -> None:
    """Write `files`, by their path within it, as the folder `out`, atomically; nothing is done if all are there.

    Files that a runner adds to the folder (compiled code, logs) are not touched. Raises `FarshiftError` if `out` is a
    file, or a folder with anything but these files.
    """
    with hold_lock(get_lock_path(out), str(out)), translate_os_errors(out, "name another --out"):
        if all((out / name).is_file() and (out / name).read_bytes() == content for name, content in files.items()):
            return
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise FarshiftError(f"{out} has other content than this export: choose another --out, or remove it")
        target = out.resolve()
        beside = target.with_name(f".{target.name}.tmp")
        shutil.rmtree(beside, ignore_errors=True)  # left by a process that was killed while writing
        try:
            for name, content in files.items():
                path = beside / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            if target.exists():
                target.rmdir()
            beside.rename(target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def import_run(files: Sequence[Path], source: str, on: str, out: Path, name: str = "") -> Run:
    """Make a run, in the folder `out`, from another runner's logs of an exported benchmark.

    files: the runner's logs of all samples. source: the runner, as in `export_benchmark`. on: the benchmark's name.
    name: the model's name on the run card, by default the one in the logs.

    The logs are combined into seeds 0, 1, 2 .. by session: the logs of one call of the runner for one model (for
    repeated samples, of one repetition) are a session; each session, in the order of `files`, goes to the first seed
    that has none of its rows. Tasks that were run one by one thus complete one seed, and the second log of a task
    begins the next.

    Predictions are extracted from the model's output by the benchmark's own extraction; where it finds none, the row's
    status is FAILED, and it counts as wrong. Raises `BadRun` if a log cannot be read, or does not have every row of
    this version of the benchmark with its prompt.
    """
    tool = _load_runner(source)
    benchmark = find_benchmark(on)
    prompt = require_prompt(benchmark)
    paths = [Path(path) for path in files]
    digests = _read_digests(paths)
    runner_logs = tool.logs(paths)
    seeds, wrapped = combine_logs(benchmark, prompt, runner_logs)
    card = {
        "name": name or _find_model_name(runner_logs),
        "kind": "imported",
        "code": compute_identity(digests),
        "tool": ", ".join(sorted({log.tool for log in runner_logs} - {""})) or source,
        "prompt": "wrapped" if wrapped else "exact",
    }
    inputs = load_model_inputs(benchmark)
    ids = {part: inputs.part(part).row_ids for part in benchmark.predicted_parts}
    answers = [
        {ONLY: {part: extract_answers([seed[int(row)] for row in of], prompt, part, of) for part, of in ids.items()}}
        for seed in seeds
    ]
    run = write_recorded_run(benchmark, out, card, answers)
    if not (run.path / FILE).exists():
        for (number, seed), (part, of) in product(zip(run.seeds, seeds, strict=True), ids.items()):
            named: dict[str, str | int] = {"part": part, "seed": number, "candidate": ONLY}
            add_outputs(run.path, named, of.tolist(), [seed[row_id] for row_id in of.tolist()])
    return run


def _load_runner(name: str) -> ModuleType:
    known = {stem.replace("_", "-") for stem in find_files_by_name(_FOLDER, ".py")}
    if name not in known:
        raise UnknownName("runner", name, known)
    return load_module(_FOLDER, name.replace("-", "_"), "runner")


_ROW_ID = re.compile(r"[0-9a-f]{16}")

Outputs = dict[int, str | None]
"""A model's outputs by row id; None if there was none."""


@dataclass(frozen=True)
class LogSample:
    """One sample of a log.

    where: file and position, for messages. row_id, entry_identity: those of the exported sample, as stored in the log,
    of any type. sent: the texts sent to the model, one of which includes the prompt. said: the model's output, None if
    there was none.
    """

    where: str
    row_id: Any
    entry_identity: Any
    sent: Sequence[str]
    output: str | None


@dataclass(frozen=True)
class Log:
    """The content of one log file: one model on the benchmark, or on some of its tasks.

    sitting: identifies the session; logs with the same value belong together. model: its name, and tool: the runner
    with its version; both empty if the log does not say.
    """

    sitting: tuple[Any, ...]
    model: str
    tool: str
    samples: Sequence[LogSample]


def _read_digests(files: Sequence[Path]) -> list[str]:
    """Return the files' sha256 in order; `BadRun` if a file is given twice, which would count as two seeds."""
    seen: dict[str, Path] = {}
    for path in files:
        try:
            digest = compute_file_sha256(path)
        except OSError as error:
            raise BadRun(f"{path} cannot be read: {error.strerror or error}") from error
        if digest in seen:
            raise BadRun(f"{path} is the same log as {seen[digest]}: give each log once")
        seen[digest] = path
    return list(seen)


def _find_model_name(logs: Sequence[Log]) -> str:
    """Return the model of the logs; for one in a local folder the folder's name: a run card has no paths."""
    models = sorted({log.model for log in logs} - {""})
    if not models:
        raise BadRun("the logs do not name the model: give --name")
    if len(models) > 1:
        raise BadRun(
            f"these logs are of several models ({', '.join(models)}): import each separately, or give --name if they "
            "are seeds of one"
        )
    return Path(models[0]).name if Path(models[0]).is_absolute() else models[0]


def combine_logs(benchmark: Benchmark, prompt: Prompt, logs: Sequence[Log]) -> tuple[list[Outputs], bool]:
    """Combine logs into seeds 0, 1, 2 .., each with every predicted row of the benchmark; return them, and whether a
    prompt was sent inside other text (a chat template, a system message).

    Logs of one session belong together. Sessions are processed in the order of the files, and each goes to the first
    seed that has none of its rows: sessions of different tasks complete one seed, and one that repeats a row begins the
    next. A row that occurs several times in a session counts as several sessions.

    Raises `BadRun` for a sample without a row id, of another benchmark, of a row that is not predicted, or with another
    prompt, and for a seed with missing rows.
    """
    expected = {
        int(row_id): text
        for _, row_ids, texts in iterate_prompts(benchmark, prompt)
        for row_id, text in zip(row_ids, texts, strict=True)
    }
    identities = [*benchmark.identities("full")]  # a list, since the log's value may be unhashable
    sittings: dict[tuple[Any, ...], list[Outputs]] = {}
    wrapped = False
    for log in logs:
        own = sittings.setdefault(log.sitting, [])
        for sample in log.samples:
            row_id = _parse_row_id(sample, benchmark, identities, expected)
            if list(sample.sent) != [expected[row_id]]:
                if not any(expected[row_id] in text for text in sample.sent):
                    raise BadRun(
                        f"{sample.where}, was sent another prompt than {benchmark.name} exports: run the exported "
                        "task unchanged"
                    )
                wrapped = True
            _find_first_without([row_id], own)[row_id] = sample.output
    seeds: list[Outputs] = []
    for outputs in (outputs for own in sittings.values() for outputs in own):
        _find_first_without(outputs, seeds).update(outputs)
    if not seeds:
        raise BadRun("these logs have no samples: give the logs of all samples")
    for seed, outputs in enumerate(seeds):
        if len(outputs) < len(expected):
            got, expected_ids = (np.array(list(ids), np.uint64) for ids in (outputs, expected))
            raise BadRun(
                f"seed {seed} has {len(outputs)} of the {len(expected)} rows that {benchmark.name} predicts: "
                f"{describe_row_id_problem(got, expected_ids)}; run every exported task without a limit, and give all "
                "its logs"
            )
    return seeds, wrapped


def _parse_row_id(
    sample: LogSample, benchmark: Benchmark, identities: Collection[str], expected: Mapping[int, str]
) -> int:
    if not isinstance(sample.row_id, str) or not _ROW_ID.fullmatch(sample.row_id):
        raise BadRun(f"{sample.where}, has no row id: import only logs of an exported task")
    if sample.entry_identity not in identities:
        sample_identity, identity = str(sample.entry_identity)[:12], benchmark.identity("full")
        raise BadRun(
            f"{sample.where}, is of another benchmark, or of another version of it (identity {sample_identity}.., "
            "that of "
            f"{benchmark.name} is {identity[:12]}..): export it again and run that"
        )
    row_id = int(sample.row_id, 16)
    if row_id not in expected:
        raise BadRun(f"{sample.where}: {sample.row_id} is not a predicted row of {benchmark.name}: the log was edited")
    return row_id


def _find_first_without(row_ids: Iterable[int], several: list[Outputs]) -> Outputs:
    """Return the first transcript that has none of these rows; append a new one if each has some."""
    match = next((outputs for outputs in several if outputs.keys().isdisjoint(row_ids)), None)
    if match is None:
        match = {}
        several.append(match)
    return match
