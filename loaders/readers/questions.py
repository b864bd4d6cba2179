"""Questions and puzzles with short answers, and how hard they are."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.documents import parse_json, read_json
from ..acquire.archive_files import ArchiveFiles
from ._arrow_types import to_tensor_column

PUBLISHED_FORM = True

_QUERY = re.compile(r"Question: (?P<question>.+?)\n A\. (?P<options>.+)\nAnswer:", re.DOTALL)
_PREFIXES = {"challenge": "ARCCH_", "easy": "ARCEZ_"}
_LEVELS = {
    "bloom": ("Remembering", "Understanding", "Applying", "Analyzing", "Evaluating"),
    "depth_of_knowledge": ("I", "II", "III"),
    "difficulty": ("Low", "Medium", "High"),
}

_GRADE = re.compile(r"Grade (\d+)")
_HIGH_SCHOOL = 9
"""The grade of questions that are filed under a subject (Biology, Earth and Space Sciences) instead of a grade."""


def arc_annotated(files: dict[str, Path], *, requests: dict[str, str], annotations: str) -> pa.Table:
    """Questions of the AI2 Reasoning Challenge with annotations of their difficulty.

    The questions are read from evaluation requests (gzipped JSON lines, one for each option of a question), the
    annotations from the file of Hase et al. 2024 (arXiv 2401.06751). Questions without annotations are left out.

    Fields: `question`, `options` (one per line, `A. ..`), `answer` (the index of the right option, from 0),
    `collection`, `hard` (1 in the challenge set, 0 in the easy one), `grade`, `bloom`, `depth_of_knowledge` and
    `difficulty`.

    requests: for each file of requests, the set of ARC ("easy" or "challenge") of its questions. The annotated levels
    are numbered from 1, easiest first; `grade` is the school grade, 3 to 8, or 9 for high school.
    """
    known = parse_json(files[annotations].read_bytes(), dict, annotations)
    rows = {}
    for name, collection in requests.items():
        for line in gzip.decompress(files[name].read_bytes()).splitlines():
            doc = parse_json(line)["doc"]
            key = _PREFIXES[collection] + doc["id"]
            if key in known and key not in rows:
                grouped = {"collection": collection, "hard": int(collection == "challenge")}
                rows[key] = _parse_question(doc) | _parse_levels(known[key]) | grouped
    return pa.Table.from_pylist(list(rows.values()))


def _parse_question(doc: dict[str, Any]) -> dict[str, Any]:
    question, options = _QUERY.fullmatch(doc["query"]).groups()  # type: ignore[union-attr]
    return {"question": question, "options": "A. " + options.replace("\n ", "\n"), "answer": doc["gold"]}


def _parse_levels(annotation: dict[str, str]) -> dict[str, int]:
    grade = _GRADE.fullmatch(annotation["grade"])
    levels = {field: names.index(annotation[field]) + 1 for field, names in _LEVELS.items()}
    return {"grade": int(grade[1]) if grade else _HIGH_SCHOOL, **levels}


HARDNESS = ("easy", "medium", "hard")


def winogrande_hardness(files: dict[str, Path], *, parts: dict[str, str]) -> pa.Table:
    """Winogrande sentences of known hardness: sentence, two options, answer, agreement and rule, tab-separated.

    Hardness is the mean confidence of a model in the true answer over its training (data maps: Swayamdipta et al.
    2020); Saha et al. 2022 selected the sentences with most, middle and least confidence.

    Fields: `sentence` (with `_` for the missing name), `option1`, `option2`, `answer` (0 or 1: which option), `origin`,
    `hardness` (0 easy, 1 medium, 2 hard), `agreement` and `rule`.

    parts: the published part (`origin`) of each file, beginning with its hardness, such as "hard_pool". `agreement` is
    "disagree" if the person who wrote the `rule` (why the answer is right) thought that the answer is wrong.
    """
    rows = []
    for name, path in files.items():
        hardness = HARDNESS.index(parts[name].partition("_")[0])
        for line in path.read_text("utf-8").splitlines():
            cells = line.split("\t")
            row = dict(zip(("sentence", "option1", "option2", "answer", "agreement", "rule"), cells, strict=True))
            answer = cells[1:3].index(cells[3])
            rows.append({**row, "answer": answer, "origin": parts[name], "hardness": hardness})
    return pa.Table.from_pylist(rows)


Grid = list[list[int]]
Tasks = dict[str, dict[str, list[dict[str, Grid]]]]


def arc_tasks(files: dict[str, Path | ArchiveFiles], *, sets: list[dict[str, Any]]) -> pa.Table:
    """Tasks of the Abstraction and Reasoning Corpus (Chollet 2019, arXiv 1911.01547) as text.

    A grid is written as one line of digits per row. A question consists of the task's solved pairs, in order, and one
    test input; a task with several test inputs gives several rows.

    Columns `question`, `answer` (a grid), `task` (its published name), `published`, `level` and `cells` (the number of
    cells of the answer).

    sets: for each set the `file` and `part` with its tasks, its `published` name and its `level`. A task that an
    earlier set has, by name or by content, is skipped. If the file is a folder, each of its JSON files is a task with
    the file's name, and `published` also names the folder of the file.
    """
    columns: dict[str, list[str | int]] = {
        name: [] for name in ("question", "answer", "task", "published", "level", "cells")
    }
    seen: set[str] = set()
    for task_set in sets:
        source = files[task_set["file"]]
        folders: dict[str, str] = {}
        if isinstance(source, ArchiveFiles):
            tasks, folders = _read_task_folder(source)
        else:
            tasks = read_json(source)[task_set["part"]]
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


def _read_task_folder(files: ArchiveFiles) -> tuple[Tasks, dict[str, str]]:
    """Return the tasks of a folder, each with ", " and the folder's name."""
    tasks: Tasks = {}
    folders: dict[str, str] = {}
    for path, content in files.walk(lambda name: name.endswith(".json")):
        task = PurePosixPath(path).stem
        tasks[task] = parse_json(content, dict, f"{files.where}: {path}")
        folders[task] = f", {PurePosixPath(path).parent.name}"
    return tasks, folders


SIDE = 6
PLANES = ("car", "wall", "left end", "right end", "across", "upper end", "lower end", "down")
"""What each plane of a board's tensor marks: the car that must leave, walls, and the ends and inner cells of every
piece (including the car), which separates adjacent pieces."""


def rush_hour(files: dict[str, Path]) -> pa.Table:
    """Boards of the sliding-block puzzle Rush Hour with their optimal number of moves.

    The format of Michael Fogleman's database: one board per line, `moves board cluster`. The board is its 36 cells row
    by row: `o` empty, `x` a wall, `A` the car that must leave on the right, other letters the other pieces. The cluster
    is the number of reachable positions.

    Columns `planes` (uint8, 8 x 6 x 6 of 0 and 1; see `PLANES`), `board` (six lines of text), `moves` and `positions`.
    """
    (path,) = files.values()
    moves, boards, positions = zip(*(line.split() for line in path.read_text("ascii").splitlines()), strict=True)
    cells = np.array([list(board.encode()) for board in boards], np.uint8).reshape(-1, SIDE, SIDE)
    text = ["\n".join(board[start : start + SIDE] for start in range(0, SIDE * SIDE, SIDE)) for board in boards]
    columns = {"planes": to_tensor_column(encode_planes(cells)), "board": text}
    return pa.table(columns | {"moves": list(map(int, moves)), "positions": list(map(int, positions))})


def encode_planes(cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Convert boards, given as bytes (rows, 6, 6), to planes (rows, 8, 6, 6)."""
    piece = (cells >= ord("A")) & (cells <= ord("Z"))

    def match_neighbour(down: int, right: int) -> NDArray[np.bool_]:
        """Return a mask of the cells whose neighbour in a direction belongs to the same piece."""
        edge = np.pad(cells, ((0, 0), (1, 1), (1, 1)))
        same_piece: NDArray[np.bool_] = piece & (cells == edge[:, 1 + down :, 1 + right :][:, :SIDE, :SIDE])
        return same_piece

    up, below, left, right = (match_neighbour(*step) for step in ((-1, 0), (1, 0), (0, -1), (0, 1)))
    marks = [cells == ord("A"), cells == ord("x")]
    marks += [right & ~left, left & ~right, left & right, below & ~up, up & ~below, up & below]
    return np.stack(marks, axis=1).astype(np.uint8)


HOPS = ("first", "second", "composed")


def two_hop_questions(files: dict[str, Path], *, train: int, category: str = "") -> pa.Table:
    """Questions of two hops with the questions of both hops (Press et al. 2023, arXiv 2210.03350): a list of records
    `Question`, `Answer`, `Q1`, `A1`, `Q2`, `A2`, or an object with such a list under `data`.

    A record gives three rows. Fields: `question`; `answer`, the accepted answers joined by " | "; `hop`, one of first,
    second and composed; `origin`, the same with "train " before it in the first `train` records; `row`, such as
    "12 first"; `first` and `second`, the `row` of the record's hops; and `category`, the text of the key `category`.
    """
    (path,) = files.values()
    content = read_json(path)
    rows: list[dict[str, str]] = []
    for number, record in enumerate(content["data"] if isinstance(content, dict) else content):
        for hop, (question, answer) in zip(HOPS, (("Q1", "A1"), ("Q2", "A2"), ("Question", "Answer")), strict=True):
            answers = record[answer] if isinstance(record[answer], list) else [record[answer]]
            rows.append(
                {
                    "question": record[question],
                    "answer": " | ".join(text.strip() for item in answers for text in str(item).split("|")),
                    "hop": hop,
                    "origin": ("train " if number < train else "") + hop,
                    "row": f"{number} {hop}",
                    "first": f"{number} first",
                    "second": f"{number} second",
                    "category": record[category] if category else "",
                }
            )
    return pa.Table.from_pylist(rows)
