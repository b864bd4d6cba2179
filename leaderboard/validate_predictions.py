"""Validation of one predictions file of a submission: its shape, its rows, its values. Nothing in it is ever run."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from ..benchmarks.answers import ABSTAINED, ANSWERED, FAILED
from ..benchmarks.benchmark import MAX_TEXT, Benchmark
from ..benchmarks.predictions import ARROW_TYPES
from ..benchmarks.run import Carded
from ..benchmarks.scored import completeness_problems

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = {"part": "string", "row_id": "uint64", "seed": "int32", "candidate": "string", "status": "int8"}
_SUM_TOLERANCE = 2e-3


def checked_predictions(
    content: bytes, benchmark: Benchmark, card: Carded, where: str, problems: list[str]
) -> pa.Table | None:
    """The predictions, where they are exactly one per row, seed and candidate; else None, and the problems added."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    before = len(problems)
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        if problem := _shape_problem(file, benchmark, card):
            problems.append(f"{where}: {problem}")
            return None
        table = file.read()
        table.validate(full=True)  # text that is no UTF-8 among others
    except (pa.ArrowException, OSError, ValueError) as error:
        problems.append(f"{where}: not readable Parquet: {str(error).splitlines()[0][:200]}")
        return None
    if any(table[name].null_count for name in _COLUMNS):
        problems.append(f"{where}: has missing values")
        return None
    problems += [f"{where}: {problem}" for problem in completeness_problems(benchmark, table, card)]
    problems += [f"{where}: {problem}" for problem in _value_problems(table, benchmark)]
    return table if len(problems) == before else None


def _shape_problem(file: Any, benchmark: Benchmark, card: Carded) -> str:
    """What is wrong with the columns or the number of rows, before anything is read."""
    task = benchmark.task
    wanted = _COLUMNS | {"prediction": ARROW_TYPES[task.type]}
    got = [(field.name, str(field.type)) for field in file.schema_arrow]
    plain = [(name, kind) for name, kind in got if name != "scores"]
    if sorted(plain) != sorted(wanted.items()) or len(got) - len(plain) > 1:
        return f"columns {dict(got)}, expected {wanted} (each once)"
    scores = dict(got).get("scores")
    if scores is not None and not (task.type == "classification" and _is_list_of(scores, task.classes or 0)):
        return f"scores are {scores}, expected a fixed-size list of {task.classes or 0} floats"
    rows = sum(len(benchmark.part(part)) for part in benchmark.predicted_parts)
    most = 2 * len(card.seeds) * len(card.candidates) * rows * (1 + 50 * (card.selection != "last")) + 1000
    if file.metadata.num_rows > most:
        return f"{file.metadata.num_rows} rows, far more than the benchmark has"
    return ""


def _is_list_of(kind: str, classes: int) -> bool:
    return kind.startswith("fixed_size_list<") and kind.endswith(f"float>[{classes}]")


def _value_problems(table: pa.Table, benchmark: Benchmark) -> list[str]:
    import pyarrow.compute as pc

    column, status = table["prediction"], table["status"].to_numpy()
    if not np.isin(status, (ANSWERED, ABSTAINED, FAILED)).all():
        return [f"a status is none of {ANSWERED}, {ABSTAINED}, {FAILED}"]
    given = column.is_valid().to_numpy()
    if (given != (status == ANSWERED)).any():
        return ["a row has status 0 and no prediction, or a prediction and another status"]
    problems = []
    values = column.drop_null()
    if benchmark.task.type == "sequence":
        if len(values) and (longest := pc.max(pc.utf8_length(values)).as_py()) > MAX_TEXT:
            problems.append(f"a text of {longest} characters; at most {MAX_TEXT} are taken")
    elif benchmark.task.type == "classification":
        classes = benchmark.task.classes or 0
        outside = [value for value in pc.unique(values).to_pylist() if not 0 <= value < classes]
        if outside:
            problems.append(f"class {outside[0]} is not one of 0..{classes - 1}")
    elif not np.isfinite(values.to_numpy()).all():
        problems.append("a prediction is NaN or infinite")
    if "scores" in table.column_names:
        problems += _score_problems(table["scores"].combine_chunks(), status)
    return problems


def _score_problems(column: Any, status: Any) -> list[str]:
    if column.null_count or column.flatten().null_count:
        return ["scores are missing for some rows: give them for all, or leave the column out"]
    scores = column.flatten().to_numpy().reshape(len(column), -1)[status == ANSWERED]
    fine = (scores >= 0).all(axis=1) & (abs(scores.sum(axis=1, dtype=np.float64) - 1) < _SUM_TOLERANCE)
    return [] if fine.all() else [f"the scores of {(~fine).sum()} rows are no probabilities (each row sums to 1)"]
