"""Merging the jobs of all seeds into a run's table of predictions, its candidates, and its usage."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadRun
from .predictions import add_run_columns, sort_by_row_id
from .shards import compute_candidate_key, read_shard

if TYPE_CHECKING:
    import pyarrow as pa

Jobs = dict[int, list[dict[str, Any]]]
"""The cards of each seed's jobs (shards.py), in order."""


def merge_shards(shards: Path, jobs: Jobs, candidates: list[str]) -> pa.Table:
    """Merge all shards into one table, ordered by seed, part, candidate and row id, independent of which process wrote
    them. Class probabilities are included if every row of every candidate has them."""
    import pyarrow as pa

    tables_by_key: dict[tuple[int, str, int], list[pa.Table]] = {}
    for seed, done in jobs.items():
        for job in done:
            numbers = {compute_candidate_key(name): candidates.index(name) for name in job["candidates"]}
            for name in job["shards"]:
                part, key, *_ = name.split(".")
                table = read_shard(shards / f"seed-{seed}" / job["job"] / name)
                sort_key = (seed, part, numbers[key])
                tables_by_key.setdefault(sort_key, []).append(table)
    tables = [
        add_run_columns(sort_by_row_id(_concatenate_shards(pieces)), part, seed, candidates[number])
        for (seed, part, number), pieces in sorted(tables_by_key.items(), key=lambda item: item[0])
    ]
    if not all("scores" in table.column_names and not table["scores"].null_count for table in tables):
        tables = [table.drop_columns([n for n in table.column_names if n == "scores"]) for table in tables]
    return pa.concat_tables(tables)


def _concatenate_shards(shards: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(shards, promote_options="default")


def list_candidates(jobs: Jobs, path: Path) -> tuple[list[str], list[str]]:
    """List all candidates, and each setting's last one, in order; `BadRun` if they differ between seeds."""
    names_by_seed = {
        seed: (
            [name for job in done for name in job["candidates"] if not job["fold"]],
            [job["candidates"][-1] for job in done if not job["fold"]],
        )
        for seed, done in jobs.items()
    }
    first = next(iter(names_by_seed.values()))
    for seed, names in names_by_seed.items():
        if names != first:
            raise BadRun(
                f"{path}: seed {seed} has the candidates {', '.join(names[0])}, but another seed has "
                f"{', '.join(first[0])}: a model must use the same checkpoint names for every seed"
            )
    return first


def sum_job_usage(cards: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum a seed's usage over its jobs: seconds and steps are added, for other remarks the last value is used."""
    usage: dict[str, Any] = {}
    for card in cards:
        for key, value in card["spent"].items():
            adds = key in _ADDED and all(isinstance(number, int | float) for number in (value, usage.get(key)))
            usage[key] = round(usage[key] + value, 3) if adds else value
    return usage


_ADDED = ("fit_seconds", "predict_seconds", "steps", "epochs")


def encode_parquet(table: pa.Table) -> bytes:
    """Encode a table as a Parquet file; the bytes do not depend on the table's chunks."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    # Combine chunks: the page boundaries of a Parquet file depend on them.
    pq.write_table(table.combine_chunks(), sink, compression="zstd")
    return sink.getvalue()
