"""Images and audio that cannot be decoded. Among training rows they are an error, raised before training, that gives
the row id; a row to be predicted is left without an answer, which counts as wrong."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...benchmarks.answers import Answers
from ...benchmarks.model import Columns
from ...core.errors import BadData
from ...core.progress import log_message
from ...loaders.batching.encoded import BadFile
from .encoding import AnswerEncoding
from .stored_rows import PixelRows, find_largest_value


@contextmanager
def report_bad_rows(rows: object) -> Iterator[None]:
    """While `rows` are encoded, give the row id in the error of a file that cannot be decoded, if `rows` have ids."""
    try:
        yield
    except BadFile as error:
        ids = getattr(rows, "row_ids", None)
        if ids is None:
            raise
        raise BadData(
            f"row {int(ids[error.position]):016x}: its {error.what} cannot be decoded: {error.why}"
        ) from error


def raise_if_unreadable(inputs: Sequence[Any]) -> None:
    """Decode all files that are decoded at each reading, so that training does not stop at an unreadable image."""
    for x in inputs:
        if isinstance(x, PixelRows) and x.on_the_fly:
            find_largest_value(x.pixels)


def answer_readable_rows(
    coding: AnswerEncoding, batch: Columns, ask: Callable[[Columns], list[Answers]]
) -> list[Answers]:
    """`ask`'s answers for a batch, one for each replica; rows whose file cannot be decoded are `FAILED`."""
    try:
        return ask(batch)
    except BadFile as error:
        is_readable = coding.readable(batch)
        log_message(
            f"{int((~is_readable).sum())} {error.what} files of a batch are unreadable (counted as wrong): {error.why}"
        )
    return [
        answers.scatter(is_readable) for answers in ask({name: column[is_readable] for name, column in batch.items()})
    ]
