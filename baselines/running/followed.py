"""Following trainings in other processes: what their files say is told to who listens here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from ...benchmarks.runs.fit_progress import read_fit_progress
from ...core.progress import advance

_SECONDS = 0.5


@contextmanager
def followed(files: Mapping[str, Mapping[Path, int]]) -> Iterator[None]:
    """While the context lasts, tell how far trainings are. files: by label, each process's file and all its steps."""
    ended = Event()
    seen: dict[Path, int] = {}

    def follow() -> None:
        while not ended.wait(_SECONDS):
            for label, steps in files.items():
                tell(label, steps, seen)

    thread = Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def tell(label: str, steps: Mapping[Path, int], seen: dict[Path, int]) -> None:
    """Tell once what the files say. seen: how far each was, so far; one that is gone had nothing left to train."""
    losses = []
    for path, whole in steps.items():
        now = read_fit_progress(path)
        if now is not None:
            seen[path] = now.done
            losses += [now.loss] if now.loss is not None else []
        elif path in seen:
            seen[path] = whole
    if done := sum(seen.get(path, 0) for path in steps):
        note = f"loss {sum(losses) / len(losses):.4g}" if losses else ""
        advance(label, done, sum(steps.values()), note)
