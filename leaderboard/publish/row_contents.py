"""Content of the rows that a page names: for generated data, and for published data if a page may show their rows and
they are on the disk (example_permissions.py). Other rows are shown by id only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from .example_permissions import explain_refusal, find_benchmark_source, is_on_disk
from .examples import ExampleRow, make_example_row


def read_row_contents(benchmark: str, ids: Sequence[int]) -> dict[int, ExampleRow]:
    """Return inputs and label of rows of the OOD view, by row id; empty if pages do not show the benchmark's rows."""
    known = load_benchmarks().get(benchmark)
    if known is None or not ids or not _may_show_rows(known):
        return {}
    part, _ = known.view("ood")
    positions = np.searchsorted(part.row_ids, np.array(ids, np.uint64))
    rows = part.select(positions)
    return {row_id: make_example_row(known, rows, at) for at, row_id in enumerate(ids)}


def _may_show_rows(benchmark: Benchmark) -> bool:
    source = find_benchmark_source(benchmark)
    if source is None or not source.needs_network:
        return source is not None and not source.extra
    return is_on_disk(source) and not explain_refusal(benchmark, source)


def make_row_code(benchmark: str, ids: Sequence[int]) -> str:
    """Return Python code that prints rows of the OOD view; empty if this version does not know the benchmark."""
    known = load_benchmarks().get(benchmark)
    if known is None or not ids:
        return ""
    listed = ", ".join(f"0x{row_id:016x}" for row_id in ids)
    return (
        "import farshift as fs\nimport numpy as np\n\n"
        f'part = fs.load("{known.definition.split}", part="{known.definition.views["ood"].part}")\n'
        f"print(part.select(np.isin(part.row_ids, np.array([{listed}], np.uint64))).arrow().to_pylist())"
    )
