"""The rows and values of one predictions table: each row once for every seed and candidate, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.answers import ABSTAINED, ANSWERED, FAILED
from ...benchmarks.benchmark import Benchmark
from ...benchmarks.boxes import BadBoxes, read_boxes
from ...benchmarks.limits import MAX_TEXT
from ...benchmarks.runs.predictions import ARROW_TYPES
from ...benchmarks.runs.run import RunLike
from ...benchmarks.scoring.completeness import WantedRows
from ...core.listings.plural import counted
from .problem import Problems, shown
from .wanted import COLUMNS, Wanted

if TYPE_CHECKING:
    import pyarrow as pa

_SUM_TOLERANCE = 2e-3
_BYTES_OF_A_CHARACTER = 4


def wanted_table(benchmark: Benchmark, card: RunLike, rows: list[WantedRows]) -> Wanted:
    """What the file of these predictions must be, before any of it is decoded."""
    task = benchmark.task
    count = len(card.seeds) * sum(len(one.ids) * len(one.candidates) for one in rows)
    classes = (task.classes or 0) if task.type in ("classification", "multilabel") else 0
    return Wanted(ARROW_TYPES[task.type], classes, count, _BYTES_OF_A_CHARACTER * MAX_TEXT)


def table_problems(
    table: pa.Table, benchmark: Benchmark, card: RunLike, rows: list[WantedRows], file: str, problems: Problems
) -> None:
    """Add what is wrong with the rows and values of a table of predictions."""
    missing = [name for name in COLUMNS if table[name].null_count]
    for name in missing:
        row = "" if name == "row_id" else _row(table, np.asarray(table[name].is_null()))
        problems.add("value-missing", file, f"has missing values ({table[name].null_count})", name, row)
    if not missing:
        _row_problems(table, card, rows, file, problems)
        _value_problems(table, benchmark, file, problems)


def _row(table: pa.Table, wrong: NDArray[np.bool_]) -> str:
    """The id of the first row that is wrong, as hexadecimal."""
    found = table["row_id"][int(np.argmax(wrong))].as_py()
    return "" if found is None else f"{found:016x}"


def _row_problems(table: pa.Table, card: RunLike, rows: list[WantedRows], file: str, problems: Problems) -> None:
    """Cut the table by part, seed and candidate, and compare each block's ids with those wanted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def place(column: str, names: list[Any]) -> NDArray[np.int64]:
        values = pa.array(names, table.schema.field(column).type)
        return np.asarray(pc.index_in(table[column], value_set=values).fill_null(len(names)), np.int64)

    parts = place("part", [one.part for one in rows])
    seeds, candidates = place("seed", list(card.seeds)), place("candidate", list(card.candidates))
    ids = table["row_id"].to_numpy()
    codes = (parts * (len(card.seeds) + 1) + seeds) * (len(card.candidates) + 1) + candidates
    if not _ascending(codes, ids):
        order = np.lexsort((ids, codes))
        codes, ids = codes[order], ids[order]
    known = np.zeros(len(codes), bool)
    for part, one in enumerate(rows):
        for seed, seed_name in enumerate(card.seeds):
            for candidate in one.candidates:
                code = (part * (len(card.seeds) + 1) + seed) * (len(card.candidates) + 1)
                code += card.candidates.index(candidate)
                start, stop = np.searchsorted(codes, [code, code + 1])
                known[start:stop] = True
                if not np.array_equal(ids[start:stop], one.ids):
                    which = "" if len(card.candidates) == 1 else f", candidate {shown(candidate, 60)}"
                    where = f"part {one.part}, seed {seed_name}{which}"
                    _block_problems(ids[start:stop], one.ids, where, file, problems)
    if not known.all():
        _foreign_blocks(table, card, rows, file, problems)


def _ascending(codes: NDArray[np.int64], ids: NDArray[np.uint64]) -> bool:
    step = np.diff(codes)
    return bool(((step > 0) | ((step == 0) & (ids[1:] >= ids[:-1]))).all())


def _block_problems(
    got: NDArray[np.uint64], expected: NDArray[np.uint64], where: str, file: str, problems: Problems
) -> None:
    values, counts = np.unique(got, return_counts=True)
    missing, unknown = np.setdiff1d(expected, values), np.setdiff1d(values, expected)
    for what, ids in (("missing", missing), ("unknown", unknown), ("repeated", values[counts > 1])):
        if len(ids):
            first = f"{ids[0]:016x}"
            what_ids = f"{where}: {len(ids)} {what} row ids (first {first})"
            problems.add(f"rows-{what}", file, what_ids, "row_id", first)


def _foreign_blocks(table: pa.Table, card: RunLike, rows: list[WantedRows], file: str, problems: Problems) -> None:
    wanted = {(one.part, seed, name) for one in rows for seed in card.seeds for name in one.candidates}
    keys = ["part", "seed", "candidate"]
    blocks = table.group_by(keys, use_threads=False).aggregate([("row_id", "min")])
    found = sorted(zip(*(blocks[name].to_pylist() for name in (*keys, "row_id_min")), strict=True))
    for part, seed, candidate, first in found:
        if (part, seed, candidate) not in wanted:
            names = f"part {shown(part, 60)!r}, seed {seed}, candidate {shown(candidate, 60)!r}"
            problems.add("rows-of-nothing", file, f"{names}: nothing of this run", row=f"{first:016x}")


def _value_problems(table: pa.Table, benchmark: Benchmark, file: str, problems: Problems) -> None:
    column, status = table["prediction"], table["status"].to_numpy()
    given = column.is_valid().to_numpy()
    answered = status == ANSWERED

    def hold(name: str, wrong: NDArray[np.bool_], what: str, where: str) -> bool:
        if wrong.any():
            problems.add(name, file, f"{what} ({counted(int(wrong.sum()), 'row')})", where, _row(table, wrong))
        return not wrong.any()

    stated = hold("value-status", ~np.isin(status, (ANSWERED, ABSTAINED, FAILED)), _STATUS, "status")
    if not stated or not hold("value-status", given != answered, _STATUS_AND_PREDICTION, "status"):
        return
    if benchmark.task.in_text:
        lengths = _lengths(column)
        hold("value-text", lengths > MAX_TEXT, f"a text of {lengths.max(initial=0)} characters; {_MOST}", "prediction")
    elif benchmark.task.type == "classification":
        classes = benchmark.task.classes or 0
        values = column.fill_null(0).to_numpy()
        outside = (values < 0) | (values >= classes)
        first = values[int(np.argmax(outside))] if outside.any() else 0
        hold("value-class", outside, f"class {first} is not one of 0..{classes - 1}", "prediction")
    elif benchmark.task.type == "regression":
        hold("value-number", ~np.isfinite(column.fill_null(0.0).to_numpy()), "NaN or infinite", "prediction")
    if benchmark.task.type == "detection":
        _box_problems(column, file, problems, table)
    if "scores" in table.column_names:
        _score_problems(table, answered, benchmark.task.type == "multilabel", file, problems)
    elif benchmark.task.type == "multilabel":
        problems.add("value-scores", file, "has no scores, which are the answers to this task", "scores")


_STATUS = f"a status is not one of {ANSWERED}, {ABSTAINED}, {FAILED}"
_STATUS_AND_PREDICTION = "a row has status 0 and no prediction, or a prediction and another status"
_MOST = f"at most {MAX_TEXT} are taken"


def _lengths(column: pa.ChunkedArray) -> NDArray[np.int64]:
    import pyarrow.compute as pc

    return np.asarray(pc.utf8_length(column).fill_null(0), np.int64)


def _box_problems(column: pa.ChunkedArray, file: str, problems: Problems, table: pa.Table) -> None:
    for place, text in enumerate(column.to_pylist()):
        try:
            read_boxes(text or "")
        except BadBoxes as error:
            row = _row(table.slice(place, 1), np.ones(1, bool))
            problems.add("value-boxes", file, shown(str(error), 120), "prediction", row)
            return


def _score_problems(
    table: pa.Table, answered: NDArray[np.bool_], of_labels: bool, file: str, problems: Problems
) -> None:
    for start, chunk in _chunks(table["scores"]):
        if chunk.null_count or chunk.flatten().null_count:
            what = "scores are missing for some rows: give them for all, or leave the column out"
            problems.add("value-scores", file, what, "scores")
            return
        scores = chunk.flatten().to_numpy().reshape(len(chunk), -1)
        if of_labels:
            fine, must = np.isfinite(scores).all(axis=1), "not finite"
        else:
            fine = (scores >= 0).all(axis=1) & (abs(scores.sum(axis=1, dtype=np.float64) - 1) < _SUM_TOLERANCE)
            must = "not probabilities (each row sums to 1)"
        wrong = ~fine & answered[start : start + len(chunk)]
        if wrong.any():
            what = f"the scores of {wrong.sum()} or more rows are {must}"
            problems.add("value-scores", file, what, "scores", _row(table.slice(start, len(chunk)), wrong))
            return


def _chunks(column: pa.ChunkedArray) -> Any:
    start = 0
    for chunk in column.chunks:
        yield start, chunk
        start += len(chunk)
