"""A benchmark whose test is a sealed draw. Everything else is the public benchmark's: training and validation rows,
task, metrics, protocol. The harness, the validator and the scorer accept it like any other benchmark.

Its views `id` and `ood` consist of the draw's rows; `public_id` and `public_ood` of the published test rows, which the
same models predict in the same run. So their difference does not depend on a team's statements about its models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.definition import View
from ...core.canonical import compute_identity
from ...core.errors import FarshiftError
from ...loaders.part import Part
from .draw_folder import PublishedDraw
from .drawing import SEALED, VIEWS, SealedDraw


@dataclass(frozen=True)
class SealedBenchmark(Benchmark):
    """The benchmark of a window. `drawn` is None while the labels are secret: then predictions can be made and
    validated, but not scored."""

    draw: PublishedDraw
    inputs: Part
    drawn: SealedDraw | None = None

    def identity(self, *args: Any, **options: Any) -> str:
        """The public benchmark's identity, combined with the window and the draw."""
        inner = super().identity(*args, **options)
        seeded = {"commitment": self.draw.commitment, "inputs": self.draw.digest}
        return compute_identity({"entry": inner, "window": self.draw.terms.record(), "draw": seeded})

    def has_part(self, name: str) -> bool:
        return name == SEALED or super().has_part(name)

    def part(self, name: str) -> Part:
        if name != SEALED:
            return super().part(name)
        return self.inputs if self.drawn is None else self.drawn.rows

    def view(self, view: View | str) -> tuple[Part, NDArray[Any]]:
        name = view if isinstance(view, str) else ""
        if (view.part if isinstance(view, View) else self.definition.views[view].part) == SEALED:
            if self.drawn is None:
                raise FarshiftError(f"window {self.draw.terms.window}: its labels are not revealed yet")
            rows = self.drawn.rows
            chosen = rows.select(self.drawn.sides[name]) if name else rows
            return chosen, chosen.true_labels()
        part, truth = super().view(view)
        if self.drawn is None or not name:
            return part, truth
        is_counterpart = np.isin(part.row_ids, self.drawn.counterpart[name.removeprefix("public_")])
        return part.select(is_counterpart), truth[is_counterpart]


def name_public_view(name: str) -> str:
    """The name of the view of published rows that corresponds to a view of sealed rows."""
    return f"public_{name}"


def make_sealed_benchmark(
    benchmark: Benchmark, draw: PublishedDraw, drawn: SealedDraw | None = None
) -> SealedBenchmark:
    """The benchmark of a window, from the published draw; with the labels in `drawn` it can be scored."""
    definition = benchmark.definition
    views: Mapping[str, View] = {name: View(part=SEALED) for name in VIEWS} | {
        name_public_view(name): definition.views[name] for name in VIEWS
    }
    sealed_definition = definition.model_copy(update={"views": dict(views), "composed": None})
    inputs = Part(
        split=benchmark.manifest.full_name,
        identity=draw.digest,
        name=SEALED,
        schema=benchmark.split.source.schema,
        label=benchmark.task.label,
        source=draw.inputs,
        source_indices=np.arange(draw.inputs.num_rows),
        row_metadata={},
    )
    return SealedBenchmark(sealed_definition, benchmark.path, draw, inputs, drawn)
