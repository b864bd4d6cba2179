"""The validator and the scorer, each asked once for the same bytes: pure functions, whose cost is not what is tested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from farshift.benchmarks.scoring.score import Score
from farshift.core.files import compute_file_sha256
from farshift.leaderboard.operations import submit as submitting
from farshift.leaderboard.submission import validate

_USERS = ("operations.submit", "operations.verify")
_check, _scored = validate.validate_submission, submitting.score_entry

_checked: dict[tuple[str, frozenset[int] | None, bool], validate.Submission] = {}
_scores: dict[tuple[str, str], Score] = {}


def check(path: Path, only: set[int] | None = None, known: Any = None) -> validate.Submission:
    key = (compute_file_sha256(path), None if only is None else frozenset(only), known is None)
    if key not in _checked:
        _checked[key] = _check(path, only, known=known)
    return _checked[key]


def scored(entry: validate.ValidRun) -> Score:
    key = (entry.digest, entry.entry_identity)
    if key not in _scores:
        _scores[key] = _scored(entry)
    return _scores[key]


@contextmanager
def remembering() -> Iterator[None]:
    """While the context lasts, what was checked or scored before in this process is not checked or scored again."""
    with ExitStack() as stack:
        for user in _USERS:
            stack.enter_context(patch(f"farshift.leaderboard.{user}.validate_submission", check))
            stack.enter_context(patch(f"farshift.leaderboard.{user}.score_entry", scored))
        yield
