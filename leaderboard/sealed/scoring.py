"""The score of a submission to a window once the labels are known: a pure function of draw and predictions."""

from __future__ import annotations

from typing import Any

from ...benchmarks.scoring.score import score_predictions
from ...core.canonical import compute_identity
from ...core.errors import FarshiftError
from ..submission.validate import ValidRun
from .benchmark import SealedBenchmark
from .contrast import compute_contrast


def score_answers(sealed: SealedBenchmark, entry: ValidRun) -> dict[str, Any]:
    """The score of a team's submission by the scorer of ordinary entries, and the contrast of public and sealed rows;
    n/a with the reason if they cannot be computed."""
    try:
        score = score_predictions(sealed, entry.predictions, entry)
        return {"score": score.to_dict(), "contrast": compute_contrast(sealed, entry.predictions, entry)}
    except FarshiftError as error:
        return {"n/a": str(error)}


def compute_predictions_digest(entry: ValidRun) -> str:
    """sha256 over the predictions on the draw and on the public test rows, of each seed and candidate, whatever their
    order. Two files with the same predictions have the same digest, whatever they state about model and team."""
    import pyarrow as pa
    import pyarrow.compute as pc

    tested = pa.array(sorted({view.part for view in entry.benchmark.definition.views.values()}))
    rows = entry.predictions.filter(pc.is_in(entry.predictions["part"], value_set=tested))
    blocks = []
    for seed in entry.seeds:
        of_seed = rows.filter(pc.equal(rows["seed"], seed))
        for candidate in pc.unique(of_seed["candidate"]).to_pylist():
            block = of_seed.filter(pc.equal(of_seed["candidate"], candidate))
            block = block.sort_by([("part", "ascending"), ("row_id", "ascending")])
            blocks.append(compute_identity(block.select(["part", "row_id", "prediction", "status"]).to_pylist()))
    return compute_identity(sorted(blocks))
