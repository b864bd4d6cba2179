"""The score of answers once the labels are known: a pure function of draw and answers."""

from __future__ import annotations

from typing import Any

from ...benchmarks.scoring.score import score_predictions
from ...core.canonical import compute_identity
from ...core.errors import FarshiftError
from ..submission.validate import ValidRun
from .benchmark import SealedBenchmark
from .contrast import compute_contrast


def score_answers(sealed: SealedBenchmark, entry: ValidRun) -> dict[str, Any]:
    """The score of a team's answers by the scorer of every entry, and the contrast of public and sealed rows; n/a with
    the reason where they cannot be scored."""
    try:
        score = score_predictions(sealed, entry.predictions, entry)
        return {"score": score.to_dict(), "contrast": compute_contrast(sealed, entry.predictions, entry)}
    except FarshiftError as error:
        return {"n/a": str(error)}


def compute_predictions_digest(entry: ValidRun) -> str:
    """What answers come to: sha256 over the predictions of the draw and of the public test rows, of each seed and
    candidate, in any order of these. Two files with the same answers have one digest, whatever they say of model and
    team."""
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
