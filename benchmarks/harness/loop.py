"""The evaluation loop: train models on a set of rows, predict every part with each checkpoint, and store the
predictions. Users' models, baselines and predictions of sealed tests all use it.

A run has a training set for its candidates, and one for each fold of a selection rule that trains its own models. A
`Trainer` receives a set of rows and a budget, and returns the trained models: one at a time, as users' models, or many
that were trained together, as replicas.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Protocol

from ...core.clock import Stopwatch, format_duration
from ...core.errors import FarshiftError, ModelError
from ...core.label_access import hide_labels
from ...core.progress import log_message, repeat_message
from ...loaders.batching.input_format import AS_THEY_ARE, InputFormat
from ..answers import Answers, find_differences
from ..benchmark import Benchmark, select_limited_rows
from ..model import Budget, Model
from ..model_inputs.rows import ModelInputs, ModelRows, copy_rows
from ..parsing import wrap_user_errors
from ..runs.run_folder import SECONDS, Job, RunFolder
from ..selection import Fold
from ..settings import MAX_CANDIDATES, Settings, clean_remarks, find_name_problem
from .factory import Factory
from .predictor import Predictor


@dataclass(frozen=True)
class TrainingSet:
    """The rows of one training: the benchmark's training rows, or those of a fold of a selection rule. They are read
    on demand."""

    benchmark: Benchmark
    model_inputs: ModelInputs
    fold: Fold | None = None
    forms: InputFormat = AS_THEY_ARE
    """The format in which images and audio are returned."""

    def train(self) -> ModelRows:
        return self._part("train") if self.fold is None else replace(self.fold.train, forms=self.forms)

    def val(self) -> ModelRows | None:
        """Return validation rows; None if the benchmark has none, and for a fold."""
        return self._part("id_val") if self.fold is None and self.model_inputs.has_part("id_val") else None

    def _part(self, name: str) -> ModelRows:
        return replace(self.model_inputs.training(name), forms=self.forms)

    def opened(self, takes: Callable[[str], bool]) -> dict[str, Any]:
        """Return what a training requests by name beyond training and validation rows, `ood_val` and `unlabelled`: the
        data where the protocol permits them, else None."""
        touch = self.benchmark.definition.protocol.touch
        opened: dict[str, Any] = {}
        if takes("ood_val"):
            given = touch.ood_val_labels and self.model_inputs.has_part("ood_val")
            opened["ood_val"] = self._part("ood_val") if given else None
        if takes("unlabelled"):
            opened["unlabelled"] = self.model_inputs.unlabelled("ood_test") if touch.ood_test_inputs else None
        return opened


@dataclass(frozen=True)
class FittedModel:
    """A trained model, and facts about its training."""

    model: Any
    remarks: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    """Seconds of its training; its share if trained with others. None for a model that is not trained here."""
    touched: Sequence[str] = ()
    """Additional data that the protocol permits and the training used, by name."""


class TrainedModels(Protocol):
    """The models of some seeds and settings, trained on one set of rows."""

    def trained(self, seed: int, values: Mapping[str, Any]) -> AbstractContextManager[FittedModel]:
        """Open the model of a seed and a setting's values within the context. `ModelError` if its training
        failed."""


Trainer = Callable[[TrainingSet, Budget], TrainedModels]


@dataclass(frozen=True)
class SequentialTrainer:
    """Models of a factory: each is made, trained if it has `fit`, and closed before the next one."""

    make: Factory
    rows: TrainingSet
    budget: Budget

    @contextmanager
    def trained(self, seed: int, values: Mapping[str, Any]) -> Iterator[FittedModel]:
        where = f"{self.rows.benchmark.name}, seed {seed}"
        with wrap_user_errors(f"{where}: the model's factory"):
            model = self.make(seed, values)
        with _close_after_use(model, f"{where}: close"):
            check_adaptation(model, self.rows.benchmark)
            yield self._fit(model, where) if getattr(model, "fit", None) is not None else FittedModel(model)

    def _fit(self, model: Any, where: str) -> FittedModel:
        watch = Stopwatch()
        with wrap_user_errors(f"{where}: fit"):
            rows = replace(self.rows, forms=InputFormat.of(model))
            opened = rows.opened(inspect.signature(model.fit).parameters.__contains__)
            if opened.get("unlabelled") is not None:
                opened["unlabelled"] = rows.forms.given(
                    {name: copy_rows(column, slice(None)) for name, column in opened["unlabelled"].items()}
                )
            with repeat_message(lambda seconds: f"{where}: fit has run for {format_duration(seconds)}"):
                remarks = clean_remarks(model.fit(rows.train(), rows.val(), self.budget, **opened))
        return FittedModel(model, remarks, watch.seconds(), list_used_data(opened))


def list_used_data(opened: Mapping[str, Any]) -> list[str]:
    """List the additional data that a training used."""
    return [name for name, value in opened.items() if value is not None]


def check_adaptation(model: Any, benchmark: Benchmark) -> None:
    """Raise `ModelError` for a model that adapts at test time if the protocol does not permit it."""
    if getattr(model, "reset", None) is not None and benchmark.definition.protocol.touch.adaptation is None:
        raise ModelError(
            f"the model {type(model).__name__} has reset(), so it adapts at test time, and the protocol of "
            f"{benchmark.name} does not permit that: remove reset(), or choose a benchmark that permits it"
        )


@contextmanager
def _close_after_use(model: Any, what: str) -> Iterator[None]:
    """Close a model that can be closed; an earlier error takes precedence over one from closing."""
    close = getattr(model, "close", None)
    try:
        yield
    except BaseException:
        if callable(close):
            with suppress(Exception):
                close()
        raise
    if callable(close):
        with wrap_user_errors(what):
            close()


@dataclass(frozen=True)
class TrainingRun:
    """A training set, and what its models predict. suffix: of its jobs' file names. Of the models of a fold only the
    last checkpoint predicts."""

    rows: TrainingSet
    parts: list[ModelRows]
    suffix: str = ""


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
        done: dict[int, list[list[Job]]] = {seed: [] for seed in seeds}
        """By seed and training run: the job of each setting."""
        rule = self.benchmark.rule(self.folder.plan["benchmark"]["selection"])
        with hide_labels():
            for training_run in self._list_training_runs():
                remaining = [seed for seed in seeds if seed not in failed]
                for seed in remaining:
                    done[seed].append([self._make_job(seed, setting, training_run) for setting in self.settings])
                models: TrainedModels | FarshiftError | None = None
                if any(not job.is_done() for seed in remaining for job in done[seed][-1]):
                    models = self._train(training_run.rows)
                for seed in remaining:
                    try:
                        self._evaluate_seed(models, done[seed], training_run)
                    except FarshiftError as error:
                        failed[seed] = error
                        if not keep_going:
                            return failed
                    else:
                        if rule.folds is None:
                            self._finish(seed, done[seed])
        for seed in seeds:
            if rule.folds is not None and seed not in failed:
                self._finish(seed, done[seed])
        return {seed: failed[seed] for seed in seeds if seed in failed}

    def _list_training_runs(self) -> Iterator[TrainingRun]:
        model, inputs = self.folder.plan["model"], self.model_inputs
        parts = [inputs.part(part) for part in self.benchmark.list_parts_without(model.get("left_out", ()))]
        if limit := model.get("limit"):
            name = self.benchmark.name
            parts = [rows.select(select_limited_rows(name, rows.name, rows.row_ids, limit)) for rows in parts]
        yield TrainingRun(TrainingSet(self.benchmark, inputs), parts)
        rule = self.benchmark.rule(self.folder.plan["benchmark"]["selection"])
        for number, fold in enumerate(rule.folds(self.benchmark, inputs) if rule.folds else ()):
            held_out = replace(fold.held_out, name=rule.part)
            yield TrainingRun(TrainingSet(self.benchmark, inputs, fold), [held_out], f".{rule.part}.{number}")

    def _make_job(self, seed: int, setting: str, run: TrainingRun) -> Job:
        name = _make_file_name(setting) + run.suffix
        return self.folder.job(seed, name, self.benchmark.task, run.rows.fold is not None)

    def _train(self, rows: TrainingSet) -> TrainedModels | FarshiftError:
        try:
            with wrap_user_errors(f"{self.benchmark.name}: fit"):
                return self.trainer(rows, self.budget)
        except FarshiftError as error:
            return error

    def _evaluate_seed(
        self, models: TrainedModels | FarshiftError | None, done: list[list[Job]], training_run: TrainingRun
    ) -> None:
        """Predict a training run's parts by the models of a seed, whose jobs so far are `done`."""
        for number, (setting, values) in enumerate(self.settings.items()):
            job = done[-1][number]
            if job.is_done():
                continue
            if isinstance(models, FarshiftError):
                raise models
            assert models is not None
            sample = self._predict_sample(models, job.seed, values, training_run)
            with models.trained(job.seed, values) as trained:
                self._require_repetition(trained.model, sample, training_run)
                self._predict(trained, job, done[0][number], setting, training_run)
            if sum(len(other.answered()) for other in done[0]) > MAX_CANDIDATES:
                where = self._where(job.seed)
                raise ModelError(f"{where}: more than {MAX_CANDIDATES} candidates: give fewer settings or checkpoints")

    def _predict_sample(
        self, models: TrainedModels, seed: int, values: Mapping[str, Any], training_run: TrainingRun
    ) -> list[Answers]:
        """The predictions of some rows by a model of another seed; none unless the model is declared deterministic."""
        if training_run.rows.fold is not None or not self.folder.plan["model"].get("deterministic"):
            return []
        with models.trained(seed + 1, values) as other:
            if getattr(other.model, "reset", None) is not None:
                raise ModelError("a model with reset() depends on the rows before: do not declare it deterministic")
            return [self.query.predict_sample(other.model, inputs) for inputs in training_run.parts]

    def _require_repetition(self, model: Any, sample: list[Answers], training_run: TrainingRun) -> None:
        """Raise `ModelError` if a model does not predict the rows of `sample` alike."""
        for inputs, before in zip(training_run.parts, sample, strict=True) if sample else ():
            again = self.query.predict_sample(model, inputs)
            if different := int(find_differences(before, again, self.benchmark.task).sum()):
                raise ModelError(
                    f"{self.benchmark.name}: the model is declared deterministic, but predicts {different} of "
                    f"{len(before)} rows of {inputs.name} differently when they are predicted again with another seed"
                )

    def _predict(self, trained: FittedModel, job: Job, main: Job, setting: str, training_run: TrainingRun) -> None:
        """Predict a training run's parts with each checkpoint, and finish the job. main: the setting's job without a
        fold, whose last candidate a fold's last checkpoint represents."""
        model, seed, where = trained.model, job.seed, self._where(job.seed)
        only, prefix = (main.answered()[-1] if job.fold else ""), f"{setting}/" if setting else ""
        spent = _filter_remarks(trained.remarks)
        spent |= InputFormat.of(model).remarks(training_run.parts[0].batch(slice(8)))
        if trained.seconds is not None:
            job.mark_trained()
            spent["fit_seconds"] = trained.seconds
            self._check_ceiling(seed, spent)
        elif not job.fold and seed == self.folder.plan["seeds"][0] and setting == next(iter(self.settings)):
            name = f"{self.folder.plan['model']['name']} has no fit"
            if len(self.folder.plan["seeds"]) > 1:
                log_message(f"{name}: it is not trained, and each seed evaluates it as created")
            if self.budget.steps is not None:
                log_message(
                    f"{name}, and steps change nothing but the protocol: runs are compared with others of the same "
                    "steps only"
                )
        watch = Stopwatch()
        for checkpoint, ready in _iterate_checkpoints(model, where, job.fold):
            check_adaptation(ready, self.benchmark)
            candidate = only or f"{prefix}{checkpoint}"
            for inputs in training_run.parts:
                which = "" if candidate == "last" else f" {candidate}"
                label = f"{self.benchmark.name} {inputs.name} seed {seed}{which}"
                self.query.predict_all(ready, candidate, inputs, job, label)
        if callable(remarks := getattr(model, "remarks", None)):
            with wrap_user_errors(f"{where}: remarks"):
                spent |= _filter_remarks(remarks())
        spent["predict_seconds"] = watch.seconds()
        self._check_ceiling(seed, spent)
        if self.query.world.rank == 0:
            self.folder.finish_job(job, spent, list(trained.touched))

    def _finish(self, seed: int, done: list[list[Job]]) -> None:
        if self.query.world.rank == 0:
            self.folder.finish_seed(seed, [job for of_setting in zip(*done, strict=True) for job in of_setting])

    def _where(self, seed: int) -> str:
        return f"{self.benchmark.name}, seed {seed}"

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


def _iterate_checkpoints(model: Any, where: str, only_last: bool) -> Iterable[tuple[str, Model]]:
    """Yield a model's checkpoints by name, or only the last one; the model itself, `last`, if it has none."""
    if getattr(model, "checkpoints", None) is None:
        yield "last", model
        return
    with wrap_user_errors(f"{where}: checkpoints"):
        checkpoints = iter(model.checkpoints())
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
    return {name: value for name, value in clean_remarks(remarks).items() if name not in SECONDS}
