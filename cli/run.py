"""`farshift run`, `evaluate`, `score` and `status`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import FarshiftError
from ..core.text import format_count
from .options import Count, Natural, OptionalCount, Runs, command, read_settings
from .output import (
    emit_json,
    exit_with_error,
    forbid_network,
    print_block,
    print_line,
    print_note,
    print_table,
)
from .progress import show_progress

if TYPE_CHECKING:
    from ..baselines.running.plan import Plan

app = typer.Typer()


@command(app)
def run(
    baselines: list[str] | None = None,
    on: str = "",
    suite: str = "",
    out: Path | None = None,
    seeds: OptionalCount = None,
    device: str = "cpu",
    engine: str = "local",
    budget: str = "full",
    steps: OptionalCount = None,
    settings: Path | None = None,
    search: Natural = 0,
    selection: str | None = None,
    stack: Natural = 0,
    diagnose: str = "",
    network: str = "",
    encoder: str = "",
    fine_tune: str = "",
    augment: str = "",
    published: str = "",
    stream: str = "",
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Train baselines on a benchmark or a suite, evaluate them and score them.

    Several baselines on one benchmark get one run folder each, DIR/BASELINE. After an interruption, repeat the command
    to resume.

    If a replica (one seed of one setting) fails, the others continue. Of several runs, those that finished are scored,
    failures are listed, and the exit code is 1. A run that would not fit into memory or on the disk is refused before
    it starts (see --dry-run).

    baselines BASELINE: Baseline names, as printed by farshift baselines list (default with --suite: all that apply to a
        benchmark).
    --suite SUITE: Suite, such as core or full: run on all its benchmarks instead of --on.
    --out DIR: Run folder to write; for several runs, their parent folder.
    --engine ENGINE: Execution engine: local, processes or ray.
    --settings FILE: TOML file with one table of hyperparameters per setting; every setting is trained.
    --search N: Number of settings to sample at random from the algorithm's search space; the first is the default
        setting.
    --stack K: Maximum number of replicas (one seed of one setting each) trained together; 0 for automatic.
    --diagnose D,D: Diagnostics to compute for the trained replicas, separated by commas, such as coherence,sharpness,
        or all (default: none).
    --network NAME: Network, as printed by farshift baselines networks (default: the baseline's).
    --encoder MODEL: Train on features computed once with a frozen pretrained model: a name printed by farshift
        baselines networks; a Hugging Face transformers model, org/name[@revision] or ./folder; a function FILE.py:NAME
        that returns a torch module; or timm:NAME, open_clip:NAME, torchvision:NAME.
    --fine-tune MODEL: Fine-tune a pretrained model, named as for --encoder.
    --augment NAME: Data augmentation in training: NAME[+NAME..][,setting=value..], such as randaugment,magnitude=5
        (default: the baseline's).
    --published NAME: Train with the published settings of domainbed or wilds, as printed by farshift baselines list
        --published.
    --stream ADDRESS: Folder or URL (https:// or hf://) of WebDataset shards or Parquet files, from which to stream
        images or audio instead of caching them; {part} is replaced by the name of each part.
    --dry-run: Only estimate steps, rows, disk, memory and time, by timing a few training steps and predictions on this
        machine. Nothing is downloaded or written to --out. Exit code 2 if the run would not fit into memory or on the
        disk.
    """
    from ..baselines.recipe import find_recipe
    from ..baselines.running.plan import make_suite_plans
    from ..baselines.running.published import RecipeOverrides
    from ..baselines.running.resources import prepare_data
    from ..baselines.running.search import draw_settings
    from ..baselines.running.sweep import make_budget, make_plan, raise_first_failure, require_extras, run_all
    from ..benchmarks.model_inputs.load import find_streamed_benchmark
    from ..core.world import get_world

    if dry_run and stream:
        raise FarshiftError("run: --dry-run does not support --stream: leave one of them out")
    if dry_run:
        forbid_network(True)
        require_extras()
    elif out is None:
        raise FarshiftError("run: name a folder to write (--out DIR)")
    names, folder = baselines or [], out or Path("runs")
    if bool(on) == bool(suite) or (on and not names):
        raise FarshiftError(
            "run: name a baseline and its benchmark (farshift run mlp --on vowel/speakers), or a suite (--suite core)"
        )
    changes = RecipeOverrides(network, encoder, fine_tune, augment, published, stream)
    single = {"settings": settings, "search": search, "selection": selection, "diagnose": diagnose, **vars(changes)}
    if suite and (given := [f"--{name.replace('_', '-')}" for name, value in single.items() if value]):
        raise FarshiftError(f"run --suite: {', '.join(given)} goes with one benchmark (--on)")
    if len(names) > 1 and (settings or diagnose):
        raise FarshiftError("run: --settings and --diagnose go with one baseline")
    plans: list[Plan] = []
    with show_progress():
        training_budget = make_budget(budget, steps, device)
        if suite:
            plans = make_suite_plans(suite, folder, names, training_budget, seeds, stack)
        for name in dict.fromkeys([] if suite else names):
            chosen, own = read_settings(settings), folder if len(names) == 1 else folder / name
            if search:
                benchmark = find_streamed_benchmark(on, stream)
                recipe = changes.of(find_recipe(name), benchmark)
                chosen = (chosen or {}) | draw_settings(name, benchmark.name, search, recipe)
            plans.append(make_plan(name, on, own, training_budget, seeds, chosen, selection, stack, diagnose, changes))
        if on and not dry_run:
            prepare_data(plans[0].benchmark)
    if dry_run:
        return _print_estimates(plans, engine, json)
    if suite or len(names) > 1:
        return _run_several_plans(plans, folder, engine, json)
    with show_progress():
        runs, failures = run_all(plans, engine)
        raise_first_failure(failures)
    if get_world().rank == 0:
        print_scores(runs[0], json)


def _run_several_plans(plans: list[Plan], out: Path, engine: str, json: bool) -> None:
    """Score the runs that finish; failed replicas are listed on stderr, and the exit code is then 1."""
    from ..baselines.running.sweep import run_all
    from ..benchmarks.scoring.score import score
    from ..core.world import get_world

    first = get_world().rank == 0
    with show_progress():
        runs, failures = run_all(plans, engine)
        scores = [score(run) for run in runs] if first else []
    if json and first:
        emit_json([item.report() for item in scores])
    elif first:
        for run, item in zip(runs, scores, strict=True):
            _print_score(run, item)
        print_line(f"{format_count(len(scores), 'run')}: {out}")
    for failure in failures:
        print_note(f"failed: {failure}")
    if failures:
        raise typer.Exit(1)


def _print_estimates(plans: list[Plan], engine: str, json: bool) -> None:
    """Print the estimated cost of each run; `FarshiftError` if one does not fit, with what to change."""
    from ..baselines.running.resources import estimate_cost, format_estimate, format_time

    with show_progress():
        estimates = [estimate_cost(plan, engine) for plan in plans]
    problems = [problem for item in estimates for problem in item["problems"]]
    if json:
        emit_json([item | {"fits": not item["problems"]} for item in estimates])
    elif len(estimates) == 1:
        title = f"{plans[0].title}, {plans[0].budget.name} budget, {plans[0].budget.device}"
        print_table(title, ["resource", "estimate"], format_estimate(estimates[0]))
    else:
        columns = ("baseline", "benchmark", "replicas", "steps")
        rows = [[*(item[name] or "until done" for name in columns), format_time(item)] for item in estimates]
        print_table("", ["baseline", "benchmark", "replicas", "steps", "time"], rows)
    if problems:
        raise FarshiftError(problems[0] + f" (and {len(problems) - 1} more)" * (len(problems) > 1))


@command(app)
def evaluate(
    model: str,
    on: str,
    out: Path,
    seeds: OptionalCount = None,
    device: str = "cpu",
    budget: str = "full",
    steps: OptionalCount = None,
    name: str | None = None,
    batch_size: Count = 512,
    selection: str | None = None,
    settings: Path | None = None,
    option: list[str] | None = None,
    time_limit: Annotated[float | None, typer.Option(min=0)] = None,
    limit: OptionalCount = None,
    deterministic: bool = False,
    no_score: bool = False,
    json: bool = False,
) -> None:
    """Evaluate your own model on a benchmark and score it.

    model MODEL: Model: file.py:factory, package.module:attribute, hf:MODEL, clip:MODEL, openai:MODEL@URL,
        torch:WEIGHTS@FILE.py:FACTORY or cmd:COMMAND.
    --out DIR: Run folder to write; an unfinished run is resumed.
    --name: Model name on the run card (default: derived from the model).
    --batch-size: Number of rows passed to predict at a time.
    --time-limit SECONDS: Time limit per batch in seconds; 0 for none (default: 600; openai: and cmd: models use
        their own time limit).
    --limit N: Predict only N rows of each part, as a trial; boards do not accept such a run.
    --deterministic: The predictions do not depend on the seed, so one seed is enough. Checked on some rows.
    --no-score: Score later, with farshift score (scoring reads the test labels).
    """
    from ..benchmarks.harness.evaluate import evaluate as go
    from ..benchmarks.harness.factory import find_model, read_options
    from ..core.world import get_world

    how: dict[str, Any] = {
        "seeds": seeds,
        "device": device,
        "budget": budget,
        "steps": steps,
        "name": name,
        "batch_size": batch_size,
        "selection": selection,
        "settings": read_settings(settings),
        "time_limit": time_limit,
        "limit": limit,
        "deterministic": deterministic,
    }
    with show_progress():
        loaded_model, code = find_model(model, read_options(option or []))
        hung = f"predict did not return in time and cannot be interrupted; {_RESUME_HINT}"
        done = go(loaded_model, on, out=out, code=code, on_hang=lambda: exit_with_error(hung), **how)
    if get_world().rank != 0:
        return
    if no_score and json:
        emit_json({"run": str(done.path), "digest": done.digest})
    elif no_score:
        print_line(f"run: {done.path}")
    else:
        print_scores(done, json)


_RESUME_HINT = "finished predictions are kept; repeat the command to resume"


@command(app)
def score(
    runs: Runs,
    selection: str | None = None,
    rows: OptionalCount = None,
    view: str = "",
    json: bool = False,
) -> None:
    """Score finished runs from their predictions, or show what a run predicted for single rows.

    A submission file (.zip) is accepted too: each of its runs is scored as a board would score it.

    --selection RULE: Rule, permitted by the protocol, that selects among checkpoints and settings, such as last
        or id_val (default: the run's).
    --rows N: Instead of scores, show N rows of a run: its prompt or inputs, the model's raw text, the answer that was
        read, and the truth.
    --view VIEW: For --rows: view of the benchmark (default: ood).
    """
    if rows is not None:
        return _print_rows(runs, rows, view or "ood", selection, json)
    if view:
        raise FarshiftError("score: --view goes with --rows N")
    from ..benchmarks.runs.run import read_run
    from ..benchmarks.scoring.score import score as go
    from ..leaderboard.operations.submit import score_submission

    scores: list[tuple[Any, Any]] = []
    with show_progress():
        for path in runs:
            if path.is_file():
                scores += [(None, item) for item in score_submission(path, selection)]
            else:
                run = read_run(path)
                scores.append((run, go(run, selection)))
    if json:
        return emit_json([item.report() for _, item in scores])
    for run, item in scores:
        if run is None:
            print_block(str(item))
        else:
            _print_score(run, item)


def _print_rows(runs: list[Path], count: int, view: str, selection: str | None, json: bool) -> None:
    from ..benchmarks.scoring.shown_rows import show_rows

    if len(runs) != 1 or runs[0].is_file():
        raise FarshiftError("score: --rows shows one run: name its folder")
    with show_progress():
        rows = show_rows(runs[0], count, view, selection)
    if json:
        return emit_json(rows)
    for row in rows:
        print_line("row {row_id}, seed {seed}, candidate {candidate}, {state}".format(**row))
        for name in ("input", "output", "answer", "truth"):
            if (text := row[name]) is not None:
                print_block(f"{name:>8}  " + text.replace("\n", "\n" + " " * 10))
        print_block("" if row["score"] is None else f"{'score':>8}  {row['score']:g}\n")


@command(app)
def status(folders: list[Path], json: bool = False) -> None:
    """Show the progress of runs: seeds, training, predictions, throughput, time left.

    folders RUN...: Run folders, or their parent folders.
    """
    from ..benchmarks.runs.status import list_statuses

    columns = ["run", "benchmark", "model", "state", "seeds", "trained", "predicted", "rows/s", "time left"]
    statuses = list_statuses(folders)
    if json:
        return emit_json([item.to_dict() for item in statuses])
    print_table("", columns, [item.cells() for item in statuses])


def print_scores(done: Any, json: bool) -> None:
    """Print a finished run's scores, the chosen candidates and the run's folder."""
    from ..benchmarks.scoring.apply_selection import list_chosen_candidates
    from ..benchmarks.scoring.score import score as go

    run_score = go(done)
    chosen = list_chosen_candidates(done, run_score)
    if json:
        chosen_record = {"chosen": [candidate.to_dict() for candidate in chosen]} if chosen else {}
        return emit_json({"run": str(done.path), "digest": done.digest, **chosen_record, "score": run_score.report()})
    _print_score(done, run_score)
    print_line(f"run: {done.path}")


def _print_score(run: Any, run_score: Any) -> None:
    """Print a run's score, and the candidates that the score is of."""
    from ..benchmarks.scoring.apply_selection import list_chosen_candidates

    print_block(str(run_score))
    for candidate in list_chosen_candidates(run, run_score):
        print_line(f"chosen by {run_score.selection}: {candidate}")
