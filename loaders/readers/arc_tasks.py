"""Tasks of the Abstraction and Reasoning Corpus (Chollet 2019, arXiv 1911.01547) as text.

A grid is written as one line of digits per row. A question consists of the task's solved pairs, in order, and one test
input; a task with several test inputs gives several rows.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, BadDefinition
from ..acquire.archive_files import ArchiveFiles

if TYPE_CHECKING:
    import pyarrow as pa

Grid = list[list[int]]
Tasks = dict[str, dict[str, list[dict[str, Grid]]]]


def read(files: dict[str, Path | ArchiveFiles], *, sets: list[dict[str, Any]]) -> pa.Table:
    """Columns `question`, `answer` (a grid), `task` (its published name), `published`, `level` and `cells` (the number
    of cells of the answer).

    sets: for each set the `file` and `part` with its tasks, its `published` name and its `level`. A task that an
    earlier set has, by name or by content, is skipped. If the file is a folder, each of its JSON files is a task with
    the file's name, and `published` also names the folder of the file.
    """
    import pyarrow as pa

    columns: dict[str, list[str | int]] = {
        name: [] for name in ("question", "answer", "task", "published", "level", "cells")
    }
    seen: set[str] = set()
    for task_set in sets:
        if task_set["file"] not in files:
            raise BadDefinition(f"the distribution has no file {task_set['file']}")
        source = files[task_set["file"]]
        if isinstance(source, ArchiveFiles):
            tasks, folders = _read_task_folder(source)
        else:
            tasks, folders = _read_tasks(task_set["file"], source, task_set["part"]), {}
        for task, pairs in sorted(tasks.items()):
            content = json.dumps(pairs, sort_keys=True)
            if not seen.isdisjoint((task, content)):
                continue
            seen |= {task, content}
            examples = "".join(
                f"input:\n{format_grid(pair['input'])}\noutput:\n{format_grid(pair['output'])}\n\n"
                for pair in pairs["train"]
            )
            for pair in pairs["test"]:
                columns["question"].append(f"{examples}input:\n{format_grid(pair['input'])}\noutput:")
                columns["answer"].append(format_grid(pair["output"]))
                columns["task"].append(task)
                columns["published"].append(task_set["published"] + folders.get(task, ""))
                columns["level"].append(task_set["level"])
                columns["cells"].append(sum(map(len, pair["output"])))
    return pa.table(columns)


def format_grid(grid: Grid) -> str:
    """Format a grid of colours 0 to 9 as lines of digits."""
    return "\n".join("".join(map(str, row)) for row in grid)


def _read_tasks(name: str, path: Path, part: str) -> Tasks:
    try:
        tasks: Tasks = json.loads(path.read_bytes())[part]
    except (ValueError, KeyError, TypeError) as error:
        raise BadData(f"{name}: not a readable file of tasks with a part {part!r}: {error}") from error
    return tasks


def _read_task_folder(files: ArchiveFiles) -> tuple[Tasks, dict[str, str]]:
    """Return the tasks of a folder, each with ", " and the folder's name."""
    tasks: Tasks = {}
    folders: dict[str, str] = {}
    for path, content in files.walk(lambda name: name.endswith(".json")):
        task = PurePosixPath(path).stem
        if task in tasks:
            raise BadData(f"{files.where} has two tasks called {task}")
        try:
            tasks[task] = json.loads(content)
        except ValueError as error:
            raise BadData(f"{files.where}: {path} is not JSON: {error}") from error
        if not {"train", "test"} <= set(tasks[task]):
            raise BadData(f"{files.where}: {path} is not a task with training and test pairs")
        folders[task] = f", {PurePosixPath(path).parent.name}"
    return tasks, folders
