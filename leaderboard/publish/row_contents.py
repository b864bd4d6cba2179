"""What a row says, for the few that a page names: of generated data, which anybody has who has Farshift, and of
published data where a page may show their rows and they are on the disk (shown_rows.py). Other rows are named by their
ids alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...benchmarks.benchmark import Benchmark, benchmarks
from .examples import ExampleRow, example_row
from .shown_rows import is_here, source_of, why_not


def row_contents(benchmark: str, ids: Sequence[int]) -> dict[int, ExampleRow]:
    """Inputs and label of some rows of the OOD view, by row id; empty where no page shows rows of the benchmark."""
    known = benchmarks().get(benchmark)
    if known is None or not ids or not _shown(known):
        return {}
    part, _ = known.view("ood")
    places = np.searchsorted(part.row_ids, np.array(ids, np.uint64))
    rows = part.select(places)
    return {one: example_row(known, rows, at) for at, one in enumerate(ids)}


def _shown(benchmark: Benchmark) -> bool:
    source = source_of(benchmark)
    if source is None or not source.needs_network:
        return source is not None and not source.extra
    return is_here(source) and not why_not(benchmark, source)


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
