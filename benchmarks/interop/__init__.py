"""Other runners of language models: export a benchmark as their task, and import their log as a run. One file each.

A module has

    command(exported, folder) -> str                the command that runs the exported benchmark, MODEL left open
    files(exported) -> dict[str, bytes]             the folder of an `ExportedBenchmark` (_sheets.py), by path
    logs(paths) -> Sequence[Log]                    the runner's logs (_logs.py); `BadRun` says what is wrong

A runner's scores are not read: only the model's output, which is graded here by the same code (prompting/grading.py).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

from ...core.canonical import compute_identity
from ...core.errors import BadRun, FarshiftError, UnknownName
from ...core.files import get_lock_path, hold_lock, translate_os_errors
from ...core.plugins import find_files_by_name, load_module
from ..benchmark import find_benchmark
from ..model_inputs.load import load_model_inputs
from ..runs.outputs import FILE, add_outputs
from ..runs.replay import ONLY, write_recorded_run
from ..runs.run import Run
from ._logs import combine_logs, compute_digests, extract_part_answers, find_model_name
from ._sheets import make_export, require_prompt

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
    if not paths:
        raise BadRun("no log is given: give the runner's logs of all samples")
    read = compute_digests(paths)
    runner_logs = tool.logs(paths)
    seeds, wrapped = combine_logs(benchmark, prompt, runner_logs)
    card = {
        "name": name or find_model_name(runner_logs),
        "kind": "imported",
        "code": compute_identity(read),
        "tool": ", ".join(sorted({log.tool for log in runner_logs} - {""})) or source,
        "prompt": "wrapped" if wrapped else "exact",
    }
    run = write_recorded_run(
        benchmark, out, card, [{ONLY: extract_part_answers(benchmark, prompt, seed)} for seed in seeds]
    )
    if not (run.path / FILE).exists():
        inputs = load_model_inputs(benchmark)
        for (number, seed), part in product(zip(run.seeds, seeds, strict=True), benchmark.predicted_parts):
            ids = inputs.part(part).row_ids.tolist()
            named: dict[str, str | int] = {"part": part, "seed": number, "candidate": ONLY}
            add_outputs(run.path, named, ids, [seed[row_id] for row_id in ids])
    return run


def _load_runner(name: str) -> ModuleType:
    known = {stem.replace("_", "-") for stem in find_files_by_name(_FOLDER, ".py")}
    if name not in known:
        raise UnknownName("runner", name, known)
    return load_module(_FOLDER, name.replace("-", "_"), "runner")
