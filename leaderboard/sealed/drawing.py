"""The draw: rows from the benchmark's generator with a secret seed, as many in each cell of the public test's
difficulty profile, none with the inputs of a published row.

A pure function of benchmark and seed. Batches of rows are generated one after the other, each divided by the split's
rule, until every cell has as many rows as in the public test. A cell that the generator cannot fill with new rows (all
strings of two bits are published) is left out on both sides: only public rows of the other cells are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.model import Task
from ...core.draws import make_stream_name
from ...core.errors import FarshiftError
from ...loaders.acquire.source import add_row_ids, find_source
from ...loaders.freezing.redraw import apply_split_rule, check_redrawable, find_seeded_distribution, redraw_split
from ...loaders.part import Part
from ...loaders.split import Split
from ...splits.rows import compute_first_ids

if TYPE_CHECKING:
    import pyarrow as pa


VIEWS = ("id", "ood")
SEALED = "sealed"
"""The name of the part that contains a draw's rows, of both views together."""

ROUNDS = 32
STALE = 3
"""The maximum number of batches, and the number of batches without a row for an open cell after which the generator
counts as exhausted."""

MOST_LEFT_OUT = 0.2
"""The largest share of a view's public rows that may be in cells that cannot be filled; beyond it no draw is fair."""

CIPHER = "AES-256"
"""The random generator of a window's rows, as named in its terms."""

Ids = NDArray[np.uint64]


@dataclass(frozen=True)
class SealedDraw:
    """A draw. `rows`: the rows of both views, with labels, ascending row id; `sides`: which rows are in each view,
    (rows,); `counterpart`: the ids of the public rows whose cells the draw fills; `profiles`: the definition of the
    cells; `profile`: the comparison, as plain JSON."""

    rows: Part
    sides: Mapping[str, NDArray[np.bool_]]
    counterpart: Mapping[str, Ids]
    profiles: Mapping[str, Profile]
    profile: dict[str, Any]


@dataclass(frozen=True)
class _RedrawnBenchmark(Benchmark):
    """A benchmark over another draw of its split."""

    drawn: Split

    @cached_property
    def split(self) -> Split:
        return self.drawn


def check_sealable(benchmark: Benchmark) -> None:
    """Raise `FarshiftError`, with a message of one line, if a benchmark cannot be sealed."""
    try:
        find_seeded_distribution(find_source(benchmark.manifest.definition.source.name))
        check_redrawable(benchmark.manifest)
        for name in VIEWS:
            view = benchmark.definition.views[name]
            if view.part == "train" or view.rows != "all" or view.against != "true":
                raise FarshiftError(f"its view {name} uses training rows or observed labels, which are public")
        if benchmark.definition.protocol.touch.adaptation is not None:
            raise FarshiftError("its protocol lets models adapt to each test part, and a draw has no parts")
    except FarshiftError as error:
        raise FarshiftError(f"{benchmark.name} cannot be sealed: {error}") from error


def draw_sealed_rows(benchmark: Benchmark, seed: bytes) -> SealedDraw:
    """Draw a benchmark's rows by a secret seed of 32 bytes. Raises `FarshiftError` if it cannot be sealed."""
    check_sealable(benchmark)
    streams = make_stream_name(seed)
    public = {name: benchmark.view(name)[0] for name in VIEWS}
    profiles = {name: Profile.of(part, benchmark.task) for name, part in public.items()}
    required_counts = {name: profiles[name].counts(part) for name, part in public.items()}
    rows_by_view, filled_counts = _fill_cells(benchmark, streams, profiles, required_counts)
    sides: dict[str, pa.Table] = {}
    counterpart: dict[str, Ids] = {}
    profile: dict[str, Any] = {}
    for name, part in public.items():
        full = [cell for cell, count in required_counts[name].items() if filled_counts[name].get(cell, 0) == count]
        matched_rows = part.select(np.isin(profiles[name].cells(part), full))
        if len(matched_rows) < (1 - MOST_LEFT_OUT) * len(part):
            raise FarshiftError(
                f"{benchmark.name} cannot be sealed: the generator has enough other rows only for the cells of "
                f"{len(matched_rows)} of the {len(part)} rows of its view {name}"
            )
        sealed = make_sealed_part(benchmark, rows_by_view[name])
        sealed = sealed.select(np.isin(profiles[name].cells(sealed), full))
        sides[name], counterpart[name] = sealed.arrow(), matched_rows.row_ids
        profile[name] = _compare_view(profiles[name], part, matched_rows, sealed)
    rows, masks = _join_views(benchmark, sides)
    return SealedDraw(rows, masks, counterpart, profiles, profile)


def _fill_cells(
    benchmark: Benchmark,
    streams: str,
    profiles: Mapping[str, Profile],
    required_counts: Mapping[str, Mapping[str, int]],
) -> tuple[dict[str, pa.Table], dict[str, dict[str, int]]]:
    """Draw rows for the cells of each view, and count the rows of each cell; cells may stay incomplete."""
    import pyarrow as pa

    source = benchmark.split
    known_ids = np.sort(compute_first_ids(source.rows, source.source.schema))
    pieces: dict[str, list[pa.Table]] = {name: [] for name in VIEWS}
    filled_counts: dict[str, dict[str, int]] = {name: {} for name in VIEWS}
    stale = 0
    for number in range(ROUNDS):
        split = redraw_split(source, f"{streams}/{number}")
        if number == 0:
            _check_rule(benchmark, split)
        redrawn_benchmark = _RedrawnBenchmark(benchmark.definition, benchmark.path, split)
        stale += 1
        for name in VIEWS:
            fresh = redrawn_benchmark.view(name)[0]
            fresh = fresh.select(~np.isin(fresh.row_ids, known_ids))
            chosen = _select_rows(profiles[name].cells(fresh), required_counts[name], filled_counts[name])
            stale = 0 if len(chosen) else stale
            if len(chosen) or not pieces[name]:
                pieces[name].append(fresh.select(chosen).arrow())
        known_ids = np.union1d(known_ids, split.rows["row_id"].to_numpy())
        if all(
            filled_counts[name].get(cell, 0) == count for name in VIEWS for cell, count in required_counts[name].items()
        ):
            break
        if stale == STALE:
            break
    return {name: pa.concat_tables(tables).combine_chunks() for name, tables in pieces.items()}, filled_counts


def _select_rows(
    cells: list[str], required_counts: Mapping[str, int], filled_counts: dict[str, int]
) -> NDArray[np.int64]:
    """The indices of the first rows of each incomplete cell; adds them to `filled_counts`."""
    chosen = []
    for index, cell in enumerate(cells):
        if filled_counts.get(cell, 0) < required_counts.get(cell, 0):
            filled_counts[cell] = filled_counts.get(cell, 0) + 1
            chosen.append(index)
    return np.array(chosen, np.int64)


def _check_rule(benchmark: Benchmark, drawn: Split) -> None:
    """Refuse a split whose rule depends on the other rows, or whose seed can give one input two labels: test rows of
    another seed would then not be those that the published training part leaves out."""
    import pyarrow as pa

    public, schema = benchmark.split, benchmark.split.source.schema
    names = [field.name for field in schema.fields]
    known = np.isin(compute_first_ids(drawn.rows, schema), compute_first_ids(public.rows, schema))
    both = np.isin(drawn.rows["check"].to_numpy()[known], public.rows["check"].to_numpy())
    label = benchmark.task.label
    if not both.all() and _has_contradiction(drawn.rows.filter(pa.array(known)), public.rows, schema, label):
        raise FarshiftError(
            f"{benchmark.name} cannot be sealed: another seed gives a published input another label, so the seed of "
            f"the generator of {public.source.name} determines more than the rows"
        )
    fresh = drawn.rows.filter(pa.array(~known)).select(names)
    joint = apply_split_rule(public, add_row_ids(pa.concat_tables([public.rows.select(names), fresh]), schema)[0])
    for alone in (public, drawn):
        if _has_side_difference(alone.assigned, joint.assigned):
            raise FarshiftError(
                f"{benchmark.name} cannot be sealed: its rule {public.manifest.definition.rule} depends on all rows of "
                "the source, so test rows of another draw may resemble the published training rows"
            )


def _has_contradiction(drawn: pa.Table, public: pa.Table, schema: Any, label: str) -> bool:
    """Whether the label of some drawn row is not among those of the published rows with the same inputs."""
    labels_by_id: dict[int, set[Any]] = {}
    for key, value in zip(compute_first_ids(public, schema).tolist(), public[label].to_pylist(), strict=True):
        labels_by_id.setdefault(key, set()).add(value)
    pairs = zip(compute_first_ids(drawn, schema).tolist(), drawn[label].to_pylist(), strict=True)
    return any(value not in labels_by_id[key] for key, value in pairs)


def _has_side_difference(alone: pa.Table, joint: pa.Table) -> bool:
    """Whether a row that both tables assign is on the shifted side in only one of them."""
    parts = [dict(zip(table["row_id"].to_pylist(), table["part"].to_pylist(), strict=True)) for table in (alone, joint)]
    both = parts[0].keys() & parts[1].keys()
    return any(parts[0][row_id].startswith("ood") != parts[1][row_id].startswith("ood") for row_id in both)


def make_sealed_part(benchmark: Benchmark, table: pa.Table, identity: str = "") -> Part:
    """Rows as a part: a table of `row_id`, the source's fields and the metadata from the split, or of inputs alone."""
    return Part(
        split=benchmark.manifest.full_name,
        identity=identity or benchmark.manifest.identity,
        name=SEALED,
        schema=benchmark.split.source.schema,
        label=benchmark.task.label,
        source=table,
        source_indices=np.arange(table.num_rows),
        row_metadata={name: table[name].to_numpy() for name in ("group", "severity") if name in table.column_names},
    )


def _join_views(benchmark: Benchmark, sides: Mapping[str, pa.Table]) -> tuple[Part, dict[str, NDArray[np.bool_]]]:
    """Join the rows of all views in one part, ascending row id, with a mask for each view."""
    import pyarrow as pa

    table = pa.concat_tables(sides.values()).combine_chunks()
    whose = np.repeat(list(sides), [side.num_rows for side in sides.values()])
    order = np.argsort(table["row_id"].to_numpy())
    return make_sealed_part(benchmark, table.take(order).combine_chunks()), {
        name: (whose == name)[order] for name in sides
    }


def _compare_view(profile: Profile, public: Part, matched_rows: Part, sealed: Part) -> dict[str, Any]:
    """Compare one view: cells with their counts on both sides, and the cells that were left out."""
    public_counts, sealed_counts = profile.counts(public), profile.counts(sealed)
    counts = {cell: [count, sealed_counts[cell]] for cell, count in public_counts.items() if cell in sealed_counts}
    out = {cell: count for cell, count in public_counts.items() if cell not in sealed_counts}
    return {
        "rows": len(sealed),
        "public_rows": len(public),
        "cells": counts,
        "equal": all(a == b for a, b in counts.values()) and len(matched_rows) == len(sealed),
        "left_out": {"rows": len(public) - len(matched_rows), "cells": out},
    }


MOST_VALUES = 200
BUCKETS = 10
"""If the public test has more than 200 distinct severities, cells use deciles; otherwise each severity is a cell."""


@dataclass(frozen=True)
class Profile:
    """The cells of a view, defined by its public rows and applied to any rows."""

    task: Task
    edges: NDArray[Any] | None

    @classmethod
    def of(cls, public: Part, task: Task) -> Profile:
        severity = public.row_metadata.get("severity")
        if severity is None or len(np.unique(severity)) <= MOST_VALUES:
            return cls(task, None)
        return cls(task, np.unique(np.quantile(severity, np.arange(1, BUCKETS) / BUCKETS)))

    def cells(self, rows: Part) -> list[str]:
        """The name of each row's cell, for example "severity 12, group 11-20, class 3"."""
        columns: list[list[str]] = []
        severity = rows.row_metadata.get("severity")
        if severity is not None and self.edges is None:
            columns.append([f"severity {value}" for value in severity.tolist()])
        elif severity is not None:
            assert self.edges is not None
            tenth = np.searchsorted(self.edges, severity, side="right")
            columns.append([f"severity in tenth {value + 1}" for value in tenth.tolist()])
        if "group" in rows.row_metadata:
            columns.append([f"group {value}" for value in rows.row_metadata["group"].tolist()])
        if self.task.type == "classification":
            columns.append([f"class {value}" for value in rows.true_labels().tolist()])
        return [", ".join(values) for values in zip(*columns, strict=True)] if columns else ["all"] * len(rows)

    def counts(self, rows: Part) -> dict[str, int]:
        """The number of rows in each cell, sorted by the cells' names."""
        return dict(sorted(Counter(self.cells(rows)).items()))
