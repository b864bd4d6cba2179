"""Published counts, against which data without a pinned digest are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from ...core.errors import BadData

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 4


class ExpectedCounts(BaseModel):
    """Counts printed in the publication, or computed from a public copy (`reference` says which).

    `rows`: of the whole source. `values`: by field, the rows of each value; for several fields, joined with commas
    ("domain,category"), of each combination (values also joined with commas). `distinct`: by field, the number of
    distinct values.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    reference: str
    rows: int | None = None
    values: dict[str, dict[str, int]] = {}
    distinct: dict[str, int] = {}


class CountsDiffer(BadData):
    """The rows differ from the published counts."""


def check_expected(expected: ExpectedCounts, rows: pa.Table, where: str) -> None:
    """Raise `CountsDiffer`, which names the first differences, if the rows differ from the published counts."""
    if wrong := find_differences(expected, rows):
        first = "; ".join(f"{what}: {target:,} expected, {actual:,} found" for what, target, actual in wrong[:_SHOWN])
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise CountsDiffer(
            f"{where} differs from the published counts ({first}{more}) of {expected.reference}: use a complete, "
            "unmodified copy"
        )


def find_differences(expected: ExpectedCounts, rows: pa.Table) -> list[tuple[str, int, int]]:
    """Return each count that differs: (name, expected, found)."""
    wrong = []
    if expected.rows is not None and rows.num_rows != expected.rows:
        wrong.append(("rows", expected.rows, rows.num_rows))
    for fields, targets in sorted(expected.values.items()):
        grouped = rows.group_by(names := fields.split(",")).aggregate([([], "count_all")])
        keys = zip(*(map(str, grouped[name].to_pylist()) for name in names), strict=True)
        actual = dict(zip(map(",".join, keys), grouped["count_all"].to_pylist(), strict=True))
        for value in sorted({*targets, *actual}):
            if targets.get(value, 0) != actual.get(value, 0):
                wrong.append((f"{fields}={value}", targets.get(value, 0), actual.get(value, 0)))
    for field, number in sorted(expected.distinct.items()):
        distinct_count = len(rows[field].unique())
        if distinct_count != number:
            wrong.append((f"different values of {field}", number, distinct_count))
    return wrong
