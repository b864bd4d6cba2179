"""Build a board from many runs: pack them, submit them in several processes, verify the board, write its pages.

The caller defines how a run is obtained. An interrupted or repeated build enters the runs that the board does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...benchmarks.runs.run import Run
from ...core.engines import Needs, map_jobs
from ...core.errors import FarshiftError, Unavailable
from ...core.progress import report_progress
from ...core.text import format_count
from ..board import Board
from ..entries import read_valid_entries
from ..publish.site import build_site
from ..settings import write_baselines
from ..submission.pack import pack_runs
from .submit import declare_references, submit_runs
from .verify import verify_board

Fetch = Callable[[str, str], Run]


@dataclass(frozen=True)
class BuildReport:
    """The results of a build. left_out: runs whose data are unavailable here, with the reason; differences: those that
    the verification found."""

    board: Path
    page: Path
    entered: int
    there: int
    left_out: list[str]
    entries: int
    differences: list[str]

    def record(self) -> dict[str, Any]:
        """Return plain JSON."""
        return self.__dict__ | {"board": str(self.board), "page": str(self.page)}

    def __str__(self) -> str:
        state = format_count(len(self.differences), "difference") if self.differences else "verified"
        entered, entries = format_count(self.entered, "run"), format_count(self.entries, "entry", "entries")
        lines = [f"{self.board}: {entered} entered, {self.there} already there; {entries}, {state}"]
        lines += [f"left out: {why}" for why in self.left_out] + self.differences
        return "\n".join([*lines, f"open {self.page.resolve()}"])


def build(
    folder: Path | str,
    name: str,
    team: str,
    runs: Sequence[tuple[str, str]],
    fetch: Fetch,
    baselines: Mapping[str, str] | None = None,
    workers: int = 2,
) -> BuildReport:
    """Enter runs, each of a benchmark and a model, into the board at `folder`, which is created if it does not exist;
    verify everything; write the pages.

    fetch: returns a run, in another process; baselines: for each benchmark the model that its entries are compared
    with. Raises `FarshiftError` if there are no runs, or one cannot be entered; entries made before remain."""
    if not runs:
        raise FarshiftError("no runs to build a board from")
    folder = Path(folder)
    board = Board(folder) if (folder / "board.toml").exists() else Board.init(folder, name)
    if baselines:
        write_baselines(folder, baselines)
    by_model: dict[str, list[str]] = {}
    for benchmark, model in runs:
        by_model.setdefault(model, []).append(benchmark)
    # Largest first, so that the processes finish at about the same time.
    jobs = sorted(by_model.items(), key=lambda job: (-len(job[1]), job[0]))
    submit = partial(_submit_model, str(folder), fetch, team)
    names: list[str] = []
    new, done, left_out = 0, 0, list[str]()
    report_progress("entering runs", 0, len(runs))
    for job, (entered, there, why) in zip(jobs, map_jobs(submit, jobs, Needs(workers=workers)), strict=True):
        names += entered + there
        new, done, left_out = new + len(entered), done + len(job[1]), left_out + why
        report_progress("entering runs", done, len(runs))
    declare_references(board, names)  # as references all of them are ranked, although they have the same team
    verification = verify_board(board)
    page = build_site(board)
    entries = len(board.standings())
    return BuildReport(folder, page, new, len(names) - new, sorted(left_out), entries, list(verification.differences))


def _submit_model(
    folder: str, fetch: Fetch, team: str, job: tuple[str, Sequence[str]]
) -> tuple[list[str], list[str], list[str]]:
    """Enter the runs of a model on some benchmarks, as one submission. Returns the new entries, those that the board
    has already, and reasons for the runs that were left out."""
    model, benchmarks = job
    board = Board(folder)
    known = {entry.run_digest: entry.entry for entry in read_valid_entries(board.committed_records()).values()}
    runs, there, left_out = [], [], []
    for benchmark in benchmarks:
        try:
            run = fetch(benchmark, model)
        except Unavailable as error:
            left_out.append(f"{model} on {benchmark}: {error}")
        else:
            if run.digest in known:
                there.append(known[run.digest])
            else:
                runs.append(run)
    if not runs:
        return [], there, left_out
    with TemporaryDirectory() as temporary_folder:
        file = pack_runs(runs, Path(temporary_folder) / "submission.zip", team=team)
        return submit_runs(board, file)[0], there, left_out
