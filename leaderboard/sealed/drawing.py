"""The draw: rows that the benchmark's generator gives with a secret seed, as many in each cell of the public test's
difficulty profile, none of whose inputs stands in the published source.

A pure function of benchmark and seed. Rounds of rows are drawn one after the other, each divided by the split's own
rule, until every cell has what the public test has. A cell that the generator cannot fill with new rows (all strings of
two bits are published) is left out on both sides: of the public rows, too, only those of the other cells are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.benchmark import Benchmark
from ...core.errors import FarshiftError
from ...core.secret_draws import stream_name
from ...loaders.acquire.source import find_source, identified
from ...loaders.freezing.redraw import check_redrawable, divided, redrawn, seeded
from ...loaders.part import Part
from ...loaders.split import Split
from ...splits.rows import first_ids
from .profile import Profile, compared

if TYPE_CHECKING:
    import pyarrow as pa

VIEWS = ("id", "ood")
SEALED = "sealed"
"""The name of the part that holds a draw's rows, of both views together."""

ROUNDS = 32
STALE = 3
"""The most rounds that are drawn, and how many without a row for an open cell say that the generator has none."""

MOST_LEFT_OUT = 0.2
"""The share of a view's public rows that may lie in cells which cannot be filled; beyond it there is no fair draw."""

CIPHER = "AES-256"
"""What draws a window's rows, as its terms say."""

Ids = NDArray[np.uint64]


@dataclass(frozen=True)
class Drawn:
    """A draw. `rows`: the rows of both views, ascending row id, labels and all; `sides`: which are of a view, (rows,);
    `counterpart`: the ids of the public rows whose cells the draw fills; `profiles`: what the cells are; `profile`: the
    comparison, as plain JSON."""

    rows: Part
    sides: Mapping[str, NDArray[np.bool_]]
    counterpart: Mapping[str, Ids]
    profiles: Mapping[str, Profile]
    profile: dict[str, Any]


@dataclass(frozen=True)
class _Redrawn(Benchmark):
    """A benchmark over another draw of its split."""

    drawn: Split

    @cached_property
    def split(self) -> Split:
        return self.drawn


def check_sealable(benchmark: Benchmark) -> None:
    """`FarshiftError`, in one line, where no sealed draw of a benchmark can be had."""
    try:
        seeded(find_source(benchmark.manifest.definition.source.name))
        check_redrawable(benchmark.manifest)
        for name in VIEWS:
            view = benchmark.definition.views[name]
            if view.part == "train" or view.rows != "all" or view.against != "true":
                raise FarshiftError(f"its view {name} is of training rows or of labels as given, which are public")
        if benchmark.definition.protocol.touch.adaptation is not None:
            raise FarshiftError("its protocol has models adapt to the test, part by part, and a draw shows no parts")
    except FarshiftError as error:
        raise FarshiftError(f"{benchmark.name} cannot be sealed: {error}") from error


def draw(benchmark: Benchmark, seed: bytes) -> Drawn:
    """The draw of a benchmark by a secret seed of 32 bytes. `FarshiftError` where there can be none."""
    check_sealable(benchmark)
    streams = stream_name(seed)
    public = {name: benchmark.view(name)[0] for name in VIEWS}
    profiles = {name: Profile.of(part, benchmark.task) for name, part in public.items()}
    wanted = {name: profiles[name].counts(part) for name, part in public.items()}
    found, had = _filled(benchmark, streams, profiles, wanted)
    sides: dict[str, pa.Table] = {}
    counterpart: dict[str, Ids] = {}
    profile: dict[str, Any] = {}
    for name, part in public.items():
        full = {cell for cell, count in wanted[name].items() if had[name].get(cell, 0) == count}
        kept = part.select(_within(profiles[name].cells(part), full))
        if len(kept) < (1 - MOST_LEFT_OUT) * len(part):
            raise FarshiftError(
                f"{benchmark.name} cannot be sealed: of the {len(part)} rows of its view {name} only {len(kept)} lie "
                f"in cells of which the generator has enough other rows"
            )
        sealed = _part(benchmark, found[name])
        sealed = sealed.select(_within(profiles[name].cells(sealed), full))
        sides[name], counterpart[name] = sealed.arrow(), kept.row_ids
        profile[name] = _comparison(profiles[name], part, kept, sealed, benchmark)
    rows, masks = _together(benchmark, sides)
    return Drawn(rows, masks, counterpart, profiles, profile)


def _filled(
    benchmark: Benchmark, streams: str, profiles: Mapping[str, Profile], wanted: Mapping[str, Mapping[str, int]]
) -> tuple[dict[str, pa.Table], dict[str, dict[str, int]]]:
    """Rows for every cell of each view, as far as they can be had, and how many each cell has."""
    import pyarrow as pa

    source = benchmark.split
    taken = np.sort(first_ids(source.rows, source.source.schema))
    pieces: dict[str, list[pa.Table]] = {name: [] for name in VIEWS}
    had: dict[str, dict[str, int]] = {name: {} for name in VIEWS}
    stale = 0
    for number in range(ROUNDS):
        split = redrawn(source, f"{streams}/{number}")
        if number == 0:
            _check_rule(benchmark, split)
        drawn = _Redrawn(benchmark.definition, benchmark.path, split)
        before = _total(had)
        for name in VIEWS:
            fresh = drawn.view(name)[0]
            fresh = fresh.select(~np.isin(fresh.row_ids, taken))
            chosen = _take(profiles[name].cells(fresh), wanted[name], had[name])
            if len(chosen) or not pieces[name]:
                pieces[name].append(fresh.select(chosen).arrow())
        taken = np.union1d(taken, split.rows["row_id"].to_numpy())
        if all(had[name].get(cell, 0) == count for name in VIEWS for cell, count in wanted[name].items()):
            break
        stale = stale + 1 if _total(had) == before else 0
        if stale == STALE:
            break
    return {name: pa.concat_tables(tables).combine_chunks() for name, tables in pieces.items()}, had


def _total(had: Mapping[str, Mapping[str, int]]) -> int:
    return sum(sum(counts.values()) for counts in had.values())


def _take(cells: list[str], wanted: Mapping[str, int], had: dict[str, int]) -> NDArray[np.int64]:
    """The places of the first rows of each cell that still lacks some; counts them in `had`."""
    chosen = []
    for place, cell in enumerate(cells):
        if had.get(cell, 0) < wanted.get(cell, 0):
            had[cell] = had.get(cell, 0) + 1
            chosen.append(place)
    return np.array(chosen, np.int64)


def _check_rule(benchmark: Benchmark, drawn: Split) -> None:
    """Refuse a split whose rule divides rows by what else there is, or whose seed gives one input two labels: its test
    rows of another seed would not be what the published training leaves out."""
    import pyarrow as pa

    public, schema = benchmark.split, benchmark.split.source.schema
    names = [field.name for field in schema.fields]
    known = np.isin(first_ids(drawn.rows, schema), first_ids(public.rows, schema))
    both = np.isin(drawn.rows["check"].to_numpy()[known], public.rows["check"].to_numpy())
    label = benchmark.task.label
    if not both.all() and _contradicts(drawn.rows.filter(pa.array(known)), public.rows, schema, label):
        raise FarshiftError(
            f"{benchmark.name} cannot be sealed: another seed gives a published input another label, so the seed of "
            f"the generator of {public.source.name} makes more than rows"
        )
    fresh = drawn.rows.filter(pa.array(~known)).select(names)
    joint = divided(public, identified(pa.concat_tables([public.rows.select(names), fresh]), schema)[0])
    for alone in (public, drawn):
        if _sides_differ(alone.assigned, joint.assigned):
            raise FarshiftError(
                f"{benchmark.name} cannot be sealed: its rule {public.manifest.definition.rule} divides rows by what "
                "else there is, so test rows of another draw may be like the published training"
            )


def _contradicts(drawn: pa.Table, public: pa.Table, schema: Any, label: str) -> bool:
    """Whether no published row of some drawn row's inputs has its label."""
    given: dict[int, set[Any]] = {}
    for key, value in zip(first_ids(public, schema).tolist(), public[label].to_pylist(), strict=True):
        given.setdefault(key, set()).add(value)
    pairs = zip(first_ids(drawn, schema).tolist(), drawn[label].to_pylist(), strict=True)
    return any(value not in given[key] for key, value in pairs)


def _sides_differ(alone: pa.Table, joint: pa.Table) -> bool:
    """Whether a row that both tables assign is on the shifted side in one of them only."""
    sides = []
    for table in (alone, joint):
        ids, part = table["row_id"].to_numpy(), table["part"].to_pylist()
        order = np.argsort(ids)
        sides.append((ids[order], np.array([name.startswith("ood") for name in part])[order]))
    _, here, there = np.intersect1d(sides[0][0], sides[1][0], assume_unique=True, return_indices=True)
    return bool((sides[0][1][here] != sides[1][1][there]).any())


def _within(cells: list[str], chosen: set[str]) -> NDArray[np.bool_]:
    return np.array([cell in chosen for cell in cells], bool)


def _part(benchmark: Benchmark, table: pa.Table) -> Part:
    """Rows as a part: a table of the source's fields, `row_id` and what the split says of them."""
    carried = {name: table[name].to_numpy() for name in ("group", "severity") if name in table.column_names}
    return Part(
        split=benchmark.manifest.full_name,
        identity=benchmark.manifest.identity,
        name=SEALED,
        schema=benchmark.split.source.schema,
        label=benchmark.task.label,
        source=table,
        places=np.arange(table.num_rows),
        carried=carried,
    )


def _together(benchmark: Benchmark, sides: Mapping[str, pa.Table]) -> tuple[Part, dict[str, NDArray[np.bool_]]]:
    """The rows of all views in one part, ascending row id, and which are of each."""
    import pyarrow as pa

    table = pa.concat_tables(sides.values()).combine_chunks()
    whose = np.repeat(list(sides), [side.num_rows for side in sides.values()])
    order = np.argsort(table["row_id"].to_numpy())
    return _part(benchmark, table.take(order).combine_chunks()), {name: (whose == name)[order] for name in sides}


def _comparison(profile: Profile, public: Part, kept: Part, sealed: Part, benchmark: Benchmark) -> dict[str, Any]:
    """The comparison of one view: cells with their counts on both sides, which were left out, measures of inputs."""
    wanted, ours = profile.counts(public), profile.counts(sealed)
    counts = {cell: [count, ours[cell]] for cell, count in wanted.items() if cell in ours}
    out = {cell: count for cell, count in wanted.items() if cell not in ours}
    return {
        "rows": len(sealed),
        "public_rows": len(public),
        "cells": counts,
        "equal": all(a == b for a, b in counts.values()) and len(kept) == len(sealed),
        "left_out": {"rows": len(public) - len(kept), "cells": out},
        "measures": compared(kept, sealed, benchmark.task.inputs),
    }
