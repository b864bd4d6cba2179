"""Validation: may this file be scored? Every problem at once, each with where it is. Nothing in it is ever run.

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
from ...benchmarks.runs.asked import limit_of
from ...benchmarks.runs.card import RunCard
from ...benchmarks.runs.run import RunLike, card_problem
from ...benchmarks.scoring.completeness import WantedRows, wanted_rows
from ...core.errors import FarshiftError, UnknownName
from ...core.files import plain_disk_errors
from ...core.listings.plural import counted
from ..validation.archive import CARD, Archive
from ..validation.card import ModelCard, SubmissionCard, submission_card
from ..validation.limits import RUNS, SUBMISSION_BYTES
from ..validation.predictions import table_problems, wanted_table
from ..validation.problem import Problems, shown
from ..validation.process import Reader
from ..validation.run_card import value_problems
from ..validation.wanted import Refused
from .signature import checked_signature

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ValidRun(RunLike):
    """One valid run of a submission, ready to be scored."""

    benchmark: Benchmark
    predictions: pa.Table

    @property
    def entry_identity(self) -> str:
        """The identity that the present scorer gives the entry, also where the run was made under an earlier one."""
        return self.benchmark.identity(self.budget, self.steps, self.selection)


@dataclass(frozen=True)
class Submission:
    """A valid submission: sha256 of its file, its card, its runs, and the public key of the team that signed it (64
    hexadecimal digits), empty where none did."""

    digest: str
    card: SubmissionCard
    entries: list[ValidRun]
    team_key: str = ""

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def team(self) -> str:
        return self.card.team

    @property
    def note(self) -> str:
        return self.card.note

    @property
    def choose(self) -> bool:
        """Whether the team is to be ranked by these runs."""
        return self.card.choose

    @property
    def model(self) -> ModelCard:
        """What the team declares of its model."""
        return self.card.model


Allowed = Callable[[Submission], None]
"""Raises `FarshiftError` for a valid submission that whoever hands it in may not."""


@dataclass(frozen=True)
class _Read:
    """A run whose predictions were decoded, and are still to be checked."""

    card: RunCard
    benchmark: Benchmark
    table: pa.Table
    rows: list[WantedRows]
    file: str


def check(path: Path | str, only: set[int] | None = None) -> Submission:
    """A submission file, read and validated. `BadSubmission` lists every problem found (`problems`, one by one).
    `only` names the runs to look at (a board that recomputes leaves out those of an older identity)."""
    path = Path(path)
    problems = Problems()
    if path.is_dir():
        problems.add("file-missing", str(path), "is a folder; a run is packed first: farshift pack RUN --out FILE.zip")
    elif not path.is_file():
        problems.add("file-missing", str(path), "does not exist or is not a file")
    elif path.stat().st_size > SUBMISSION_BYTES:
        size = path.stat().st_size
        problems.add("file-too-large", str(path), f"has {size} bytes; at most {SUBMISSION_BYTES} are taken")
    problems.refuse_if_any(path.name)
    with path.open("rb") as file, Reader() as reader:
        before = os.fstat(file.fileno())
        found = checked(file, path.name, reader, only)
        after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        problems.add("file-changed", path.name, "was changed while it was read")
        problems.refuse_if_any(path.name)
    return found


def checked(
    file: BinaryIO,
    name: str,
    reader: Reader,
    only: set[int] | None = None,
    known: Mapping[str, Benchmark] | None = None,
) -> Submission:
    """The submission in an open file, which messages call `name`, decoded by `reader`, which is ended before anything
    that it gave is looked at. `known` are the benchmarks that there are, read here if they are not given."""
    problems = Problems()
    archive = Archive(file, name, problems)
    problems.refuse_if_any(name)
    reader.begin()
    raw = _card(archive, CARD, reader, problems)
    card = SubmissionCard("", "", "", ModelCard(), ()) if raw is None else submission_card(raw, CARD, problems)
    team_key = "" if raw is None else checked_signature(raw, CARD, problems)
    if not card.runs:
        problems.refuse_if_any(name)
    if len(card.runs) > RUNS:
        problems.add("zip-too-many", CARD, f"lists {len(card.runs)} runs; at most {RUNS} are taken")
        problems.refuse_if_any(name)
    chosen = [number for number in range(len(card.runs)) if only is None or number in only]
    known = definitions.benchmarks() if known is None else known
    read = [_run(number, card.runs[number], archive, reader, known, problems) for number in chosen]
    reader.finish()
    listed = {CARD} | {file for number in range(len(card.runs)) for file in run_files(number)}
    for extra in sorted(set(archive.members) - listed):
        problems.add("run-not-listed", extra, f"not listed in {CARD}")
    entries = [entry for one in read if one is not None for entry in _entry(one, problems)]
    _add_duplicates(entries, problems)
    problems.refuse_if_any(name)
    return Submission(archive.digest(), card, entries, team_key)


def run_files(number: int) -> tuple[str, str]:
    """Where a submission's run card and predictions lie in its zip."""
    return f"runs/{number}.toml", f"predictions/{number}.parquet"


def _card(archive: Archive, name: str, reader: Reader, problems: Problems) -> dict[str, Any] | None:
    if name not in archive.members:
        problems.add("entry-missing", name, "is missing")
        return None
    with _temporary() as file:
        if not archive.unpack(name, file, problems):
            return None
        try:
            return reader.card(file)
        except Refused as refused:
            _add(refused, name, problems)
            return None


@contextmanager
def _temporary() -> Iterator[BinaryIO]:
    """A file without a name, for an entry's bytes."""
    folder = Path(tempfile.gettempdir())
    with plain_disk_errors(folder, "set TMPDIR to another disk"), tempfile.TemporaryFile() as file:
        yield file


def _run(
    number: int,
    listed: dict[str, str],
    archive: Archive,
    reader: Reader,
    known: Mapping[str, Benchmark],
    problems: Problems,
) -> _Read | None:
    """One run's card and predictions, decoded."""
    file, predictions = run_files(number)
    card = _card(archive, file, reader, problems)
    if card is None or not _is_listed(card, listed, file, problems):
        return None
    if predictions not in archive.members:
        problems.add("entry-missing", predictions, "is missing")
        return None
    with _temporary() as content:
        digest = archive.unpack(predictions, content, problems)
        if not digest:
            return None
        if digest != card["digests"]["predictions"] or digest != listed["predictions"]:
            problems.add("digest-differs", predictions, f"its digest is not the one in {file} and in {CARD}")
            return None
        try:
            run = RunLike(RunCard.from_dict(card))
            benchmark = _benchmark(run, known, file, problems)
            if benchmark is None:
                return None
            if (limit := limit_of(run.card.model.more)) is not None:
                problems.add(
                    "run-limited",
                    file,
                    f"a trial of {counted(limit, 'row')} of each part (--limit): evaluate on all rows",
                )
                return None
            rows = wanted_rows(benchmark, run)
            table = reader.predictions(content, wanted_table(benchmark, run, rows))
        except Refused as refused:
            _add(refused, predictions, problems)
            return None
    return _Read(run.card, benchmark, table, rows, predictions)


def _is_listed(card: dict[str, Any], listed: dict[str, str], file: str, problems: Problems) -> bool:
    """Whether a run's card is whole, of values that a run writes, and the one that is listed."""
    if problem := card_problem(card):
        problems.add("run-edited", file, problem)
        return False
    wrong = list(value_problems(card))
    for key, what in wrong:
        problems.add("run-value", file, what, key)
    stated = {
        "benchmark": card["benchmark"].get("name"),
        "model": card["model"].get("name"),
        "run": card["digests"]["run"],
    }
    different = [key for key, value in stated.items() if listed[key] != value]
    if different:
        problems.add("run-not-listed", file, f"is not the run that {CARD} lists: another {', '.join(different)}")
    return not wrong and not different


def _benchmark(run: RunLike, known: Mapping[str, Benchmark], file: str, problems: Problems) -> Benchmark | None:
    """The benchmark of a run that this version scores."""
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


def _entry(run: _Read, problems: Problems) -> Iterator[ValidRun]:
    """The run as an entry, if its rows and values are as they must be."""
    before = len(problems)
    try:
        run.table.validate(full=True)
    except ValueError as error:  # the reader hands on nothing of the kind unless it was taken over
        problems.add("parquet-unreadable", run.file, f"decoded to no table: {error}")
        return
    table_problems(run.table, run.benchmark, RunLike(run.card), run.rows, run.file, problems)
    if len(problems) == before:
        yield ValidRun(run.card, run.benchmark, run.table)


def _add_duplicates(entries: list[ValidRun], problems: Problems) -> None:
    """Two entries of one model on one benchmark, budget and rule could not be distinguished."""
    seen: dict[tuple[Any, ...], int] = {}
    for number, entry in enumerate(entries):
        key = (entry.benchmark.name, entry.model, entry.budget, entry.steps, entry.selection)
        if seen.setdefault(key, number) != number:
            what = f"two runs are both {entry.model} on {entry.benchmark.name} (budget {entry.budget})"
            problems.add("run-repeated", CARD, what, "runs")


def _add(refused: Refused, file: str, problems: Problems) -> None:
    for name, what, column in refused.findings:
        problems.add(name, file, what, shown(column))
