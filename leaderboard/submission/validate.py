"""Validation of submissions: all problems at once, each with its location. No code of a submission is ever run.

`farshift pack`, `farshift submit` and the board use this one function.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ...benchmarks import benchmark as definitions
from ...benchmarks.benchmark import Benchmark
from ...benchmarks.runs.coverage import read_limit
from ...benchmarks.runs.run import RunCard, RunLike, find_card_problem
from ...benchmarks.scoring.completeness import ExpectedRows, list_expected_rows
from ...core.errors import FarshiftError, UnknownName
from ...core.files import translate_os_errors
from ...core.text import format_count
from ..validation.archive import CARD, Archive
from ..validation.card import ListedRun, SubmissionCard, check_run_values, parse_submission_card
from ..validation.limits import RUNS, SUBMISSION_BYTES, FileRejected
from ..validation.predictions import check_table, make_expected_table
from ..validation.problem import Problems, format_untrusted
from ..validation.process import Reader

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


@dataclass(frozen=True)
class _DecodedRun:
    """A run whose predictions were decoded but not checked yet."""

    card: RunCard
    benchmark: Benchmark
    table: pa.Table
    rows: list[ExpectedRows]
    file: str


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
    with path.open("rb") as file, Reader() as reader:
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
    reader: Reader,
    only: set[int] | None = None,
    known: Mapping[str, Benchmark] | None = None,
) -> Submission:
    """Validate the submission in an open file; `name` is its name in messages. It is decoded by `reader`, which is
    ended before its output is used. `known`: the benchmarks, loaded here if not given."""
    problems = Problems()
    archive = Archive(file, name, problems)
    problems.refuse_if_any(name)
    reader.begin()
    raw = _read_card(archive, CARD, reader, problems)
    card = None if raw is None else parse_submission_card(raw, CARD, problems)
    if card is not None and len(card.runs) > RUNS:
        problems.add("zip-too-many", CARD, f"lists {len(card.runs)} runs; at most {RUNS} are accepted")
    if card is None or len(card.runs) > RUNS:
        problems.refuse_if_any(name)
    assert card is not None
    chosen = [number for number in range(len(card.runs)) if only is None or number in only]
    known = definitions.load_benchmarks() if known is None else known
    read = [_read_run(number, card.runs[number], archive, reader, known, problems) for number in chosen]
    reader.finish()
    listed = {CARD} | {file for number in range(len(card.runs)) for file in name_run_files(number)}
    for extra in sorted(set(archive.members) - listed):
        problems.add("run-not-listed", extra, f"not listed in {CARD}")
    entries = [entry for run in read if run is not None for entry in _validate_run(run, problems)]
    _add_duplicates(entries, problems)
    problems.refuse_if_any(name)
    return Submission(card, archive.digest(), entries)


def read_benchmark_names(path: Path) -> list[str]:
    """The benchmarks that a submission's card lists, sorted; none if it cannot be read, which `validate_submission`
    reports. Each run is checked against this list before it is scored."""
    problems = Problems()
    with path.open("rb") as file, Reader() as reader:
        raw = _read_card(Archive(file, path.name, problems), CARD, reader, problems)
    card = None if raw is None else parse_submission_card(raw, CARD, problems)
    return [] if card is None else sorted({run.benchmark for run in card.runs})


def name_run_files(number: int) -> tuple[str, str]:
    """The names of a run's card and predictions in a submission's zip."""
    return f"runs/{number}.toml", f"predictions/{number}.parquet"


def _read_card(archive: Archive, name: str, reader: Reader, problems: Problems) -> dict[str, Any] | None:
    if name not in archive.members:
        problems.add("entry-missing", name, "is missing")
        return None
    with _open_temporary_file() as file:
        if not archive.unpack(name, file, problems):
            return None
        try:
            return reader.card(file)
        except FileRejected as refused:
            _add_problems(refused, name, problems)
            return None


@contextmanager
def _open_temporary_file() -> Iterator[BinaryIO]:
    """A temporary file without a name, for an entry's bytes."""
    folder = Path(tempfile.gettempdir())
    with translate_os_errors(folder, "set TMPDIR to another disk"), tempfile.TemporaryFile() as file:
        yield file


def _read_run(
    number: int,
    listed: ListedRun,
    archive: Archive,
    reader: Reader,
    known: Mapping[str, Benchmark],
    problems: Problems,
) -> _DecodedRun | None:
    """Read and decode one run's card and predictions."""
    file, predictions = name_run_files(number)
    card = _read_card(archive, file, reader, problems)
    if card is None or not _is_listed(card, listed, file, problems):
        return None
    if predictions not in archive.members:
        problems.add("entry-missing", predictions, "is missing")
        return None
    with _open_temporary_file() as content:
        digest = archive.unpack(predictions, content, problems)
        if not digest:
            return None
        if digest != card["digests"]["predictions"] or digest != listed.predictions:
            problems.add("digest-differs", predictions, f"its digest differs from that in {file} or {CARD}")
            return None
        try:
            run = RunLike(RunCard.from_dict(card))
            benchmark = _find_benchmark(run, known, file, problems)
            if benchmark is None:
                return None
            if (limit := read_limit(run.card.model.extra)) is not None:
                problems.add(
                    "run-limited",
                    file,
                    f"a trial run on {format_count(limit, 'row')} of each part (--limit): evaluate on all rows",
                )
                return None
            rows = list_expected_rows(benchmark, run)
            table = reader.predictions(content, make_expected_table(benchmark, run, rows))
        except FileRejected as refused:
            _add_problems(refused, predictions, problems)
            return None
    return _DecodedRun(run.card, benchmark, table, rows, predictions)


def _is_listed(card: dict[str, Any], listed: ListedRun, file: str, problems: Problems) -> bool:
    """Whether a run's card is complete, has valid values, and is the listed one."""
    if problem := find_card_problem(card):
        problems.add("run-edited", file, problem)
        return False
    valid = check_run_values(card, file, problems)
    stated = {
        "benchmark": card["benchmark"].get("name"),
        "model": card["model"].get("name"),
        "run": card["digests"]["run"],
    }
    different = [key for key, value in stated.items() if getattr(listed, key) != value]
    if different:
        problems.add("run-not-listed", file, f"differs from {CARD} in {', '.join(different)}")
    return valid and not different


def _find_benchmark(run: RunLike, known: Mapping[str, Benchmark], file: str, problems: Problems) -> Benchmark | None:
    """The benchmark of a run, if this version scores it."""
    name, stated = run.card.benchmark.name, run.entry_identity
    if name not in known:
        problems.add("benchmark-unknown", file, str(UnknownName("benchmark", name, known)), "benchmark.name")
        return None
    benchmark = known[name]
    try:
        benchmark.rule(run.selection)
    except FarshiftError as error:
        problems.add("selection-unknown", file, str(error), "benchmark.selection")
        return None
    if benchmark.made_under(stated, run.budget, run.steps, run.selection) is None:
        problems.add(
            "identity-other", file, f"made for another version of {benchmark.name}", "benchmark.entry_identity"
        )
        return None
    return benchmark


def _validate_run(run: _DecodedRun, problems: Problems) -> Iterator[ValidRun]:
    """The run as an entry, if its rows and values are valid."""
    before = len(problems)
    try:
        run.table.validate(full=True)
    except ValueError as error:  # impossible unless the reader was compromised
        problems.add("parquet-unreadable", run.file, f"did not decode to a table: {error}")
        return
    check_table(run.table, run.benchmark, RunLike(run.card), run.rows, run.file, problems)
    if len(problems) == before:
        yield ValidRun(run.card, run.benchmark, run.table)


def _add_duplicates(entries: list[ValidRun], problems: Problems) -> None:
    """Report two entries of one model on one benchmark, budget and rule, which could not be distinguished."""
    seen: dict[tuple[Any, ...], int] = {}
    for number, entry in enumerate(entries):
        key = (entry.benchmark.name, entry.model, entry.budget, entry.steps, entry.selection)
        if seen.setdefault(key, number) != number:
            what = f"two runs are both {entry.model} on {entry.benchmark.name} (budget {entry.budget})"
            problems.add("run-repeated", CARD, what, "runs")


def _add_problems(refused: FileRejected, file: str, problems: Problems) -> None:
    for name, what, column in refused.findings:
        problems.add(name, file, what, format_untrusted(column))
