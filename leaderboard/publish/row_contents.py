"""What a row says, for the few that a page names: of generated data alone, which anybody has who has Farshift. Rows of
files are named by their ids, whether or not the files are at hand: pages must not differ by what a cache holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...benchmarks.benchmark import Benchmark, benchmarks
from ...core.errors import FarshiftError
from ...loaders.acquire.source import find_source

LONGEST = 160
"""Characters of a value that are shown."""


def is_generated(benchmark: Benchmark) -> bool:
    """Whether a benchmark's rows are made by a generator."""
    try:
        return not find_source(benchmark.manifest.definition.source.name).needs_network
    except FarshiftError:
        return False


def row_contents(benchmark: str, ids: Sequence[int]) -> dict[int, list[tuple[str, str]]]:
    """Inputs and label of some rows of the OOD view, by row id; empty where the data are not generated."""
    known = benchmarks().get(benchmark)
    if known is None or not ids or not is_generated(known):
        return {}
    part, _ = known.view("ood")
    places = np.searchsorted(part.row_ids, np.array(ids, np.uint64))
    names = [*known.definition.task.inputs, known.definition.task.label]
    rows = part.select(places).arrow(names).to_pylist()
    return {one: [(name, _short(row[name])) for name in names] for one, row in zip(ids, rows, strict=True)}


def code_for(benchmark: str, ids: Sequence[int]) -> str:
    """Python that prints some rows of the OOD view; empty where the benchmark is not known here."""
    known = benchmarks().get(benchmark)
    if known is None or not ids:
        return ""
    listed = ", ".join(f"0x{one:016x}" for one in ids)
    return (
        "import farshift as fs\nimport numpy as np\n\n"
        f'part = fs.load("{known.definition.split}", part="{known.definition.views["ood"].part}")\n'
        f"print(part.select(np.isin(part.row_ids, np.array([{listed}], np.uint64))).arrow().to_pylist())"
    )


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}.."
