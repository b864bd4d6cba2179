"""The rows and values of a predictions table: each row once for every seed and candidate, and no other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.answers import ABSTAINED, ANSWERED, FAILED
from ...benchmarks.benchmark import Benchmark
from ...benchmarks.boxes import BadBoxes, read_boxes
from ...benchmarks.runs.predictions import ARROW_TYPES
from ...benchmarks.runs.run import RunLike
from ...benchmarks.scoring.completeness import ExpectedRows
from ...benchmarks.settings import MAX_TEXT
from ...core.text import format_count
from .limits import COLUMNS, ExpectedTable
from .problem import Problems, format_untrusted

if TYPE_CHECKING:
    import pyarrow as pa

_SUM_TOLERANCE = 2e-3
_BYTES_OF_A_CHARACTER = 4


def make_expected_table(benchmark: Benchmark, card: RunLike, rows: list[ExpectedRows]) -> ExpectedTable:
    """The expected form of a run's predictions file, for checks before any of it is decoded."""
    task = benchmark.task
    count = len(card.seeds) * sum(len(part_rows.ids) * len(part_rows.candidates) for part_rows in rows)
    classes = (task.classes or 0) if task.type in ("classification", "multilabel") else 0
    return ExpectedTable(ARROW_TYPES[task.type], classes, count, _BYTES_OF_A_CHARACTER * MAX_TEXT)


def check_table(
    table: pa.Table, benchmark: Benchmark, card: RunLike, rows: list[ExpectedRows], file: str, problems: Problems
) -> None:
    """Add the problems of the rows and values of a table of predictions."""
    missing = [name for name in COLUMNS if table[name].null_count]
    for name in missing:
        row = "" if name == "row_id" else _format_row_id(table, np.asarray(table[name].is_null()))
        problems.add("value-missing", file, f"has missing values ({table[name].null_count})", name, row)
    if not missing:
        _check_rows(table, card, rows, file, problems)
        _check_values(table, benchmark, file, problems)


def _format_row_id(table: pa.Table, wrong: NDArray[np.bool_]) -> str:
    """The id of the first row that is wrong, as hexadecimal."""
    row_id = table["row_id"][int(np.argmax(wrong))].as_py()
    return "" if row_id is None else f"{row_id:016x}"


def _check_rows(table: pa.Table, card: RunLike, rows: list[ExpectedRows], file: str, problems: Problems) -> None:
    """Group the table by part, seed and candidate, and compare each block's ids with the expected ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def encode_column(column: str, names: list[Any]) -> NDArray[np.int64]:
        values = pa.array(names, table.schema.field(column).type)
        return np.asarray(pc.index_in(table[column], value_set=values).fill_null(len(names)), np.int64)

    parts = encode_column("part", [part_rows.part for part_rows in rows])
    seeds, candidates = encode_column("seed", list(card.seeds)), encode_column("candidate", list(card.candidates))
    ids = table["row_id"].to_numpy()
    codes = (parts * (len(card.seeds) + 1) + seeds) * (len(card.candidates) + 1) + candidates
    if not _is_ascending(codes, ids):
        order = np.lexsort((ids, codes))
        codes, ids = codes[order], ids[order]
    known = np.zeros(len(codes), bool)
    for part, part_rows in enumerate(rows):
        for seed, seed_name in enumerate(card.seeds):
            for candidate in part_rows.candidates:
                code = (part * (len(card.seeds) + 1) + seed) * (len(card.candidates) + 1)
                code += card.candidates.index(candidate)
                start, stop = np.searchsorted(codes, [code, code + 1])
                known[start:stop] = True
                if not np.array_equal(ids[start:stop], part_rows.ids):
                    which = "" if len(card.candidates) == 1 else f", candidate {format_untrusted(candidate, 60)}"
                    where = f"part {part_rows.part}, seed {seed_name}{which}"
                    _check_block(ids[start:stop], part_rows.ids, where, file, problems)
    if not known.all():
        _check_foreign_blocks(table, card, rows, file, problems)


def _is_ascending(codes: NDArray[np.int64], ids: NDArray[np.uint64]) -> bool:
    step = np.diff(codes)
    return bool(((step > 0) | ((step == 0) & (ids[1:] >= ids[:-1]))).all())


def _check_block(
    got: NDArray[np.uint64], expected: NDArray[np.uint64], where: str, file: str, problems: Problems
) -> None:
    values, counts = np.unique(got, return_counts=True)
    missing, unknown = np.setdiff1d(expected, values), np.setdiff1d(values, expected)
    for what, ids in (("missing", missing), ("unknown", unknown), ("repeated", values[counts > 1])):
        if len(ids):
            first = f"{ids[0]:016x}"
            what_ids = f"{where}: {len(ids)} {what} row ids (first {first})"
            problems.add(f"rows-{what}", file, what_ids, "row_id", first)


def _check_foreign_blocks(
    table: pa.Table, card: RunLike, rows: list[ExpectedRows], file: str, problems: Problems
) -> None:
    expected = {
        (part_rows.part, seed, name) for part_rows in rows for seed in card.seeds for name in part_rows.candidates
    }
    keys = ["part", "seed", "candidate"]
    blocks = table.group_by(keys, use_threads=False).aggregate([("row_id", "min")])
    block_rows = sorted(zip(*(blocks[name].to_pylist() for name in (*keys, "row_id_min")), strict=True))
    for part, seed, candidate, first in block_rows:
        if (part, seed, candidate) not in expected:
            names = f"part {format_untrusted(part, 60)!r}, seed {seed}, candidate {format_untrusted(candidate, 60)!r}"
            problems.add("rows-of-nothing", file, f"{names}: not in this run", row=f"{first:016x}")


def _check_values(table: pa.Table, benchmark: Benchmark, file: str, problems: Problems) -> None:
    import pyarrow.compute as pc

    column, status = table["prediction"], table["status"].to_numpy()
    given = column.is_valid().to_numpy()
    answered = status == ANSWERED

    def hold(name: str, wrong: NDArray[np.bool_], what: str, where: str) -> bool:
        if wrong.any():
            problems.add(
                name, file, f"{what} ({format_count(int(wrong.sum()), 'row')})", where, _format_row_id(table, wrong)
            )
        return not wrong.any()

    stated = hold("value-status", ~np.isin(status, (ANSWERED, ABSTAINED, FAILED)), _STATUS, "status")
    if not stated or not hold("value-status", given != answered, _STATUS_AND_PREDICTION, "status"):
        return
    if benchmark.task.in_text:
        lengths = np.asarray(pc.utf8_length(column).fill_null(0), np.int64)
        hold(
            "value-text", lengths > MAX_TEXT, f"a string of {lengths.max(initial=0)} characters; {_MOST}", "prediction"
        )
    elif benchmark.task.type == "classification":
        classes = benchmark.task.classes or 0
        values = column.fill_null(0).to_numpy()
        outside = (values < 0) | (values >= classes)
        first = values[int(np.argmax(outside))] if outside.any() else 0
        hold("value-class", outside, f"class {first} is not one of 0..{classes - 1}", "prediction")
    elif benchmark.task.type == "regression":
        hold("value-number", ~np.isfinite(column.fill_null(0.0).to_numpy()), "NaN or infinite", "prediction")
    if benchmark.task.type == "detection":
        _check_boxes(column, file, problems, table)
    if "scores" in table.column_names:
        _check_scores(table, answered, benchmark.task.type == "multilabel", file, problems)
    elif benchmark.task.type == "multilabel":
        problems.add("value-scores", file, "has no scores, which this task requires", "scores")


_STATUS = f"status is not one of {ANSWERED}, {ABSTAINED}, {FAILED}"
_STATUS_AND_PREDICTION = "status 0 without a prediction, or a prediction with another status"
_MOST = f"at most {MAX_TEXT} are accepted"


def _check_boxes(column: pa.ChunkedArray, file: str, problems: Problems, table: pa.Table) -> None:
    for index, text in enumerate(column.to_pylist()):
        try:
            read_boxes(text or "")
        except BadBoxes as error:
            row = _format_row_id(table.slice(index, 1), np.ones(1, bool))
            problems.add("value-boxes", file, format_untrusted(str(error), 120), "prediction", row)
            return


def _check_scores(table: pa.Table, answered: NDArray[np.bool_], of_labels: bool, file: str, problems: Problems) -> None:
    start = 0
    for chunk in table["scores"].chunks:
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
            problems.add("value-scores", file, what, "scores", _format_row_id(table.slice(start, len(chunk)), wrong))
            return
        start += len(chunk)
