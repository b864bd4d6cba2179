"""Build a board from many runs: pack them, submit them in several processes, verify the board, write its pages.

The runs are given as jobs; the caller defines how a run is obtained. An interrupted or repeated build continues with
the jobs whose run the board does not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...benchmarks.runs.run import Run
from ...core.clock import Stopwatch
from ...core.documents import read_json
from ...core.durable import ADVICE
from ...core.engines import Needs, iterate_outcomes, open_engine
from ...core.errors import FarshiftError, Unavailable
from ...core.files import write_atomically
from ...core.progress import log_message, report_progress
from ...core.text import format_count
from ..board import Board
from ..entries import read_valid_entries
from ..publish.site import SITE, Site, write_site
from ..settings import write_baselines
from ..submission.pack import pack_runs
from ..tables.row_scores import read_entry_rows
from ..tables.snapshot import take_snapshot
from .manage import declare_references
from .submit import submit_runs
from .verify import verify_board

BUILT = Path("derived") / "built.json"
"""The run of each job, by the job's key. May be deleted: its jobs then run again."""

BATCHES_PER_PROCESS = 4
"""Batches that take about as long as a process takes to start."""

Fetch = Callable[[str, str], Run]


@dataclass(frozen=True)
class Job:
    """One run to be entered: `fetch(benchmark, model)` returns it, in another process. key: changes whenever the run
    would; batch: jobs of one batch are submitted together."""

    key: str
    benchmark: str
    model: str
    batch: str


@dataclass(frozen=True)
class BuildReport:
    """The results of a build. left_out: jobs whose data are unavailable here, with the reason; differences: those that
    the verification found."""

    board: Path
    page: Path
    entered: int
    there: int
    left_out: list[str]
    entries: int
    differences: list[str]
    seconds: dict[str, float]

    def record(self) -> dict[str, Any]:
        """Return plain JSON."""
        return self.__dict__ | {"board": str(self.board), "page": str(self.page)}

    def __str__(self) -> str:
        state = format_count(len(self.differences), "difference") if self.differences else "verified"
        took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in self.seconds.items())
        entered, entries = format_count(self.entered, "run"), format_count(self.entries, "entry", "entries")
        lines = [f"{self.board}: {entered} entered, {self.there} already there; {entries}, {state}"]
        lines += [f"left out: {why}" for why in self.left_out] + self.differences
        return "\n".join([*lines, f"({took})", f"open {self.page.resolve()}"])


def build(
    folder: Path | str,
    name: str,
    team: str,
    jobs: Sequence[Job],
    fetch: Fetch,
    baselines: Mapping[str, str] | None = None,
    workers: int = 2,
) -> BuildReport:
    """Enter the runs of all jobs into the board at `folder`, which is created if it does not exist; verify everything;
    write the pages.

    baselines: for each benchmark the model that its entries are compared with. Raises `FarshiftError` if there are no
    jobs, or a run cannot be entered; entries made before remain."""
    if not jobs:
        raise FarshiftError("no runs to build a board from")
    folder = Path(folder)
    board = Board(folder) if (folder / "board.toml").exists() else Board.init(folder, name)
    if baselines:
        write_baselines(folder, baselines)
    watch = Stopwatch()
    entered_runs = {entry.run_digest for entry in read_valid_entries(board.committed_records()).values()}
    known = _read_run_digests(board)
    todo = [job for job in jobs if known.get(job.key) not in entered_runs]
    if len(todo) < len(jobs):
        log_message(f"{len(jobs) - len(todo)} of {len(jobs)} runs are already on {folder}")
    left_out = _submit_jobs(board, todo, fetch, team, workers)
    built = _read_run_digests(board)
    runs = {built[job.key] for job in jobs if job.key in built}
    # As references all of them are ranked, although they have the same team.
    entries = read_valid_entries(board.committed_records()).values()
    declare_references(board, [entry.entry for entry in entries if entry.run_digest in runs])
    seconds = {"entering": watch.seconds()}
    verification = verify_board(board)
    seconds["verifying"] = watch.seconds() - seconds["entering"]
    page = write_site(Site(take_snapshot(board), board), folder / SITE)
    seconds["pages"] = watch.seconds() - sum(seconds.values())
    entered, there = len(todo) - len(left_out), len(jobs) - len(todo)
    differences = list(verification.differences)
    return BuildReport(folder, page, entered, there, left_out, len(board.standings()), differences, seconds)


def _read_run_digests(board: Board) -> dict[str, str]:
    try:
        digests = read_json(board.path / BUILT)
    except (OSError, ValueError):
        return {}
    return digests if isinstance(digests, dict) else {}


def _submit_jobs(board: Board, jobs: Sequence[Job], fetch: Fetch, team: str, workers: int) -> list[str]:
    """Enter the runs of all jobs. Returns reasons for the jobs that were left out."""
    batches: dict[str, list[Job]] = {}
    for job in jobs:
        batches.setdefault(job.batch, []).append(job)
    done, left_out = 0, []
    built = _read_run_digests(board)
    report_progress("entering runs", 0, len(jobs) or None)
    # Largest first, so that the processes finish at about the same time.
    order = sorted(batches.values(), key=lambda batch: (-len(batch), batch[0].batch))
    worthwhile = max(1, len(order) // BATCHES_PER_PROCESS)
    with open_engine("processes", Needs(workers=min(workers or worthwhile, worthwhile))) as engine:
        for index, result, error in iterate_outcomes(
            engine, partial(_submit_batch, str(board.path), fetch, team), order
        ):
            if error is not None:
                raise error
            digests, why = result
            built |= digests
            left_out += why
            done += len(order[index])
            write_atomically(board.path / BUILT, json.dumps(built, sort_keys=True, indent=1).encode(), ADVICE)
            report_progress("entering runs", done, len(jobs))
    return sorted(left_out)


def _submit_batch(folder: str, fetch: Fetch, team: str, jobs: Sequence[Job]) -> tuple[dict[str, str], list[str]]:
    """Enter the runs of a batch, and cache their row scores. Returns the digest of each job's run by its key, and
    reasons for the jobs that were left out."""
    board = Board(folder)
    entered_runs = {entry.run_digest for entry in read_valid_entries(board.committed_records()).values()}
    runs, digests, left_out = [], {}, []
    for job in jobs:
        try:
            run = fetch(job.benchmark, job.model)
        except Unavailable as error:
            left_out.append(f"{job.model} on {job.benchmark}: {error}")
            continue
        digests[job.key] = run.digest
        if run.digest not in entered_runs:
            runs.append(run)
    if runs:
        with TemporaryDirectory() as temporary_folder:
            file = pack_runs(runs, Path(temporary_folder) / "submission.zip", team=team)
            names, _ = submit_runs(board, file)
        read_entry_rows(board, [entry for entry in board.standings() if entry.entry in names])
    return digests, left_out
