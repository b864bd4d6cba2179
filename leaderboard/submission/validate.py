"""Validation of submissions: all problems at once, each with its location. No code of a submission is ever run.

`farshift pack`, `farshift submit` and the board use this one function.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ...benchmarks import benchmark as definitions
from ...benchmarks.benchmark import Benchmark
from ...benchmarks.runs.run import RunCard, RunLike, find_card_problem
from ...benchmarks.scoring.completeness import ExpectedRows, list_expected_rows
from ...core.errors import BadRun, FarshiftError, UnknownName
from ...core.text import format_count
from ..validation.archive import CARD, Archive
from ..validation.card import ListedRun, SubmissionCard, check_run_values, parse_submission_card
from ..validation.limits import RUNS, SUBMISSION_BYTES, FileRejected
from ..validation.predictions import check_table, make_expected_table
from ..validation.problem import Problems
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
    with path.open("rb") as file, Reader() as reader:
        card = _read_submission_card(Archive(file, path.name, problems), reader, problems)
    return [] if card is None else sorted({run.benchmark for run in card.runs})


def _read_submission_card(archive: Archive, reader: Reader, problems: Problems) -> SubmissionCard | None:
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


def _read_card(archive: Archive, name: str, reader: Reader) -> dict[str, Any]:
    with archive.unpack(name) as (file, _):
        return reader.card(file)


def _read_run(
    number: int,
    listed: ListedRun,
    archive: Archive,
    reader: Reader,
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
            table = reader.predictions(content, make_expected_table(benchmark, run, rows))
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
        raise FileRejected.because("benchmark-unknown", str(UnknownName("benchmark", name, known)), "benchmark.name")
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
    check_table(run.predictions, run.benchmark, run, rows, file, problems)
    return len(problems) == before


def _add_duplicates(entries: list[ValidRun], problems: Problems) -> None:
    """Report two entries of one model on one benchmark, budget and rule, which could not be distinguished."""
    seen: dict[tuple[Any, ...], int] = {}
    for number, entry in enumerate(entries):
        key = (entry.benchmark.name, entry.model, entry.budget, entry.steps, entry.selection)
        if seen.setdefault(key, number) != number:
            what = f"two runs are both {entry.model} on {entry.benchmark.name} (budget {entry.budget})"
            problems.add("run-repeated", CARD, what, "runs")
