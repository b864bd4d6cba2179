"""Recorded results: the predictions of the shipped baselines, small enough to ship with the package.

`baselines/results/BENCHMARK/BASELINE.parquet` (the slash in the benchmark's name is written as two underscores) has one
row per part, seed and row, in the order of the row ids, which the manifest knows; a run of several settings has a
column `candidate` too. Class probabilities are left out unless the primary metric needs them: for losses and
calibration, run the baseline again. The file's metadata say what was run, where, and at what cost. Results under the
budget `quick` are there; those under `full` are in `baselines/results/full/`, with the same names.

`find_recorded_run` turns it into a run folder in the cache, which is scored, compared and packed like any other.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...benchmarks.answers import Answers
from ...benchmarks.benchmark import Benchmark, find_benchmark, load_benchmarks
from ...benchmarks.harness.evaluate import ONLY, list_predicted_inputs, write_recorded_run
from ...benchmarks.model import Budget
from ...benchmarks.model_inputs.load import load_model_inputs
from ...benchmarks.runs.predictions import ARROW_TYPES, read_answers, sort_by_row_id
from ...benchmarks.runs.run import Run, read_run
from ...core.canonical import to_canonical_json
from ...core.documents import parse_json
from ...core.errors import BadRun, FarshiftError, UnknownName, get_first_line
from ...core.files import compute_file_sha256, get_cache_root, write_atomically
from ...core.plugins import PACKAGE
from ...core.progress import log_message
from ..recipe import BUDGETS

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
HOME = PACKAGE / "baselines" / "results"
_CARD = b"farshift"


def get_results_home(budget: str) -> Path:
    """The folder of the package's results under a budget; `UnknownName` for a budget that is not a protocol's."""
    if budget not in BUDGETS:
        raise UnknownName("budget", budget, BUDGETS)
    return HOME if budget == BUDGETS[0] else HOME / budget


def get_result_path(home: Path, benchmark: str, name: str) -> Path:
    """The path of a recorded result, whether it exists or not."""
    return home / benchmark.replace("/", "__") / f"{name}.parquet"


def list_results(home: Path = HOME) -> list[tuple[str, str]]:
    """(benchmark, baseline) of every recorded result, sorted."""
    return sorted((path.parent.name.replace("__", "/"), path.stem) for path in home.glob("*/*.parquet"))


def check_recorded(benchmark: str, known: Collection[str], under: str = "") -> None:
    """Raise `UnknownName` for a benchmark that does not exist, `FarshiftError` for one without recorded results."""
    if benchmark in known:
        return
    if benchmark in load_benchmarks():
        raise FarshiftError(f"{benchmark} has no recorded results{under}: train a baseline on it by farshift run")
    raise UnknownName(f"benchmark with recorded results{under}", benchmark, known)


def get_recipe_name(name: str) -> str:
    """The recipe of a recorded result: `erm` of `erm (efficientnet-lite0)`, which names its pretrained network."""
    return name.partition(" (")[0]


def digest_result(benchmark: str, name: str, home: Path = HOME) -> str:
    """sha256 of the file of a recorded result: it changes whenever the result does."""
    return compute_file_sha256(get_result_path(home, benchmark, name))


def read_result_card(benchmark: str, name: str, home: Path = HOME) -> dict[str, Any]:
    """The metadata of a recorded result: benchmark, model, budget, environment, cost, the run's digest. `BadRun` if the
    file is not a recorded result."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = get_result_path(home, benchmark, name)
    try:
        card: dict[str, Any] = parse_json(pq.read_schema(file).metadata[_CARD])
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise BadRun(f"{file} is not a recorded result: {get_first_line(error, 200)}") from error
    if card.get("format") != FORMAT:
        raise BadRun(f"{file}: format {card.get('format')!r} is not {FORMAT}")
    return card


def record_run(run: Run | Path | str, home: Path | None = None) -> Path:
    """Write a finished run of a baseline into `home`, by default the package's folder for the run's budget; return the
    file. Records the last candidate of each setting: `BadRun` for a run with more candidates."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    run = run if isinstance(run, Run) else read_run(run)
    if run.card.model.kind != "baseline":
        raise BadRun(f"{run.path} is a run of {run.model}, which is not a baseline")
    if run.candidates not in ((ONLY,), run.finals):
        raise BadRun(
            f"{run.path} has the candidates {', '.join(run.candidates)}: only a run with one for each setting can be "
            "recorded"
        )
    benchmark = find_benchmark(run.benchmark)
    _check_identity(benchmark, run.card.to_dict(), str(run.path))
    card = run.card.to_dict()
    origin = {name: card[name] for name in ("benchmark", "model", "budget", "environment", "spent")}
    stated = to_canonical_json({"format": FORMAT, "run": run.digest} | origin)
    table = collect_answers(run, benchmark).replace_schema_metadata({_CARD: stated})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", compression_level=19, use_dictionary=True, write_statistics=False)
    file = get_result_path(home or get_results_home(run.card.budget.name), run.benchmark, run.model)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, sink.getvalue().to_pybytes())
    return file


def collect_answers(run: Run, benchmark: Benchmark) -> pa.Table:
    """A run's predictions as they are recorded: by part, then seed, each in the order of the row ids."""
    import pyarrow as pa

    table = run.predictions()
    part_names = [
        inputs.name for inputs in list_predicted_inputs(benchmark, load_model_inputs(benchmark), run.selection)
    ]
    columns = ["part", "seed", *(["candidate"] if len(run.candidates) > 1 else []), "prediction", "status"]
    columns += ["scores"] if benchmark.metrics[0].needs == "scores" else []
    return pa.concat_tables(
        [
            _select_predictions(table, columns, part, seed, candidate)
            for candidate in run.candidates
            for part in part_names
            for seed in run.seeds
        ]
    )


def _select_predictions(table: pa.Table, columns: list[str], part: str, seed: int, candidate: str) -> pa.Table:
    """The predictions of one candidate, part and seed in the order of the row ids, without the ids."""
    return sort_by_row_id(_filter_rows(table, part=part, seed=seed, candidate=candidate)).select(columns)


def _filter_rows(table: pa.Table, **values: str | int) -> pa.Table:
    """The rows that have the given values."""
    import pyarrow.compute as pc

    for name, value in values.items():
        table = table.filter(pc.equal(table[name], value))
    return table


def _check_identity(benchmark: Benchmark, card: dict[str, Any], where: str) -> None:
    budget = card["budget"]
    stated = card["benchmark"]
    protocol = (budget["name"], budget.get("steps"), stated["selection"])
    if benchmark.made_under(stated["entry_identity"], *protocol) is None:
        now = benchmark.identity(*protocol)
        raise BadRun(
            f"{where} is of another version of {stated['name']} (entry identity {stated['entry_identity'][:12]}.., "
            f"now {now[:12]}..): run the baseline again"
        )


def find_recorded_run(benchmark: str, name: str, home: Path | None = None, *, budget: str = "quick") -> Run:
    """Return the recorded run of the baseline `name` on a benchmark under a budget, `quick` or `full`, as a run folder
    in the cache. home: the folder of results, by default the package's own.

    Raises `FarshiftError` for an unknown result or benchmark, `BadRun` if it is for another version of the benchmark.

    >>> import farshift as fs
    >>> fs.baseline("modadd97/xi35", "quadratic-mlp").model
    'quadratic-mlp'
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    home = home or get_results_home(budget)
    under = "" if budget == BUDGETS[0] else f" under the budget {budget}"
    available = list_results(home)
    known = {entry_name for on, entry_name in available if on == benchmark}
    check_recorded(benchmark, {on for on, _ in available}, under)
    if name not in known:
        raise UnknownName(f"recorded baseline on {benchmark}{under}", name, known)
    file, card = get_result_path(home, benchmark, name), read_result_card(benchmark, name, home)
    try:
        table = pq.read_table(file)
    except (pa.ArrowException, OSError) as error:
        raise BadRun(f"{file} is not a recorded result: {get_first_line(error, 200)}") from error
    current_benchmark = find_benchmark(benchmark)
    _check_identity(current_benchmark, card, str(file))
    digest, stated, rule = compute_file_sha256(file), card["budget"], card["benchmark"]["selection"]
    spent = Budget(stated["name"], stated.get("steps"), stated["device"])
    identity = current_benchmark.identity(spent.name, spent.steps, rule)
    out = get_cache_root() / "recorded" / f"{benchmark.replace('/', '__')}-{name}-{digest[:16]}-{identity[:8]}"
    if (out / "run.toml").is_file():
        try:
            return read_run(out)
        except FarshiftError as error:
            log_message(f"{get_first_line(error, 200)}; writing it again from the recorded result")
            shutil.rmtree(out, ignore_errors=True)
    model = card["model"] | {"recorded": digest, "spent": json.dumps(card["spent"], sort_keys=True)[:2000]}
    model = {key: value for key, value in model.items() if key not in ("candidates", "finals")}
    names = card["model"].get("candidates", [ONLY])
    answers = [
        {entry_name: _read_candidate_answers(current_benchmark, table, seed, entry_name, rule) for entry_name in names}
        for seed in stated["seeds"]
    ]
    return write_recorded_run(current_benchmark, out, model, answers, spent, stated["seeds"], rule)


def _read_candidate_answers(
    benchmark: Benchmark, table: pa.Table, seed: int, candidate: str, rule: str
) -> dict[str, Answers]:
    """The predictions of a seed's candidate for every part, in the order of the part's rows."""
    kind = ARROW_TYPES[benchmark.task.type]
    if str(table.schema.field("prediction").type) != kind:
        raise FarshiftError(f"a recorded result of {benchmark.name} predicts {table['prediction'].type}, not {kind}")
    if "candidate" in table.column_names:
        table = _filter_rows(table, candidate=candidate)
    each = {}
    for inputs in list_predicted_inputs(benchmark, load_model_inputs(benchmark), rule):
        rows, ids = _filter_rows(table, part=inputs.name, seed=seed), inputs.row_ids
        if rows.num_rows != len(ids):
            raise BadRun(
                f"a recorded result of {benchmark.name} has {rows.num_rows} rows of {inputs.name}, not {len(ids)}"
            )
        order = np.empty(len(ids), np.int64)
        order[np.argsort(ids, kind="stable")] = np.arange(len(ids))
        each[inputs.name] = read_answers(rows, benchmark.task)[order]
    return each
