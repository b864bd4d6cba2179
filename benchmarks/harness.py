"""The harness: the one way in which a model meets a benchmark.

Per seed and setting: a fresh model, trained (if it can be) on the inputs and given labels of `train`, then each of its
checkpoints asked for every part, in batches of inputs alone. The labels that it is scored by are not in this process:
everything is read from the benchmark's handout.
"""

from __future__ import annotations

import inspect
import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..splits.errors import FarshiftError, ModelError
from .answering import named_errors
from .asking import Asking
from .benchmark import MAX_CANDIDATES, MAX_SEEDS, Benchmark, find_benchmark, name_problem
from .device import check_device
from .fingerprint import fingerprint
from .handout import Handout, hand_out
from .making import Factory, factory, model_name
from .model import Budget, Model
from .run import Run, Stopwatch, version
from .run_folder import RunFolder
from .shards import Job
from .time_limit import TimeLimit
from .visible import VisibleRows
from .world import ALONE, World, world

BATCH = 512
TIME_LIMIT = 600.0
"""Seconds that a model may take over one batch."""

Settings = Mapping[str, Mapping[str, Any]]


def evaluate(
    model: Any,
    on: str | Benchmark,
    *,
    seeds: int | Sequence[int] | None = None,
    out: Path | str | None = None,
    budget: str = "full",
    steps: int | None = None,
    device: str = "cpu",
    name: str | None = None,
    batch_size: int = BATCH,
    selection: str | None = None,
    settings: Settings | None = None,
    time_limit: float = TIME_LIMIT,
    code: str | None = None,
    on_hang: Callable[[], None] | None = None,
) -> Run:
    """Evaluate a model on a benchmark and write a run folder.

    model: an object with `predict` (and optionally `fit`), a scikit-learn estimator, a torch module, a function from a
      batch to predictions, or a factory: a class or function called once per seed with those of `seed`, `task`,
      `device` and `prompt` that it takes. What `predict` and `fit` get and give: `benchmarks/model.py`, docs/evaluate.md.
    on: the benchmark's name. seeds: how many (0, 1, 2 ..) or which; the protocol's number by default.
    out: the run folder (a new temporary one by default). An unfinished run found there goes on.
    budget: "full", or "quick" for the protocol's declared short form. steps: given to `fit` as it is.
    name: the model's name on the run card. Predictions do not depend on `batch_size` unless the model's do.
    selection: the rule that chooses among candidates, one that the protocol allows; its first by default.
    settings: named values for the factory (or for an estimator's parameters); each is trained and kept as candidates.
    time_limit: seconds for one batch, 0 for none. on_hang: called where native code does not come back (time_limit.py).
    code: a digest of the model's code; taken of its source by default. An unfinished run goes on only with the same.

    Under `torchrun` every process calls this alike; each predicts its share, and the run is the same to the byte.

    Raises `ModelError` where the model answers wrongly, naming part, batch and row ids; what was answered is kept.
    """
    benchmark = find_benchmark(on) if isinstance(on, str) else on
    if budget not in ("full", "quick"):
        raise FarshiftError(f"budget {budget!r}: use full or quick")
    if batch_size < 1:
        raise FarshiftError(f"batch_size must be at least 1, not {batch_size}")
    check_device(device)
    chosen = seed_numbers(seeds, benchmark, budget)
    spend = Budget(budget, steps, device)
    named = _checked_settings(settings)
    together = world()
    handout = hand_out(benchmark)
    make = factory(model, benchmark.task, device, handout.prompt)
    card: dict[str, Any] = {
        "name": name or model_name(model),
        "kind": "own",
        "code": code or getattr(model, "code", None) or fingerprint(model),
        "batch_size": batch_size,
    }
    if settings:
        card["settings"] = {key: _plain(dict(values)) for key, values in named.items()}
    with begin(benchmark, out, card, spend, chosen, selection, together) as folder:
        teller = Asking(
            benchmark.task,
            batch_size,
            TimeLimit(time_limit, on_hang),
            benchmark.definition.protocol.touch.adaptation,
            together,
        )
        for seed in folder.missing():
            run_seed(folder, benchmark, make, seed, spend, teller, handout, named)
        return folder.finish() if together.rank == 0 else folder.wait_for_finish()


def _checked_settings(settings: Settings | None) -> Settings:
    """The settings by name; one nameless one where there are none."""
    if not settings:
        return {"": {}}
    for key in settings:
        if problem := name_problem(key) or ("/" in key and "it must not hold a /"):
            raise FarshiftError(f"setting {key!r}: {problem}")
    return settings


def seed_numbers(seeds: int | Sequence[int] | None, benchmark: Benchmark, budget: str) -> list[int]:
    """The seeds to run, sorted."""
    if seeds is None:
        seeds = benchmark.seeds(budget)
    numbers = list(range(seeds)) if isinstance(seeds, int) else sorted(set(seeds))
    if not 0 < len(numbers) <= MAX_SEEDS or numbers[0] < 0 or numbers[-1] >= 2**31:
        raise FarshiftError(f"seeds: give 1 to {MAX_SEEDS}, each from 0 to 2147483647")
    return numbers


def begin(
    benchmark: Benchmark,
    out: Path | str | None,
    model: dict[str, Any],
    budget: Budget,
    seeds: list[int],
    selection: str | None = None,
    together: World = ALONE,
) -> AbstractContextManager[RunFolder]:
    """The run folder of a plan, new or taken up again; its lock is held while the context lasts."""
    problem = name_problem(model["name"])
    if problem:
        raise FarshiftError(problem)
    if out is None and together.size > 1:
        raise FarshiftError("under torchrun name a run folder (out=..) that all processes share")
    path = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="farshift-run-"))
    spend: dict[str, Any] = {"name": budget.name, "device": budget.device}
    if budget.steps is not None:
        spend["steps"] = budget.steps
    rule = benchmark.rule(selection)
    plan = {
        "benchmark": {
            "name": benchmark.name,
            "split": benchmark.definition.split,
            "manifest_identity": benchmark.manifest.identity,
            "entry_identity": benchmark.identity(budget.name, budget.steps, rule.name),
            "selection": rule.name,
            "protocol_seeds": benchmark.seeds(budget.name),
        },
        "model": model,
        "budget": spend,
        "seeds": seeds,
        "farshift": version(),
    }
    return RunFolder.begin(path, plan, together)


@dataclass(frozen=True)
class _Seed:
    """One seed of a run on its way."""

    folder: RunFolder
    benchmark: Benchmark
    make: Factory
    seed: int
    budget: Budget
    asking: Asking
    handout: Handout

    @property
    def where(self) -> str:
        return f"{self.benchmark.name}, seed {self.seed}"

    def candidates(self, setting: str, values: Mapping[str, Any]) -> Job:
        """Train a setting's model and ask all its checkpoints for every part."""
        job = self._job(setting or "main")
        if not job.is_done():
            parts = [self.handout.part(part) for part in self.benchmark.predicted_parts]
            val = self.handout.training("id_val") if self.handout.has_part("id_val") else None
            self._go(job, values, lambda: self.handout.training("train"), val, parts, f"{setting}/" if setting else "")
        return job

    def fold(self, setting: str, values: Mapping[str, Any], fold: Any, number: int, part: str, candidate: str) -> Job:
        """Train one model for a selection rule, and ask its last checkpoint alone."""
        job = self._job(f"{setting or 'main'}.{part}.{number}", fold=True)
        if not job.is_done():
            self._go(job, values, lambda: fold.train, None, [replace(fold.asked, name=part)], candidate, only_last=True)
        return job

    def _job(self, name: str, fold: bool = False) -> Job:
        safe = "".join(letter if letter.isalnum() or letter in "._-" else f"%{ord(letter):x}" for letter in name)
        return self.folder.job(self.seed, safe, self.benchmark.task, fold)

    def _go(
        self,
        job: Job,
        values: Mapping[str, Any],
        train: Callable[[], VisibleRows],
        val: VisibleRows | None,
        parts: list[Any],
        prefix: str,
        only_last: bool = False,
    ) -> None:
        with named_errors(f"{self.where}: the model's factory"):
            model = self.make(self.seed, values)
        _check_adaptation(model, self.benchmark)
        spent: dict[str, Any] = {}
        touched: list[str] = []
        watch = Stopwatch()
        if getattr(model, "fit", None) is not None:
            job.mark_trained()
            with named_errors(f"{self.where}: fit"):
                remarks = model.fit(train(), val, self.budget, **self._opened(model, touched))  # type: ignore[attr-defined]
            spent |= _plain(remarks)
            spent["fit_seconds"] = watch.seconds()
            self._check_ceiling(spent)
        watch = Stopwatch()
        for checkpoint, ready in self._checkpoints(model, only_last):
            candidate = prefix if only_last else f"{prefix}{checkpoint}"
            for inputs in parts:
                which = "" if candidate == "last" else f" {candidate}"
                label = f"{self.benchmark.name} {inputs.name} seed {self.seed}{which}"
                self.asking.ask(ready, candidate, inputs, job, label)
        spent |= _plain(_remarks(model))
        spent["predict_seconds"] = watch.seconds()
        if self.asking.world.rank == 0:
            self.folder.finish_job(job, spent, touched)

    def _opened(self, model: Any, touched: list[str]) -> dict[str, Any]:
        """What `fit` asks for by name beyond training and validation rows: given where the protocol opens it."""
        touch = self.benchmark.definition.protocol.touch
        takes = inspect.signature(model.fit).parameters
        opened: dict[str, Any] = {}
        if "ood_val" in takes:
            given = touch.ood_val_labels and self.handout.has_part("ood_val")
            opened["ood_val"] = self.handout.training("ood_val") if given else None
        if "unlabelled" in takes:
            opened["unlabelled"] = self.handout.part("ood_test").batch(slice(None)) if touch.ood_test_inputs else None
        touched += [name for name, value in opened.items() if value is not None]
        return opened

    def _checkpoints(self, model: Any, only_last: bool) -> Iterable[tuple[str, Model]]:
        if not hasattr(model, "checkpoints"):
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


def _drawn(found: Any, where: str, only_last: bool) -> Iterable[tuple[str, Model]]:
    names: set[str] = set()
    last: tuple[str, Model] | None = None
    while True:
        with named_errors(f"{where}: checkpoints"):
            item = next(found, None)
            if item is None:
                break
            name, ready = item
        if problem := name_problem(name) or ("the name was given before" if name in names else ""):
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
    asking: Asking | None = None,
    handout: Handout | None = None,
    settings: Settings | None = None,
) -> None:
    """Train one seed's models, ask them for every part, and keep their predictions in the folder."""
    handout = handout or hand_out(benchmark)
    asking = asking or Asking(benchmark.task, BATCH, TimeLimit(TIME_LIMIT))
    go = _Seed(folder, benchmark, make, seed, budget, asking, handout)
    jobs = []
    rule = benchmark.rule(folder.plan["benchmark"]["selection"])
    for setting, values in (settings or {"": {}}).items():
        jobs.append(go.candidates(setting, values))
        if rule.folds is not None:
            final = jobs[-1].final()
            folds = enumerate(rule.folds(benchmark, handout))
            jobs += [go.fold(setting, values, fold, number, rule.part, final) for number, fold in folds]
    if asking.world.rank == 0:
        folder.finish_seed(seed, jobs)


def _check_adaptation(model: Any, benchmark: Benchmark) -> None:
    if hasattr(model, "reset") and benchmark.definition.protocol.touch.adaptation is None:
        raise ModelError(
            f"a {type(model).__name__} has reset(), so it adapts at test time, and the protocol of {benchmark.name} "
            "does not allow that: evaluate it without, or on a benchmark that does"
        )


def _remarks(model: Any) -> object:
    found = getattr(model, "remarks", None)
    with named_errors("the model's remarks"):
        return found() if callable(found) else None


def _plain(remarks: object) -> dict[str, Any]:
    """What of a model's remarks goes on the run card: finite numbers and short texts."""
    if not isinstance(remarks, Mapping):
        return {}
    found: dict[str, Any] = {}
    for key, value in remarks.items():
        if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            found[str(key)[:100]] = value
        elif isinstance(value, str | float):
            found[str(key)[:100]] = str(value)[:200]
    return found
