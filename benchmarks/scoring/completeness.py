"""Checks that a run has exactly the predictions that its benchmark requires: each expected row once, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..benchmark import Benchmark
from ..runs.predictions import sort_by_row_id
from ..runs.run import RunLike

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ExpectedRows:
    """Rows that each seed must predict: their part (or selection rule), their ids (n,) ascending, and the candidates
    that predict them."""

    part: str
    ids: NDArray[np.uint64]
    candidates: tuple[str, ...]


def list_expected_rows(benchmark: Benchmark, card: RunLike) -> list[ExpectedRows]:
    """List the rows that each seed of a run must predict: those of each predicted part by each candidate, and those of
    the run's rule by each setting's last checkpoint."""
    rule = benchmark.rule(card.selection)
    parts = (
        benchmark.list_parts_without(card.card.model.left_out)
        if len(card.candidates) == 1
        else benchmark.predicted_parts
    )
    expected = [ExpectedRows(part, benchmark.part(part).row_ids, card.candidates) for part in parts]
    if rule.folds is not None and (ballot := rule.ballot(benchmark)) is not None:
        expected.append(ExpectedRows(rule.part, np.sort(ballot.row_ids), card.finals))
    return expected


Blocks = Mapping[tuple[int, str, str], "pa.Table"]
"""The predictions of each (seed, part, candidate), by row id."""


def find_completeness_problems(benchmark: Benchmark, blocks: Blocks, card: RunLike) -> list[str]:
    """List the problems of a run's predictions, which must have each expected row once, and no others."""
    problems = []
    remaining = set(blocks)
    for rows in list_expected_rows(benchmark, card):
        for seed in card.seeds:
            for candidate in rows.candidates:
                block = (seed, rows.part, candidate)
                remaining.discard(block)
                ids = blocks[block]["row_id"].to_numpy() if block in blocks else np.empty(0, np.uint64)
                if not np.array_equal(ids, rows.ids):
                    which = "" if len(card.candidates) == 1 else f", candidate {candidate[:60]}"
                    problems.append(f"part {rows.part}, seed {seed}{which}: {describe_row_id_problem(ids, rows.ids)}")
    for seed, part, candidate in sorted(remaining):
        problems.append(f"part {part[:60]!r}, seed {seed}, candidate {candidate[:60]!r}: not part of this run")
    return problems


def split_blocks(predictions: pa.Table) -> Blocks:
    """Split a table of predictions into its blocks."""
    seeds, seed_codes = np.unique(predictions["seed"].to_numpy(), return_inverse=True)
    parts, candidates = (predictions[name].dictionary_encode().combine_chunks() for name in ("part", "candidate"))
    part_names, names = parts.dictionary.to_pylist(), candidates.dictionary.to_pylist()
    codes = (seed_codes * len(part_names) + parts.indices.to_numpy()) * len(names) + candidates.indices.to_numpy()
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        predictions, codes = predictions.take(order), codes[order]
    edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)] if len(codes) else []
    blocks = {}
    for start, stop in pairwise(edges):
        rest, candidate = divmod(int(codes[start]), len(names))
        seed, part = divmod(rest, len(part_names))
        block = sort_by_row_id(predictions.slice(start, stop - start))
        blocks[int(seeds[seed]), part_names[part], names[candidate]] = block
    return blocks


def describe_row_id_problem(got: NDArray[np.uint64], expected: NDArray[np.uint64]) -> str:
    """Describe the problems of a set of row ids: the number of missing, unknown and repeated ones, with an example
    each."""
    problems = []
    missing, unknown = np.setdiff1d(expected, got), np.setdiff1d(got, expected)
    values, counts = np.unique(got, return_counts=True)
    repeated = values[counts > 1]
    for what, ids in (("missing", missing), ("unknown", unknown), ("repeated", repeated)):
        if len(ids):
            problems.append(f"{len(ids)} {what} row ids (first {ids[0]:016x})")
    return ", ".join(problems) or "the row ids are as expected"
