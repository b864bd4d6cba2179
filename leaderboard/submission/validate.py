"""Validation of submissions: all problems at once, each with its location. No code of a submission is ever run.

`farshift pack`, `farshift submit` and the board use this one function.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...benchmarks import benchmark as definitions
from ...benchmarks.answers import ABSTAINED, ANSWERED, FAILED
from ...benchmarks.benchmark import Benchmark
from ...benchmarks.boxes import BadBoxes, read_boxes
from ...benchmarks.runs.predictions import ARROW_TYPES
from ...benchmarks.runs.run import RunCard, RunLike, find_card_problem
from ...benchmarks.scoring.completeness import ExpectedRows, list_expected_rows
from ...benchmarks.settings import MAX_TEXT
from ...core.errors import BadRun, FarshiftError, UnknownName
from ...core.text import format_count
from ..validation.archive import CARD, Archive
from ..validation.card import ListedRun, SubmissionCard, check_run_values, parse_submission_card
from ..validation.limits import COLUMNS, RUNS, SUBMISSION_BYTES, ExpectedTable, FileRejected
from ..validation.problem import Problems, format_untrusted
from ..validation.process import ReaderProcess

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ValidRun(RunLike):
    """One valid run of a submission, ready to be scored."""

    benchmark: Benchmark
    predictions: pa.Table

    @property
    def entry_identity(self) -> str:
        """The entry's identity under the present scorer, also if the run was made under an earlier one."""
        return self.benchmark.identity(self.budget, self.steps, self.selection)


@dataclass(frozen=True)
class Submission:
    """A valid submission: its card, sha256 of its file, and its runs."""

    card: SubmissionCard
    digest: str
    entries: list[ValidRun]

    @property
    def team_key(self) -> str:
        """The public key of the team that signed it (64 hexadecimal digits), empty if unsigned."""
        return "" if self.card.signature is None else self.card.signature.key


Allowed = Callable[[Submission], None]
"""Raises `FarshiftError` for a valid submission that its sender may not make."""


def validate_submission(
    path: Path | str, only: set[int] | None = None, known: Mapping[str, Benchmark] | None = None
) -> Submission:
    """Read and validate a submission file. `BadSubmission` lists every problem found (`problems`, one by one). `only`:
    the numbers of the runs to read (a board that recomputes leaves out those of an older identity); `known`: the
    benchmarks, by default all."""
    path = Path(path)
    problems, name = Problems(), path.name
    if path.is_dir():
        problems.add("file-missing", str(path), "is a folder; pack the run first: farshift pack RUN --out FILE.zip")
    elif not path.is_file():
        problems.add("file-missing", str(path), "does not exist or is not a file")
    elif (size := path.stat().st_size) > SUBMISSION_BYTES:
        problems.add("file-too-large", str(path), f"has {size} bytes; at most {SUBMISSION_BYTES} are accepted")
    problems.refuse_if_any(str(path))
    with path.open("rb") as file, ReaderProcess() as reader:
        before = os.fstat(file.fileno())
        submission = validate_open_submission(file, name, reader, only, known)
        after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        problems.add("file-changed", name, "was changed while it was read")
        problems.refuse_if_any(name)
    return submission


def validate_open_submission(
    file: BinaryIO,
    name: str,
    reader: ReaderProcess,
    only: set[int] | None = None,
    known: Mapping[str, Benchmark] | None = None,
) -> Submission:
    """Validate the submission in an open file; `name` is its name in messages. It is decoded by `reader`, which is
    ended before its output is used. `known`: the benchmarks, loaded here if not given."""
    problems = Problems()
    archive = Archive(file, name, problems)
    problems.refuse_if_any(name)
    card = _read_submission_card(archive, reader, problems)
    if card is None:
        problems.refuse_if_any(name)
    assert card is not None
    known = definitions.load_benchmarks() if known is None else known
    decoded: list[tuple[ValidRun, list[ExpectedRows], str]] = []
    for number, listed in enumerate(card.runs):
        if only is None or number in only:
            decoded += _read_run(number, listed, archive, reader, known, problems)
    reader.finish()
    listed_files = {CARD} | {file for number in range(len(card.runs)) for file in name_run_files(number)}
    for extra in sorted(set(archive.members) - listed_files):
        problems.add("run-not-listed", extra, f"not listed in {CARD}")
    entries = [run for run, rows, where in decoded if _has_valid_rows(run, rows, where, problems)]
    _add_duplicates(entries, problems)
    problems.refuse_if_any(name)
    return Submission(card, archive.digest(), entries)


def read_benchmark_names(path: Path) -> list[str]:
    """The benchmarks that a submission's card lists, sorted; none if it cannot be read, which `validate_submission`
    reports. Each run is checked against this list before it is scored."""
    problems = Problems()
    with path.open("rb") as file, ReaderProcess() as reader:
        card = _read_submission_card(Archive(file, path.name, problems), reader, problems)
    return [] if card is None else sorted({run.benchmark for run in card.runs})


def _read_submission_card(archive: Archive, reader: ReaderProcess, problems: Problems) -> SubmissionCard | None:
    try:
        card = parse_submission_card(_read_card(archive, CARD, reader), CARD, problems)
        if card is not None and len(card.runs) > RUNS:
            what = f"lists {len(card.runs)} runs; at most {RUNS} are accepted"
            raise FileRejected.because("zip-too-many", what)
    except FileRejected as rejected:
        problems.add_rejection(CARD, rejected)
        return None
    return card


def name_run_files(number: int) -> tuple[str, str]:
    """The names of a run's card and predictions in a submission's zip."""
    return f"runs/{number}.toml", f"predictions/{number}.parquet"


def _read_card(archive: Archive, name: str, reader: ReaderProcess) -> dict[str, Any]:
    with archive.unpack(name) as (file, _):
        return reader.card(file)


def _read_run(
    number: int,
    listed: ListedRun,
    archive: Archive,
    reader: ReaderProcess,
    known: Mapping[str, Benchmark],
    problems: Problems,
) -> Iterator[tuple[ValidRun, list[ExpectedRows], str]]:
    """Read and decode one run's card and predictions, whose rows and values are not checked yet: the run, the rows that
    it must have, and the file of its predictions. Nothing if it is rejected."""
    card_file, file = name_run_files(number)
    where = card_file
    try:
        card = _read_card(archive, card_file, reader)
        if problem := find_card_problem(card):
            raise FileRejected.because("run-edited", problem)
        valid = check_run_values(card, card_file, problems)
        stated = {"benchmark": card["benchmark"].get("name"), "model": card["model"].get("name")}
        stated["run"] = card["digests"]["run"]
        if different := [key for key, value in stated.items() if getattr(listed, key) != value]:
            raise FileRejected.because("run-not-listed", f"differs from {CARD} in {', '.join(different)}")
        if not valid:
            return
        run = RunLike(RunCard.from_dict(card))
        benchmark = _find_benchmark(run, known)
        where = file
        with archive.unpack(file) as (content, digest):
            if digest != card["digests"]["predictions"] or digest != listed.predictions:
                raise FileRejected.because("digest-differs", f"its digest differs from that in {card_file} or {CARD}")
            rows = list_expected_rows(benchmark, run)
            table = reader.predictions(content, _make_expected_table(benchmark, run, rows))
    except FileRejected as rejected:
        problems.add_rejection(where, rejected)
    except BadRun as error:
        problems.add("run-value", where, str(error))
    else:
        yield ValidRun(run.card, benchmark, table), rows, file


def _find_benchmark(run: RunLike, known: Mapping[str, Benchmark]) -> Benchmark:
    """The benchmark of a run, if this version scores it."""
    name, stated = run.card.benchmark.name, run.entry_identity
    if name not in known:
        unknown = UnknownName("benchmark", name, known, listed="farshift benchmarks list")
        raise FileRejected.because("benchmark-unknown", str(unknown), "benchmark.name")
    benchmark = known[name]
    try:
        benchmark.rule(run.selection)
    except FarshiftError as error:
        raise FileRejected.because("selection-unknown", str(error), "benchmark.selection") from error
    if benchmark.made_under(stated, run.budget, run.steps, run.selection) is None:
        what = f"made for another version of {benchmark.name}"
        raise FileRejected.because("identity-other", what, "benchmark.entry_identity")
    if (limit := run.card.model.limit) is not None:
        what = f"a trial run on {format_count(limit, 'row')} of each part (--limit): evaluate on all rows"
        raise FileRejected.because("run-limited", what)
    return benchmark


def _has_valid_rows(run: ValidRun, rows: list[ExpectedRows], file: str, problems: Problems) -> bool:
    before = len(problems)
    try:
        run.predictions.validate(full=True)
    except ValueError as error:  # impossible unless the reader was compromised
        problems.add("parquet-unreadable", file, f"did not decode to a table: {error}")
        return False
    _check_table(run.predictions, run.benchmark, run, rows, file, problems)
    return len(problems) == before


def _add_duplicates(entries: list[ValidRun], problems: Problems) -> None:
    """Report two entries of one model on one benchmark, budget and rule, which could not be distinguished."""
    seen: dict[tuple[Any, ...], int] = {}
    for number, entry in enumerate(entries):
        key = (entry.benchmark.name, entry.model, entry.budget, entry.steps, entry.selection)
        if seen.setdefault(key, number) != number:
            what = f"two runs are both {entry.model} on {entry.benchmark.name} (budget {entry.budget})"
            problems.add("run-repeated", CARD, what, "runs")


_SUM_TOLERANCE = 2e-3
_BYTES_OF_A_CHARACTER = 4


def _make_expected_table(benchmark: Benchmark, card: RunLike, rows: list[ExpectedRows]) -> ExpectedTable:
    """The expected form of a run's predictions file, for checks before any of it is decoded."""
    task = benchmark.task
    count = len(card.seeds) * sum(len(part_rows.ids) * len(part_rows.candidates) for part_rows in rows)
    classes = (task.classes or 0) if task.type in ("classification", "multilabel") else 0
    return ExpectedTable(ARROW_TYPES[task.type], classes, count, _BYTES_OF_A_CHARACTER * MAX_TEXT)


def _check_table(
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
