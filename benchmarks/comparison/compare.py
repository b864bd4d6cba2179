"""Comparing two runs on the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core.errors import FarshiftError, UnknownName
from ..runs.run import Run, read_run
from ..scoring.measured import Scored
from ..scoring.score import current, entry_identity
from ..statistics.clusters import in_plain_english
from ..statistics.interval import difference_of_gaps, paired_difference
from ..statistics.margin import LEVEL
from ..statistics.sample import Sample


def compare(left: Run | Path | str, right: Run | Path | str) -> dict[str, Any]:
    """Left minus right on the same rows: differences in ID, OOD and gap, each with its paired 95 % interval.

    `distinguishable` says whether the interval excludes zero; it is None where a run has a single seed, since the
    interval then lacks the noise of training, and where the difference is `n/a`. Refuses runs of different entry
    identity.

    >>> import farshift as fs
    >>> names = "quadratic-mlp", "quadratic-mlp-weight-decay"
    >>> plain, decayed = (fs.baseline("modadd97/xi35", name) for name in names)
    >>> difference = fs.compare(plain, decayed)["difference"]["ood"]
    >>> round(difference["value"], 2), difference["distinguishable"]
    (-1.0, True)
    """
    a, b = (run if isinstance(run, Run) else read_run(run) for run in (left, right))
    if entry_identity(a) != entry_identity(b):
        raise FarshiftError(f"these runs cannot be compared: {described(a)}, {described(b)}")
    x, y = ((run_view(run, "id"), run_view(run, "ood")) for run in (a, b))
    clusters = in_plain_english({"ID": x[0].clustering, "OOD": x[1].clustering})
    found = {
        name: paired_difference(one, other).to_dict() for name, one, other in zip(("id", "ood"), x, y, strict=True)
    }
    found["gap"] = difference_of_gaps(x, y).to_dict()
    single = min(len(a.seeds), len(b.seeds)) == 1
    over = (
        "rows only: a single seed tells nothing of training noise" if single else "rows and the training seeds of both"
    )
    for item in found.values():
        unsure = single or "n/a" in item
        item["distinguishable"] = None if unsure else not item["low"] <= 0 <= item["high"]
        for name in ("per_seed", "seeds"):
            item.pop(name, None)
    return {
        "benchmark": a.benchmark,
        "left": a.model,
        "right": b.model,
        "seeds": {"left": len(a.seeds), "right": len(b.seeds)},
        "difference": found,
        "interval": f"left minus right; {LEVEL:.0%} t interval over paired {over}{clusters}",
    }


def described(run: Run) -> str:
    """What a run is of, for a message that says why it does not fit another."""
    return (
        f"{run.model} is on {run.benchmark} (budget {run.budget}, chosen by {run.selection}, "
        f"identity {run.entry_identity[:12]}..)"
    )


def run_view(run: Run, view: str) -> Sample:
    """A view of a run by the primary metric, answered as the run's own rule chooses."""
    benchmark = current(run)
    if view not in benchmark.definition.views:
        raise UnknownName(f"view of {benchmark.name}", view, benchmark.definition.views)
    scored = Scored(benchmark, run.predictions(), run)
    chosen = scored.choose(benchmark.rule(run.selection))
    return scored.view(view, chosen).by(benchmark.metrics[0])
