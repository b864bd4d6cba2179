"""What diagnostics found inside the networks of recorded results, kept beside them.

`baselines/results/BENCHMARK/diagnostics.json` has for each baseline what each seed's network is like inside, with the
sha256 of the recorded file. The networks are gone with the run that was recorded, so a baseline is trained again, with
`--diagnose`, and its diagnostics are taken only where its answers are those that are recorded: all but one in a
hundred, since another processor rounds otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.runs.run import Run, read_run
from ...core.canonical import canonical_json
from ...core.errors import BadRun, first_line
from ...core.files import cache_root, locked, write_atomically
from .results import HOME, answers_of, digest_of, file_of, results

LEAST_EQUAL = 0.99
"""The share of answers in which a run must agree with the recorded one."""
DIGITS = 6
"""Significant digits that are kept."""


def keep_diagnostics(run: Run | Path | str, home: Path = HOME) -> Path:
    """Keep the diagnostics of a run beside the result that is recorded of its baseline; returns the file. `BadRun`
    where the run has none, no result is recorded, or the run answers otherwise than the recorded one."""
    run = run if isinstance(run, Run) else read_run(run)
    seeds = {
        str(seed): {name: _short(value) for name, value in sorted(told.items()) if _inside(name, value)}
        for seed in run.seeds
        if (told := run.card.spent.by_seed.get(f"seed_{seed}"))
    }
    if not any(seeds.values()):
        raise BadRun(f"{run.path} has no diagnostics: run it with --diagnose all")
    if (run.benchmark, run.model) not in results(home):
        raise BadRun(f"{run.path}: no result of {run.model} on {run.benchmark} is recorded in {home}")
    equal = _agreement(run, home)
    if equal < LEAST_EQUAL:
        raise BadRun(
            f"{run.path} answers {equal:.1%} of the rows as the recorded {run.model} on {run.benchmark} does, so its "
            f"networks are not those that were recorded: record it anew"
        )
    file = _place(run.benchmark, home)
    with locked(cache_root() / "recorded" / file.parent.name):
        records = _read(file)
        stated = {"file": digest_of(run.benchmark, run.model, home), "equal": round(equal, 6), "seeds": seeds}
        records[run.model] = stated
        lines = [f"{json.dumps(name)}: {canonical_json(records[name]).decode()}" for name in sorted(records)]
        write_atomically(file, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
    return file


def kept_diagnostics(benchmark: str, home: Path = HOME) -> dict[str, dict[int, dict[str, float]]]:
    """Of each baseline whose diagnostics are of the recorded file that is here: by seed, the values by
    `diagnostic.value`. `BadRun` where the file cannot be read."""
    file = _place(benchmark, home)
    here = {name for on, name in results(home) if on == benchmark}
    try:
        return {
            name: {
                int(seed): {what: float(value) for what, value in told.items()} for seed, told in one["seeds"].items()
            }
            for name, one in sorted(_read(file).items())
            if name in here and one["file"] == digest_of(benchmark, name, home)
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRun(f"{file} holds no diagnostics of recorded results: {first_line(error)}") from error


def _inside(name: str, value: Any) -> bool:
    return "." in name and isinstance(value, int | float)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _agreement(run: Run, home: Path) -> float:
    """The share of a run's answers that are those recorded of the same seeds."""
    benchmark = find_benchmark(run.benchmark)
    new = answers_of(run, benchmark)
    old = pq.read_table(file_of(home, run.benchmark, run.model), columns=new.column_names)
    both = sorted(set(run.seeds) & set(pc.unique(old["seed"]).to_pylist()))
    if not both:
        raise BadRun(f"{run.path} has none of the recorded seeds")
    left, right = (_answers(table, both) for table in (new, old))
    return float(np.mean(left == right)) if left.shape == right.shape else 0.0


def _answers(table: pa.Table, seeds: list[int]) -> np.ndarray[Any, Any]:
    """The answers of some seeds, as they are ordered in a recorded result."""
    some = table.filter(pc.is_in(table["seed"], value_set=pa.array(seeds, table["seed"].type)))
    found: np.ndarray[Any, Any] = some["prediction"].to_numpy(zero_copy_only=False)
    return found


def _place(benchmark: str, home: Path) -> Path:
    return home / benchmark.replace("/", "__") / "diagnostics.json"


def _read(file: Path) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = json.loads(file.read_bytes()) if file.is_file() else {}
    return found
