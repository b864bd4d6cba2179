"""One seed of a run: its models trained, each checkpoint asked for every part, and the answers kept."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from ...core.errors import ModelError
from ...core.progress import say
from ...core.version import Stopwatch
from ..benchmark import Benchmark
from ..blind.data import BlindData, Inputs, blind_data
from ..blind.training_table import TrainingTable
from ..limits import MAX_CANDIDATES, name_problem
from ..model import Budget, Model
from ..parsing import named_errors
from ..runs.run_folder import RunFolder
from ..runs.shards import Job
from ..selection import Fold
from ..settings import NONE, Settings, plain_remarks
from .factory import Factory
from .query import Query
from .time_limit import TimeLimit

BATCH = 512
TIME_LIMIT = 600.0
"""Rows that a model is asked at once, and seconds that it may take over them, where nobody says otherwise."""


@dataclass(frozen=True)
class _Seed:
    """One seed of a run on its way."""

    folder: RunFolder
    benchmark: Benchmark
    make: Factory
    seed: int
    budget: Budget
    query: Query
    blind: BlindData

    @property
    def where(self) -> str:
        return f"{self.benchmark.name}, seed {self.seed}"

    def candidates(self, setting: str, values: Mapping[str, Any]) -> Job:
        """Train a setting's model and ask all its checkpoints for every part."""
        job = self._job(setting)
        if not job.is_done():
            parts = [self.blind.part(part) for part in self.benchmark.predicted_parts]
            val = self.blind.training("id_val") if self.blind.has_part("id_val") else None
            self._go(job, values, lambda: self.blind.training("train"), val, parts, f"{setting}/" if setting else "")
        return job

    def fold(self, setting: str, values: Mapping[str, Any], fold: Fold, number: int, part: str, candidate: str) -> Job:
        """Train one model for a selection rule, and ask its last checkpoint alone."""
        job = self._job(setting, f".{part}.{number}")
        if not job.is_done():
            self._go(job, values, lambda: fold.train, None, [replace(fold.asked, name=part)], candidate, only_last=True)
        return job

    def _job(self, setting: str, fold: str = "") -> Job:
        return self.folder.job(self.seed, _file_name(setting) + fold, self.benchmark.task, bool(fold))

    def _go(
        self,
        job: Job,
        values: Mapping[str, Any],
        train: Callable[[], TrainingTable],
        val: TrainingTable | None,
        parts: list[Inputs],
        prefix: str,
        only_last: bool = False,
    ) -> None:
        with named_errors(f"{self.where}: the model's factory"):
            model = self.make(self.seed, values)
        with _closed_after(model, f"{self.where}: close"):
            self._train_and_ask(model, job, train, val, parts, prefix, only_last)

    def _train_and_ask(
        self,
        model: Any,
        job: Job,
        train: Callable[[], TrainingTable],
        val: TrainingTable | None,
        parts: list[Inputs],
        prefix: str,
        only_last: bool,
    ) -> None:
        _check_adaptation(model, self.benchmark)
        spent: dict[str, Any] = {}
        measured: dict[str, float] = {}
        touched: list[str] = []
        watch = Stopwatch()
        if getattr(model, "fit", None) is not None:
            job.mark_trained()
            with named_errors(f"{self.where}: fit"):
                spent |= _remarked(model.fit(train(), val, self.budget, **self._opened(model, touched)))
            measured["fit_seconds"] = watch.seconds()
            self._check_ceiling(spent | measured)
        elif self.seed == self.folder.plan["seeds"][0] and len(self.folder.plan["seeds"]) > 1:
            name = self.folder.plan["model"]["name"]
            say(f"{name} has no fit: it is not trained here, and each seed asks it as it is made")
        watch = Stopwatch()
        for checkpoint, ready in self._checkpoints(model, only_last):
            _check_adaptation(ready, self.benchmark)
            candidate = prefix if only_last else f"{prefix}{checkpoint}"
            for inputs in parts:
                which = "" if candidate == "last" else f" {candidate}"
                label = f"{self.benchmark.name} {inputs.name} seed {self.seed}{which}"
                self.query.ask(ready, candidate, inputs, job, label)
        if callable(remarks := getattr(model, "remarks", None)):
            with named_errors(f"{self.where}: remarks"):
                spent |= _remarked(remarks())
        measured["predict_seconds"] = watch.seconds()
        self._check_ceiling(spent | measured)
        if self.query.world.rank == 0:
            self.folder.finish_job(job, spent | measured, touched)

    def _opened(self, model: Any, touched: list[str]) -> dict[str, Any]:
        """What `fit` asks for by name beyond training and validation rows: given where the protocol opens it."""
        touch = self.benchmark.definition.protocol.touch
        takes = inspect.signature(model.fit).parameters
        opened: dict[str, Any] = {}
        if "ood_val" in takes:
            given = touch.ood_val_labels and self.blind.has_part("ood_val")
            opened["ood_val"] = self.blind.training("ood_val") if given else None
        if "unlabelled" in takes:
            opened["unlabelled"] = self.blind.part("ood_test").batch(slice(None)) if touch.ood_test_inputs else None
        touched += [name for name, value in opened.items() if value is not None]
        return opened

    def _checkpoints(self, model: Any, only_last: bool) -> Iterable[tuple[str, Model]]:
        if getattr(model, "checkpoints", None) is None:
            return [("last", model)]
        with named_errors(f"{self.where}: checkpoints"):
            found = iter(model.checkpoints())
        return _drawn(found, self.where, only_last)

    def _check_ceiling(self, spent: dict[str, Any]) -> None:
        """A model that says it spent more than the protocol allows is stopped here."""
        ceiling = self.benchmark.definition.protocol.ceiling
        for name, most, used in (
            ("steps", ceiling.steps, spent.get("steps", 0)),
            ("epochs", ceiling.epochs, spent.get("epochs", 0)),
            ("device_seconds", ceiling.device_seconds, spent.get("fit_seconds", 0)),
        ):
            if most is not None and isinstance(used, int | float) and used > most:
                raise ModelError(f"{self.where}: fit spent {used:g} {name}, and the protocol allows {most:g}")


@contextmanager
def _closed_after(model: Any, what: str) -> Iterator[None]:
    """Close a model that can be closed; what went wrong before says more than what goes wrong then."""
    close = getattr(model, "close", None)
    try:
        yield
    except BaseException:
        if callable(close):
            with suppress(Exception):
                close()
        raise
    if callable(close):
        with named_errors(what):
            close()


def _file_name(setting: str) -> str:
    """A name for a setting's files. A setting may be called anything and a file may not, so a digest tells them apart,
    also where a file system takes upper and lower case for the same."""
    if not setting:
        return "main"
    return f"{re.sub('[^a-z0-9]+', '-', setting.lower())[:30]}-{sha256(setting.encode()).hexdigest()[:12]}"


def _drawn(found: Any, where: str, only_last: bool) -> Iterable[tuple[str, Model]]:
    names: set[str] = set()
    last: tuple[str, Model] | None = None
    while True:
        with named_errors(f"{where}: checkpoints"):
            item = next(found, None)
            if item is None:
                break
            name, ready = item
        if problem := name_problem(name, "its name") or ("the name was given before" if name in names else ""):
            raise ModelError(f"{where}: checkpoint {name!r}: {problem}")
        names.add(name)
        if len(names) > MAX_CANDIDATES:
            raise ModelError(f"{where}: more than {MAX_CANDIDATES} checkpoints")
        last = (name, ready)
        if not only_last:
            yield last
    if last is None:
        raise ModelError(f"{where}: checkpoints gave none")
    if only_last:
        yield last


def run_seed(
    folder: RunFolder,
    benchmark: Benchmark,
    make: Factory,
    seed: int,
    budget: Budget,
    query: Query | None = None,
    blind: BlindData | None = None,
    settings: Settings | None = None,
) -> None:
    """Train one seed's models, ask them for every part, and keep their predictions in the folder."""
    blind = blind or blind_data(benchmark)
    query = query or Query(benchmark.task, BATCH, TimeLimit(TIME_LIMIT))
    go = _Seed(folder, benchmark, make, seed, budget, query, blind)
    jobs, candidates = [], 0
    rule = benchmark.rule(folder.plan["benchmark"]["selection"])
    for setting, values in (settings or NONE).items():
        jobs.append(go.candidates(setting, values))
        candidates += len(jobs[-1].answered())
        if candidates > MAX_CANDIDATES:
            raise ModelError(f"{go.where}: more than {MAX_CANDIDATES} candidates: give fewer settings or checkpoints")
        if rule.folds is not None:
            final = jobs[-1].answered()[-1]
            folds = enumerate(rule.folds(benchmark, blind))
            jobs += [go.fold(setting, values, fold, number, rule.part, final) for number, fold in folds]
    if query.world.rank == 0:
        folder.finish_seed(seed, jobs)


def _check_adaptation(model: Any, benchmark: Benchmark) -> None:
    if getattr(model, "reset", None) is not None and benchmark.definition.protocol.touch.adaptation is None:
        raise ModelError(
            f"the model {type(model).__name__} has reset(), so it adapts at test time, and the protocol of "
            f"{benchmark.name} does not allow that: evaluate it without, or on a benchmark that does"
        )


def _remarked(remarks: object) -> dict[str, Any]:
    """What a model remarks, without the names of what is measured here."""
    return {name: value for name, value in plain_remarks(remarks).items() if name not in _MEASURED}


_MEASURED = ("fit_seconds", "predict_seconds")
