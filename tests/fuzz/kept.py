"""The validator with a reader that lives on between submissions: as strict as the real one, without its start."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import RLock
from unittest.mock import patch

from farshift.benchmarks.benchmark import Benchmark
from farshift.leaderboard.submission.validate import Submission, validate_open_submission
from farshift.leaderboard.validation.process import ReaderProcess


class KeptReader(ReaderProcess):
    """A reader that is not ended when a submission is read."""

    def finish(self) -> None:
        self._decoded = 0


_READERS = ("sealed.submit", "submission.pack", "submission.validate")


@contextmanager
def reading_with(reader: KeptReader) -> Iterator[None]:
    """While the context lasts, this process has submissions read by that reader, for one thread at a time."""
    lock = RLock()

    @contextmanager
    def turn() -> Iterator[KeptReader]:
        with lock:
            try:
                yield reader
            finally:
                reader.finish()

    with ExitStack() as stack:
        for user in _READERS:
            stack.enter_context(patch(f"farshift.leaderboard.{user}.ReaderProcess", turn))
        yield


class Validator:
    """`check` for bytes, with one reader and the benchmarks read once."""

    def __init__(self, known: dict[str, Benchmark]) -> None:
        self.reader, self.known = KeptReader(), known

    def __call__(self, content: bytes, name: str = "s.zip") -> Submission:
        return validate_open_submission(io.BytesIO(content), name, self.reader, known=self.known)

    def end(self) -> None:
        self.reader.end()
