"""Tasks with their definitions: Super-NaturalInstructions (Wang et al. 2022, arXiv 2204.07705)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa

from ...core.documents import read_json


def read(files: dict[str, Path], *, each: int, train: Collection[str]) -> pa.Table:
    """Return the first `each` instances of each test task, and the first two times `each` of each task of `train`.

    A file `<task>.json` is an object with `Definition` and `Categories` (texts, or lists of them) and `Instances`, each
    with an `input` and a list `output` of accepted texts.

    Fields: `definition`, `instance`, `answer` (the different outputs, joined by " | "; one within an output becomes a
    space), `task`, `category` (the first), `published` ("test"; of tasks of `train` "train" for the first `each` and
    "train, later instances" for the next) and `number` (the instance's position in its file, from 0).
    """
    rows = []
    for name, path in files.items():
        task, record = name.removesuffix(".json"), read_json(path, dict)
        shared = {"task": task, "definition": "\n".join(_to_list(record["Definition"]))}
        shared["category"] = _to_list(record["Categories"])[0]
        for number, item in enumerate(record["Instances"][: 2 * each if task in train else each]):
            answers = [text.replace(" | ", " ") for text in _to_list(item["output"])]
            rows.append(
                {
                    **shared,
                    "instance": item["input"],
                    "answer": " | ".join(dict.fromkeys(answers)),
                    "published": "test" if task not in train else _SEEN[number >= each],
                    "number": number,
                }
            )
    return pa.Table.from_pylist(rows)


_SEEN = ("train", "train, later instances")


def _to_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
