"""Merging: from the jobs of all seeds to a run's one table of predictions, its candidates, and what it spent."""

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
    """All shards as one table, ordered by seed, part, candidate and row id, the same whatever wrote them. Class
    probabilities are kept where every row of every candidate has them."""
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
    """All candidates, and each setting's last one, both in order; the same for every seed, or refused."""
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
                f"{path}: seed {seed} has the candidates {', '.join(names[0])}, and not those of the other seeds "
                f"({', '.join(first[0])}): a model must name the same checkpoints for every seed"
            )
    return first


def sum_job_usage(cards: list[dict[str, Any]]) -> dict[str, Any]:
    """What a seed spent: seconds and steps added over its jobs, of any other remark the last."""
    usage: dict[str, Any] = {}
    for card in cards:
        for key, value in card["spent"].items():
            adds = key in _ADDED and all(isinstance(number, int | float) for number in (value, usage.get(key)))
            usage[key] = round(usage[key] + value, 3) if adds else value
    return usage


_ADDED = ("fit_seconds", "predict_seconds", "steps", "epochs")


def encode_parquet(table: pa.Table) -> bytes:
    """A table as the bytes of a Parquet file, the same however it was put together."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    # In one piece: where a Parquet file's pages end depends on the pieces that it is written from.
    pq.write_table(table.combine_chunks(), sink, compression="zstd")
    return sink.getvalue()
