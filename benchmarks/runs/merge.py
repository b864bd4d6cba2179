"""Merging: from the jobs of all seeds to a run's one table of predictions, its candidates, and what it spent."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadRun
from .predictions import in_order, placed
from .shards import key_of, read_shard

if TYPE_CHECKING:
    import pyarrow as pa

Jobs = dict[int, list[dict[str, Any]]]
"""The cards of each seed's jobs (shards.py), in order."""


def merge_shards(shards: Path, jobs: Jobs, candidates: list[str]) -> pa.Table:
    """All shards as one table, ordered by seed, part, candidate and row id, the same whatever wrote them. Class
    probabilities are kept where every row of every candidate has them."""
    import pyarrow as pa

    found: dict[tuple[int, str, int], list[pa.Table]] = {}
    for seed, done in jobs.items():
        for job in done:
            numbers = {key_of(name): candidates.index(name) for name in job["candidates"]}
            for name in job["shards"]:
                part, key, *_ = name.split(".")
                table = read_shard(shards / f"seed-{seed}" / job["job"] / name)
                place = (seed, part, numbers[key])
                found.setdefault(place, []).append(table)
    tables = [
        placed(in_order(_joined(pieces)), part, seed, candidates[number])
        for (seed, part, number), pieces in sorted(found.items(), key=lambda item: item[0])
    ]
    if not all("scores" in table.column_names and not table["scores"].null_count for table in tables):
        tables = [table.drop_columns([n for n in table.column_names if n == "scores"]) for table in tables]
    return pa.concat_tables(tables)


def _joined(shards: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(shards, promote_options="default")


def candidates_of(jobs: Jobs, path: Path) -> tuple[list[str], list[str]]:
    """All candidates, and each setting's last one, both in order; the same for every seed, or refused."""
    found = {
        seed: (
            [name for job in done for name in job["candidates"] if not job["fold"]],
            [job["candidates"][-1] for job in done if not job["fold"]],
        )
        for seed, done in jobs.items()
    }
    first = next(iter(found.values()))
    for seed, names in found.items():
        if names != first:
            raise BadRun(
                f"{path}: seed {seed} has the candidates {', '.join(names[0])}, and not those of the other seeds "
                f"({', '.join(first[0])}): a model must name the same checkpoints for every seed"
            )
    return first


def spent_by(cards: list[dict[str, Any]]) -> dict[str, Any]:
    """What a seed spent: seconds and steps added over its jobs, of any other remark the last."""
    found: dict[str, Any] = {}
    for card in cards:
        for key, value in card["spent"].items():
            adds = key in _ADDED and all(isinstance(one, int | float) for one in (value, found.get(key)))
            found[key] = round(found[key] + value, 3) if adds else value
    return found


_ADDED = ("fit_seconds", "predict_seconds", "steps", "epochs")


def parquet(table: pa.Table) -> bytes:
    """A table as the bytes of a Parquet file, the same however it was put together."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    # In one piece: where a Parquet file's pages end depends on the pieces that it is written from.
    pq.write_table(table.combine_chunks(), sink, compression="zstd")
    return sink.getvalue()
