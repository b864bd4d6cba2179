"""Follow trainings in other processes: read their progress files and report to listeners in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ...benchmarks.runs.fit_progress import read_fit_progress
from ...core.progress import report_progress, run_every

_SECONDS = 0.5


@contextmanager
def watch_progress_files(files: Mapping[str, Mapping[Path, int]]) -> Iterator[None]:
    """Report the progress of trainings while the context lasts. files: by label, each process's file and its steps."""
    done_by_path: dict[Path, int] = {}

    def follow() -> None:
        for label, steps in files.items():
            report_file_progress(label, steps, done_by_path)

    with run_every(_SECONDS, follow):
        yield


def report_file_progress(label: str, steps: Mapping[Path, int], done_by_path: dict[Path, int]) -> None:
    """Report once what the files say. done_by_path: the steps done so far; a file that is gone has no steps left."""
    losses = []
    for path, total in steps.items():
        now = read_fit_progress(path)
        if now is not None:
            done_by_path[path] = now.done
            losses += [now.loss] if now.loss is not None else []
        elif path in done_by_path:
            done_by_path[path] = total
    if done := sum(done_by_path.get(path, 0) for path in steps):
        note = f"loss {sum(losses) / len(losses):.4g}" if losses else ""
        report_progress(label, done, sum(steps.values()), note)
