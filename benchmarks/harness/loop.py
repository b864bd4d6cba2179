"""The evaluation loop: train models on a set of rows, predict every part with each checkpoint, and store the
predictions. Users' models, baselines and predictions of sealed tests all use it.

A run has a training set for its candidates, and one for each fold of a selection rule that trains its own models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from ...core.clock import Stopwatch
from ...core.errors import FarshiftError, ModelError
from ...core.label_access import hide_labels
from ...core.progress import log_message
from ...loaders.batching.input_format import InputFormat
from ..answers import Answers, find_differences
from ..benchmark import Benchmark
from ..model import Budget, Model
from ..model_inputs.rows import ModelInputs, ModelRows
from ..parsing import wrap_user_errors
from ..runs.coverage import list_predicted_parts, read_limit, select_limited_rows
from ..runs.run_folder import RunFolder
from ..runs.shards import Job
from ..settings import MAX_CANDIDATES, Settings, clean_remarks, find_name_problem
from .predictor import Predictor
from .training import FittedModel, TrainedModels, Trainer, TrainingSet, check_adaptation


@dataclass(frozen=True)
class TrainingRun:
    """A training set, and what its models predict. suffix: of its jobs' file names."""

    rows: TrainingSet
    parts: list[ModelRows]
    suffix: str = ""

    @property
    def fold(self) -> bool:
        """Whether its models serve only a selection rule; then only their last checkpoint predicts."""
        return self.rows.fold is not None


_Jobs = dict[tuple[int, str], list[Job]]
"""By seed and setting: the job of the candidates, then those of the folds."""


@dataclass(frozen=True)
class Evaluation:
    """A run in progress: where predictions are stored, how models are trained, and how they predict."""

    folder: RunFolder
    benchmark: Benchmark
    model_inputs: ModelInputs
    trainer: Trainer
    budget: Budget
    query: Predictor
    settings: Settings

    def run(self, seeds: Sequence[int], keep_going: bool = False) -> dict[int, FarshiftError]:
        """Train the models of some seeds together, predict, and store the predictions; finished jobs are not repeated.
        Return the failed seeds, each with its first error: with `keep_going` the others continue, without it the first
        error ends the loop. Labels cannot be opened meanwhile."""
        failed: dict[int, FarshiftError] = {}
        jobs: _Jobs = {}
        rule = self.benchmark.rule(self.folder.plan["benchmark"]["selection"])
        with hide_labels():
            for training_run in self._training_runs():
                remaining = [seed for seed in seeds if seed not in failed]
                for seed, error in self._execute(training_run, remaining, jobs):
                    if error is not None:
                        failed[seed] = error
                        if not keep_going:
                            return failed
                    elif rule.folds is None:
                        self._finish(seed, jobs)
        for seed in seeds:
            if rule.folds is not None and seed not in failed:
                self._finish(seed, jobs)
        return {seed: failed[seed] for seed in seeds if seed in failed}

    def _training_runs(self) -> Iterator[TrainingRun]:
        model = self.folder.plan["model"]
        parts = [self.model_inputs.part(part) for part in list_predicted_parts(self.benchmark, model)]
        if (limit := read_limit(model)) is not None:
            parts = [
                inputs.select(select_limited_rows(self.benchmark.name, inputs.name, inputs.row_ids, limit))
                for inputs in parts
            ]
        yield TrainingRun(TrainingSet(self.benchmark, self.model_inputs), parts)
        rule = self.benchmark.rule(self.folder.plan["benchmark"]["selection"])
        for number, fold in enumerate(rule.folds(self.benchmark, self.model_inputs) if rule.folds else ()):
            fold_inputs = [replace(fold.held_out, name=rule.part)]
            training_set = TrainingSet(self.benchmark, self.model_inputs, fold)
            yield TrainingRun(training_set, fold_inputs, f".{rule.part}.{number}")

    def _execute(
        self, training_run: TrainingRun, seeds: list[int], jobs: _Jobs
    ) -> Iterator[tuple[int, FarshiftError | None]]:
        """Train on one set of rows and predict; yield each seed when it is done, with its error if it failed."""
        pending: dict[int, list[str]] = {}
        for seed in seeds:
            for setting in self.settings:
                job = self.folder.job(
                    seed, _make_file_name(setting) + training_run.suffix, self.benchmark.task, training_run.fold
                )
                jobs.setdefault((seed, setting), []).append(job)
                if not job.is_done():
                    pending.setdefault(seed, []).append(setting)
        models: TrainedModels | FarshiftError | None = None
        if pending:
            try:
                with wrap_user_errors(f"{self.benchmark.name}: fit"):
                    models = self.trainer(training_run.rows, self.budget)
            except FarshiftError as error:
                models = error
        for seed in seeds:
            try:
                for setting in pending.get(seed, ()):
                    if isinstance(models, FarshiftError):
                        raise models
                    assert models is not None
                    sample = self._predict_sample(models, seed, setting, training_run)
                    with models.trained(seed, self.settings[setting]) as trained:
                        self._require_repetition(trained.model, sample, training_run)
                        self._ask(trained, jobs[seed, setting], setting, training_run)
                    self._check_candidates(seed, jobs)
            except FarshiftError as error:
                yield seed, error
            else:
                yield seed, None

    def _predict_sample(
        self, models: TrainedModels, seed: int, setting: str, training_run: TrainingRun
    ) -> list[Answers] | None:
        """The predictions of some rows by a model of another seed; None unless the model is declared deterministic."""
        if training_run.fold or not self.folder.plan["model"].get("deterministic"):
            return None
        with models.trained(seed + 1, self.settings[setting]) as other:
            if getattr(other.model, "reset", None) is not None:
                raise ModelError("a model with reset() depends on the rows before: do not declare it deterministic")
            return [self.query.predict_sample(other.model, inputs) for inputs in training_run.parts]

    def _require_repetition(self, model: Any, sample: list[Answers] | None, training_run: TrainingRun) -> None:
        """Raise `ModelError` if a model does not predict the rows of `sample` alike."""
        for inputs, before in zip(training_run.parts, sample, strict=True) if sample else ():
            again = self.query.predict_sample(model, inputs)
            if different := int(find_differences(before, again, self.benchmark.task).sum()):
                raise ModelError(
                    f"{self.benchmark.name}: the model is declared deterministic, but predicts {different} of "
                    f"{len(before)} rows of {inputs.name} differently when they are predicted again with another seed"
                )

    def _ask(self, trained: FittedModel, jobs: list[Job], setting: str, training_run: TrainingRun) -> None:
        """Predict a training run's parts with each checkpoint, and finish the job, the last of `jobs`."""
        job, prefix = jobs[-1], f"{setting}/" if setting else ""
        only = (
            jobs[0].answered()[-1] if training_run.fold else ""
        )  # the candidate that a fold's last checkpoint represents
        model, spent = trained.model, _filter_remarks(trained.remarks)
        spent |= InputFormat.of(model).remarks(training_run.parts[0].batch(slice(8)))
        measured: dict[str, float] = {}
        if trained.seconds is None:
            self._say_untrained(job.seed)
        else:
            job.mark_trained()
            measured["fit_seconds"] = trained.seconds
            self._check_ceiling(job.seed, spent | measured)
        watch = Stopwatch()
        for checkpoint, ready in self._checkpoints(model, job.seed, bool(only)):
            check_adaptation(ready, self.benchmark)
            candidate = only or f"{prefix}{checkpoint}"
            for inputs in training_run.parts:
                which = "" if candidate == "last" else f" {candidate}"
                label = f"{self.benchmark.name} {inputs.name} seed {job.seed}{which}"
                self.query.predict_all(ready, candidate, inputs, job, label)
        if callable(remarks := getattr(model, "remarks", None)):
            with wrap_user_errors(f"{self._where(job.seed)}: remarks"):
                spent |= _filter_remarks(remarks())
        measured["predict_seconds"] = watch.seconds()
        self._check_ceiling(job.seed, spent | measured)
        if self.query.world.rank == 0:
            self.folder.finish_job(job, spent | measured, list(trained.touched))

    def _check_candidates(self, seed: int, jobs: _Jobs) -> None:
        if sum(len(jobs[seed, setting][0].answered()) for setting in self.settings) > MAX_CANDIDATES:
            raise ModelError(
                f"{self._where(seed)}: more than {MAX_CANDIDATES} candidates: give fewer settings or checkpoints"
            )

    def _finish(self, seed: int, jobs: _Jobs) -> None:
        if self.query.world.rank == 0:
            self.folder.finish_seed(seed, [job for setting in self.settings for job in jobs[seed, setting]])

    def _where(self, seed: int) -> str:
        return f"{self.benchmark.name}, seed {seed}"

    def _say_untrained(self, seed: int) -> None:
        seeds, name = self.folder.plan["seeds"], self.folder.plan["model"]["name"]
        if seed == seeds[0] and len(seeds) > 1:
            log_message(f"{name} has no fit: it is not trained, and each seed evaluates it as created")

    def _checkpoints(self, model: Any, seed: int, only_last: bool) -> Iterable[tuple[str, Model]]:
        if getattr(model, "checkpoints", None) is None:
            return [("last", model)]
        where = self._where(seed)
        with wrap_user_errors(f"{where}: checkpoints"):
            checkpoints = iter(model.checkpoints())
        return _iterate_checkpoints(checkpoints, where, only_last)

    def _check_ceiling(self, seed: int, spent: Mapping[str, Any]) -> None:
        """Raise `ModelError` if training used more than the protocol allows, by the clock or by the model's remarks."""
        ceiling = self.benchmark.definition.protocol.ceiling
        for name, most, used in (
            ("steps", ceiling.steps, spent.get("steps", 0)),
            ("epochs", ceiling.epochs, spent.get("epochs", 0)),
            ("device_seconds", ceiling.device_seconds, spent.get("fit_seconds", 0)),
        ):
            if most is not None and isinstance(used, int | float) and used > most:
                raise ModelError(f"{self._where(seed)}: fit used {used:g} {name}, and the protocol allows {most:g}")


def _make_file_name(setting: str) -> str:
    """Return a file name for a setting. Names of settings are arbitrary and file names are not, so a digest
    distinguishes them, also on a file system that ignores case."""
    if not setting:
        return "main"
    return f"{re.sub('[^a-z0-9]+', '-', setting.lower())[:30]}-{sha256(setting.encode()).hexdigest()[:12]}"


def _iterate_checkpoints(checkpoints: Any, where: str, only_last: bool) -> Iterable[tuple[str, Model]]:
    names: set[str] = set()
    last: tuple[str, Model] | None = None
    while True:
        with wrap_user_errors(f"{where}: checkpoints"):
            item = next(checkpoints, None)
            if item is None:
                break
            name, ready = item
        if problem := find_name_problem(name, "its name") or ("the name was used before" if name in names else ""):
            raise ModelError(f"{where}: checkpoint {name!r}: {problem}")
        names.add(name)
        if len(names) > MAX_CANDIDATES:
            raise ModelError(f"{where}: more than {MAX_CANDIDATES} checkpoints")
        last = (name, ready)
        if not only_last:
            yield last
    if last is None:
        raise ModelError(f"{where}: checkpoints() returned no checkpoint")
    if only_last:
        yield last


def _filter_remarks(remarks: object) -> dict[str, Any]:
    """Return a model's remarks without the keys that the harness measures."""
    return {name: value for name, value in clean_remarks(remarks).items() if name not in _MEASURED}


_MEASURED = ("fit_seconds", "predict_seconds")
