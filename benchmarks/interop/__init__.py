"""Other runners of language models: a benchmark written as their task, and their log read back as a run. One file each.

A module has

    command(exported, folder) -> str                what to type to run the exported benchmark, MODEL left open
    files(exported) -> dict[str, bytes]             the exported folder of an `Exported` (_sheets.py): contents by path
    logs(paths) -> Sequence[Log]                    what it recorded (_logs.py); `BadRun` says what is wrong

A runner's scores are never read: only what the model said, which is graded here as there (prompting/grading.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ...core.canonical import identity_of
from ...core.errors import BadRun, UnknownName
from ...core.plugins import module, named
from ..benchmark import find_benchmark
from ..runs.replay import ONLY, write_recorded_run
from ..runs.run import Run
from ._folder import write_folder
from ._logs import answers_to, digests, model_of, transcript
from ._sheets import asked_by_prompt, exported

_PLACE = "benchmarks/interop"


def export(name: str, to: str, out: Path) -> dict[str, Any]:
    """Write a benchmark as a task of another runner (`lm-eval`, `inspect`) into the folder `out`.

    Every row that a run predicts becomes a sample with its row id, its part, its whole prompt and its true label: the
    folder holds labels, as runners need them. The same benchmark gives the same bytes.

    Returns `rows` (how many), `files` (their paths within the folder, sorted) and `command` (what to type next).
    Raises `FarshiftError` where the benchmark cannot be put as texts, or `out` holds something else.
    """
    tool = _tool(to)
    task = exported(find_benchmark(name))
    files = tool.files(task)
    write_folder(out, files)
    return {"rows": task.rows, "files": sorted(files), "command": tool.command(task, out.resolve())}


def import_run(files: Sequence[Path], source: str, on: str, out: Path, name: str = "") -> Run:
    """Make a run, in the folder `out`, of the logs that another runner wrote of an exported benchmark.

    files: the runner's logs of every sample. source: the runner, as in `export`. on: the benchmark's name. name: the
    model's on the run card, by default the one in the logs.

    The logs are put together as seeds 0, 1, 2 .. like this: logs that the runner wrote in one sitting (a call of it for
    one model; for repeated samples, one repetition) belong together; each sitting, in the order of `files`, goes to the
    first seed that has none of its rows. So tasks that were run one by one complete one seed, and the second log of a
    task begins the next.

    What the model said is read by the benchmark's own extraction; where that finds no answer, the row's status is
    FAILED, and it counts as wrong. Raises `BadRun` where a log cannot be read, or is not of every row of this very
    benchmark, asked by its prompt.
    """
    tool = _tool(source)
    benchmark = find_benchmark(on)
    prompt = asked_by_prompt(benchmark)
    paths = [Path(path) for path in files]
    if not paths:
        raise BadRun("no log is named: give the runner's log of every sample")
    read = digests(paths)
    found = tool.logs(paths)
    said = transcript(benchmark, prompt, found)
    card = {
        "name": name or model_of(found),
        "kind": "imported",
        "code": identity_of(read),
        "tool": ", ".join(sorted({log.tool for log in found} - {""})) or source,
        "prompt": "wrapped" if said.wrapped else "exact",
    }
    return write_recorded_run(
        benchmark, out, card, [{ONLY: answers_to(benchmark, prompt, seed)} for seed in said.seeds]
    )


def _tool(name: str) -> ModuleType:
    known = {stem.replace("_", "-") for stem in named(_PLACE, ".py")}
    if name not in known:
        raise UnknownName("runner", name, known)
    return module(_PLACE, name.replace("-", "_"), "runner")
