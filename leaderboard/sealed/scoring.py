"""The score of answers once the labels are known: a pure function of draw and answers."""

from __future__ import annotations

from typing import Any

from ...benchmarks.scoring.score import score_predictions
from ...core.errors import FarshiftError
from ..submission.validate import ValidRun
from .benchmark import SealedBenchmark
from .contrast import contrast


def result(sealed: SealedBenchmark, entry: ValidRun) -> dict[str, Any]:
    """The score of a team's answers by the scorer of every entry, and the contrast of public and sealed rows; n/a with
    the reason where they cannot be scored."""
    try:
        score = score_predictions(sealed, entry.predictions, entry)
        return {"score": score.to_dict(), "contrast": contrast(sealed, entry.predictions, entry)}
    except FarshiftError as error:
        return {"n/a": str(error)}
