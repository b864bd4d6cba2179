"""The table of predictions: one row per evaluated row, seed and candidate.

part        string    the part, or the name of a selection rule that needs additional rows
row_id      uint64
seed        int32
candidate   string
prediction  int64 (classification; for multilabel tasks, the number of likely labels) | double (regression) | string
            (sequence; boxes, as in boxes.py); null if there is none
status      int8      0 answered, 1 abstained, 2 failed
scores      fixed-size list of float, one per class or label; only if the model gave them

The raw texts of language models are in outputs.jsonl beside it, one per line with part, seed, candidate, row id and
`output`. They are for reading only: nothing is scored by them, and no submission includes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.documents import parse_json
from ...core.files import OUT_ADVICE, translate_os_errors
from ..answers import Answers
from ..model import Task

if TYPE_CHECKING:
    import pyarrow as pa


ARROW_TYPES = {
    "classification": "int64",
    "multilabel": "int64",
    "regression": "double",
    "sequence": "string",
    "detection": "string",
}


def make_answers_table(row_ids: NDArray[np.uint64], answers: Answers, task: Task) -> pa.Table:
    """Convert answers to a table of row_id, prediction, status and, if there are any, scores; `row_ids`: (n,)."""
    import pyarrow as pa

    lost = ~answers.answered
    columns = {
        "row_id": pa.array(row_ids, pa.uint64()),
        "prediction": pa.array(answers.prediction, ARROW_TYPES[task.type], mask=lost if lost.any() else None),
        "status": pa.array(answers.status, pa.int8()),
    }
    if answers.scores is not None:
        flat = pa.array(np.ascontiguousarray(answers.scores).reshape(-1), pa.float32())
        columns["scores"] = pa.FixedSizeListArray.from_arrays(flat, answers.scores.shape[1])
    return pa.table(columns)


def add_run_columns(table: pa.Table, part: str, seed: int, candidate: str) -> pa.Table:
    """Add the columns part, seed and candidate to a table of answers."""
    import pyarrow as pa

    count = table.num_rows
    columns = {
        "part": pa.repeat(part, count),
        "row_id": table["row_id"],
        "seed": pa.repeat(pa.scalar(seed, pa.int32()), count),
        "candidate": pa.repeat(candidate, count),
    }
    return pa.table(columns | {name: table[name] for name in table.column_names if name != "row_id"})


def read_answers(table: pa.Table, task: Task) -> Answers:
    """Read the answers of a table of predictions, in its order."""
    status = table["status"].to_numpy()
    column = table["prediction"]
    if column.null_count:
        column = column.fill_null("" if task.in_text else 0)
    return Answers(column.to_numpy(zero_copy_only=False), status, _read_scores(table))


def _read_scores(table: pa.Table) -> NDArray[np.float32] | None:
    if "scores" not in table.column_names:
        return None
    column = table["scores"].combine_chunks()
    if column.null_count:
        return None
    scores: Any = column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)
    return scores  # type: ignore[no-any-return]


def concatenate_answers(answers: list[Answers]) -> Answers:
    """Concatenate answers; without scores if one of them has none."""
    if len(answers) == 1:
        return answers[0]
    scores = [batch.scores for batch in answers if batch.scores is not None]
    return Answers(
        np.concatenate([batch.prediction for batch in answers]),
        np.concatenate([batch.status for batch in answers]),
        np.concatenate(scores) if len(scores) == len(answers) else None,
    )


def sort_by_row_id(table: pa.Table) -> pa.Table:
    """Sort the rows by row id."""
    ids = table["row_id"].to_numpy()
    return table if (ids[1:] > ids[:-1]).all() else table.take(np.argsort(ids, kind="stable"))


OUTPUTS = "farshift_outputs"
"""An optional attribute of models: the raw text of each row of the batch that was predicted last, or None."""

FILE = "outputs.jsonl"


def add_outputs(run: Path, named: Mapping[str, str | int], row_ids: Sequence[int], texts: Sequence[str | None]) -> None:
    """Append the texts of a batch to the file of an unfinished run. named: part, seed and candidate."""
    lines = [
        json.dumps({**named, "row_id": row_id, "output": text}) + "\n"
        for row_id, text in zip(row_ids, texts, strict=True)
        if text is not None
    ]
    with translate_os_errors(run, OUT_ADVICE), (run / FILE).open("a", encoding="utf-8") as file:
        file.write("".join(lines))


def read_outputs(run: Path, part: str, seed: int, candidate: str) -> dict[int, str]:
    """Return the texts by row id, the last of each; empty for a run without. A line that was cut off is passed over."""
    texts: dict[int, str] = {}
    try:
        lines = (run / FILE).read_text("utf-8", "replace").splitlines()
    except OSError:
        return texts
    for line in lines:
        try:
            record = parse_json(line, dict, surrogates=True)
            if (record["part"], record["seed"], record["candidate"]) == (part, seed, candidate):
                texts[int(record["row_id"])] = str(record["output"])
        except (ValueError, KeyError, TypeError):
            continue
    return texts
