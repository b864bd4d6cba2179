"""Comparison of two to five entries of one table: pairwise differences, and on which severities, groups and rows they
occur. There are pages for the pairs among a table's first entries, for its baseline with each of the next entries, and
to choose entries; a server makes pages for any entries (`make_compare_page`).

Each pair's OOD difference has two intervals, which answer two questions. The interval of the table's max-t rule holds
for all pairs of the table simultaneously; the rank sets are derived from it. The pairwise t interval is for this pair
alone, and is valid for a pair that was chosen before any score was known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.benchmark import Benchmark, find_benchmark
from ...benchmarks.statistics.interval import Estimate, estimate_gap_difference, estimate_paired_difference
from ...benchmarks.statistics.paired_test import run_paired_t
from ...benchmarks.statistics.sample import RowScores
from ...core.errors import FarshiftError, Unavailable, UnknownName
from ...core.text import drop_version
from ...loaders.part import Part
from ..board_view import BoardView
from ..tables.entry_rows import EntryRows
from ..tables.row_scores import read_entry_rows
from ..tables.snapshot import Snapshot
from ..tables.table import Row, Table
from .examples import find_benchmark_source, format_credit, is_on_disk, read_row_contents
from .figures import make_severity_figure
from .page import Frame, Page

MOST = 5
"""Maximum number of entries in a comparison."""

FIRST, AGAINST = 3, 10
"""Numbers of first entries of a table that are compared in pairs, and with the baseline."""

GROUPS, EXAMPLES = 20, 10
"""Numbers of groups (those that differ most) and of rows per category that are shown."""


def list_pages(board: Snapshot, view: BoardView | None) -> Iterator[Page]:
    """Yield the list of tables and, for each table, the page to choose entries and the pages of pairs."""
    tables = [table for table in board.views if table.current and len(table.rows) > 1]
    yield Page("compare/index.html", "compare_list.html", lambda: {"views": tables})
    for table in tables:
        pairs = [(left, right, make_pair_path(left, right)) for left, right in list_pairs(table)]
        context = {"view": table, "pairs": pairs, "most": MOST, "first": FIRST, "against": AGAINST}
        yield Page(f"compare/{table.anchor}.html", "compare_choose.html", partial(dict, context))
        for left, right, path in pairs:
            yield Page(path, "compare.html", partial(_make_context, view, table, (left, right)))


def list_pairs(view: Table) -> list[tuple[Row, Row]]:
    """Return the pairs of a table that have a page, each in the table's order."""
    if not view.current:
        return []
    pairs = set(combinations(range(min(FIRST, len(view.rows))), 2))
    base = [k for k, row in enumerate(view.rows) if view.baseline and row.standing.score.model == view.baseline][:1]
    for k in base:
        pairs |= {(min(k, other), max(k, other)) for other in range(min(AGAINST, len(view.rows))) if other != k}
    return [(view.rows[i], view.rows[j]) for i, j in sorted(pairs)]


def make_pair_path(left: Row, right: Row) -> str:
    """Return the path of a pair's comparison page."""
    return f"compare/{left.standing.entry}-{right.standing.entry}.html"


def make_compare_page(
    board: Snapshot,
    view: BoardView | None,
    entries: Sequence[str],
    path: str = "compare/chosen.html",
    frame: Frame | None = None,
) -> Page:
    """Return the page at `path` that compares two to five entries of one table, given by name. Raises `FarshiftError`
    if they cannot be compared."""
    names = list(dict.fromkeys(entries))
    if not 2 <= len(names) <= MOST:
        raise FarshiftError(f"choose two to {MOST} entries, not {len(names)}")
    tables_by_entry = {row.standing.entry: table for table in board.views for row in table.rows}
    for name in names:
        if name not in tables_by_entry:
            raise UnknownName("entry in a table", name[:40], tables_by_entry)
    tables = {tables_by_entry[name].identity: tables_by_entry[name] for name in names}
    if len(tables) > 1:
        headings = " and ".join(sorted(table.heading for table in tables.values()))
        raise FarshiftError(f"choose entries of one table; these belong to {headings}")
    (table,) = tables.values()
    rows = tuple(row for row in table.rows if row.standing.entry in names)
    return Page(path, "compare.html", partial(_make_context, view, table, rows), frame)


def _make_context(board: BoardView | None, view: Table, entries: Sequence[Row]) -> dict[str, Any]:
    rows: dict[str, EntryRows] = {}
    benchmark, parts = view.benchmark, None
    if board is not None and view.current:
        rows, _ = read_entry_rows(board, [item.standing for item in entries])
        parts = _read_parts(find_benchmark(benchmark))
    comparison = compare_entries(view, entries, rows, parts)
    row_ids = sorted({row_id for category in comparison.rows for row_id in category["rows"]})
    contents = read_row_contents(benchmark, row_ids)
    scores = [item.standing.score for item in entries]
    return {
        "comparison": comparison,
        "view": view,
        "entries": entries,
        "bounds": scores[0].bounds,
        "curves": make_severity_figure(scores, [str(item.model) for item in scores]),
        "contents": contents,
        "credit": format_credit(find_benchmark(benchmark)) if contents else "",
        "examples": EXAMPLES,
    }


def _read_parts(benchmark: Benchmark) -> dict[str, Part] | None:
    """Return the rows of a benchmark's ID and OOD view; None if its data are not on this machine."""
    source = find_benchmark_source(benchmark)
    if source is None or (source.needs_network and not is_on_disk(source)):
        return None
    try:
        return {view: benchmark.view(view)[0] for view in ("id", "ood")}
    except Unavailable:
        return None


@dataclass(frozen=True)
class Comparison:
    """The content of a comparison page. pairs: a record for each difference; severities, groups: where a pair differs;
    groups_of: the total number of groups; rows: categories of rows with examples; lacking: what cannot be shown, and
    why."""

    pairs: Sequence[dict[str, Any]]
    severities: Sequence[dict[str, Any]] = ()
    groups: Sequence[dict[str, Any]] = ()
    groups_of: int = 0
    rows: Sequence[dict[str, Any]] = ()
    lacking: str = ""


def compare_entries(
    view: Table, entries: Sequence[Row], rows: Mapping[str, EntryRows], parts: Mapping[str, Part] | None
) -> Comparison:
    """Compare entries of a table. rows: the row scores of each entry, if known; parts: these rows, by view."""
    pairs = [_compare_pair(view, left, right, rows) for left, right in combinations(entries, 2)]
    for item in entries:
        if item.standing.entry not in rows:
            why = f": {item.unranked}" if item.unranked else ""
            return Comparison(pairs, lacking=f"The row scores are not available here{why}.")
    entry_rows = [rows[item.standing.entry] for item in entries]
    samples = [item.ood for item in entry_rows if isinstance(item.ood, RowScores)]
    if len(samples) < len(entries):
        reason = "is not a mean over rows, so the difference cannot be attributed to rows or groups."
        return Comparison(pairs, lacking=f"{drop_version(view.metric)} {reason}")
    if parts is None or len(parts["ood"].row_ids) != samples[0].rows:
        reason = "The benchmark's data were not available where this page was made, so groups and rows are not named."
        return Comparison(pairs, rows=_classify_rows(view, entries, samples, None), lacking=reason)
    groups = _compare_groups(samples, parts["ood"])
    return Comparison(
        pairs,
        _compare_severities(entries, entry_rows, parts) if len(entries) == 2 else (),
        groups[:GROUPS],
        len(groups),
        _classify_rows(view, entries, samples, parts["ood"].row_ids),
    )


def _compare_pair(view: Table, left: Row, right: Row, rows: Mapping[str, EntryRows]) -> dict[str, Any]:
    """Return left minus right. `max_t`: by the table's rule; `t`: ID, OOD and gap by the pairwise t interval; p: of
    OOD."""
    names = [left.standing.entry, right.standing.entry]
    record: dict[str, Any] = {"left": left, "right": right, "max_t": None, "t": {}, "p": None}
    if view.pairs is not None:
        record["max_t"] = view.pairs.apart(*names)
    if all(name in rows for name in names):
        x, y = (rows[name] for name in names)
        differences = {
            "ood": estimate_paired_difference(x.ood, y.ood),
            "id": estimate_paired_difference(x.id, y.id),
            "gap": estimate_gap_difference((x.id, x.ood), (y.id, y.ood)),
        }
        record["t"] = {name: difference.to_dict() for name, difference in differences.items() if difference.defined}
        if "ood" in record["t"]:
            record["p"] = run_paired_t(x.ood, y.ood)[0]
    return record


def _compare_severities(
    entries: Sequence[Row], rows: Sequence[EntryRows], parts: Mapping[str, Part]
) -> list[dict[str, Any]]:
    """Return left minus right at each severity of the curve, each with a separate interval."""
    records = []
    for point in entries[0].standing.score.severity:
        severity = parts[point.view].row_metadata.get("severity")
        samples = [getattr(sample, point.view) for sample in rows]
        if severity is None or any(
            not isinstance(sample, RowScores) or sample.rows != len(severity) for sample in samples
        ):
            continue
        in_range = (severity >= point.first) & (severity <= point.last)
        if in_range.any() and (difference := _estimate_difference(samples, in_range)):
            records.append({"point": point, "rows": int(in_range.sum()), **difference})
    return records


def _compare_groups(samples: Sequence[RowScores], part: Part) -> list[dict[str, Any]]:
    """Return each group with the value of every entry, sorted by the largest difference between entries. For two
    entries, the first `GROUPS` groups have the difference with its interval."""
    if "group" not in part.row_metadata:
        return []
    labels, group = np.unique(part.row_metadata["group"], return_inverse=True)
    names = [str(label) for label in labels]
    if len(names) < 2:
        return []
    counts = np.bincount(group, minlength=len(names))
    sums = [np.bincount(group, sample.scores.mean(axis=0), len(names)) for sample in samples]
    values = np.round(np.stack(sums) / np.maximum(counts, 1), 6) + 0.0
    width = np.round(values.max(axis=0) - values.min(axis=0), 6)
    order = sorted(np.flatnonzero(counts).tolist(), key=lambda k: (-width[k], names[k]))
    records: list[dict[str, Any]] = []
    for number, k in enumerate(order):
        described = len(samples) == 2 and number < GROUPS
        difference = _estimate_difference(samples, group == k) if described else None
        content = {"group": names[k], "rows": int(counts[k]), "values": values[:, k].tolist()}
        records.append(content | {"difference": difference})
    return records


def _estimate_difference(samples: Sequence[RowScores], mask: NDArray[np.bool_]) -> dict[str, Any] | None:
    """Return the difference of two entries on some rows with its interval; None if it is not defined."""
    difference: Estimate = estimate_paired_difference(*(sample.select(mask) for sample in samples))
    return {name: difference.to_dict()[name] for name in ("value", "low", "high")} if difference.defined else None


def _classify_rows(
    view: Table, entries: Sequence[Row], samples: Sequence[RowScores], ids: NDArray[np.uint64] | None
) -> list[dict[str, Any]]:
    """Count categories of OOD rows. With 0/1 scores (correct means correct in more than half of the seeds): rows that
    all entries, no entry, only one entry, and all but one entry have correct. Else: rows on which each entry is best.
    Categories in which entries differ have the ids of the rows with the largest differences."""
    means = np.stack([item.scores.mean(axis=0) for item in samples])
    names = [item.standing.score.model for item in entries]
    if view.better == "lower":
        means = -means
    categories: list[tuple[str, NDArray[np.bool_], bool]]
    if all(np.isin(item.scores, (0.0, 1.0)).all() for item in samples) and view.better == "higher":
        right = means > 0.5
        count = right.sum(axis=0)
        categories = [("all are correct", count == len(names), False), ("none is correct", count == 0, False)]
        for name, correct in zip(names, right, strict=True):
            categories.append((f"only {name} is correct", correct & (count == 1), True))
            if len(names) > 2:
                categories.append((f"only {name} is wrong", ~correct & (count == len(names) - 1), True))
    else:
        top = means == means.max(axis=0)
        categories = [("all score the same", top.all(axis=0), False)]
        for name, best in zip(names, top, strict=True):
            categories.append((f"only {name} scores best", best & (top.sum(axis=0) == 1), True))
    spread = np.round(means.max(axis=0) - means.min(axis=0), 6)
    records = []
    for words, mask, with_ids in categories:
        shown: list[int] = []
        if ids is not None and with_ids:
            order = sorted(np.flatnonzero(mask & (spread > 0)).tolist(), key=lambda k: (-spread[k], int(ids[k])))
            shown = [int(ids[k]) for k in order[:EXAMPLES]]
        records.append({"words": words, "count": int(mask.sum()), "rows": shown})
    return records
