"""Published counts, and how rows differ from them: what data that nobody has pinned are held to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from ...core.errors import BadData

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 4


class ExpectedCounts(BaseModel):
    """Counts printed where the data were published, or counted in bytes that others can have (`reference` says which).

    `rows`: of the whole source. `values`: by field, the rows of each of its values; by several fields, joined with
    commas ("domain,category"), of each combination (values joined with commas too). `distinct`: by field, the number
    of different values.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    reference: str
    rows: int | None = None
    values: dict[str, dict[str, int]] = {}
    distinct: dict[str, int] = {}


class CountsDiffer(BadData):
    """Rows that do not have the published counts. `table` lists what differs: what, expected, found."""

    table: tuple[tuple[str, int, int], ...] = ()


def check_expected(expected: ExpectedCounts, rows: pa.Table, where: str) -> None:
    """`CountsDiffer` where the rows differ from the published counts."""
    wrong = find_differences(expected, rows)
    if not wrong:
        return
    first = "; ".join(f"{what}: {target:,} expected, {actual:,} found" for what, target, actual in wrong[:_SHOWN])
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    error = CountsDiffer(
        f"{where} does not give the published rows ({first}{more}), counted by {expected.reference}: bring a whole and "
        "unchanged copy"
    )
    error.table = tuple(wrong)
    raise error


def find_differences(expected: ExpectedCounts, rows: pa.Table) -> list[tuple[str, int, int]]:
    """Each count that differs: what is counted, how many are expected, how many there are."""
    wrong = []
    if expected.rows is not None and rows.num_rows != expected.rows:
        wrong.append(("rows", expected.rows, rows.num_rows))
    for fields, targets in sorted(expected.values.items()):
        actual = count_values(rows, fields.split(","))
        for value in sorted({*targets, *actual}):
            if targets.get(value, 0) != actual.get(value, 0):
                wrong.append((f"{fields}={value}", targets.get(value, 0), actual.get(value, 0)))
    for field, number in sorted(expected.distinct.items()):
        distinct_count = len(rows[field].unique())
        if distinct_count != number:
            wrong.append((f"different values of {field}", number, distinct_count))
    return wrong


def count_values(rows: pa.Table, fields: list[str]) -> dict[str, int]:
    """How many rows have each value of a field, or each combination of several (joined with commas)."""
    grouped = rows.select(fields).group_by(fields).aggregate([([], "count_all")])
    keys = zip(*(grouped[field].to_pylist() for field in fields), strict=True)
    return {",".join(map(str, key)): number for key, number in zip(keys, grouped["count_all"].to_pylist(), strict=True)}
