"""The harness: the one way in which a model meets a benchmark.

Per seed: a fresh model, trained (if it can be) on the inputs and given labels of `train`, then asked for every part
that the benchmark scores, in batches of inputs alone. Labels of evaluated parts are never handed over.
"""

from __future__ import annotations

import copy
import inspect
import math
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..loaders.part import Part
from ..loaders.progress import advance
from ..splits.draws import shuffled
from ..splits.errors import FarshiftError, ModelError
from ..splits.plugins import PACKAGE
from .adapters import adapted
from .benchmark import MAX_SEEDS, MAX_TEXT, Benchmark, find_benchmark, name_problem
from .device import check_device
from .fingerprint import fingerprint
from .model import Budget, Model, Task
from .run import Run, Stopwatch, version
from .run_folder import RunFolder

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 512

Factory = Callable[[int], Model]


@dataclass(frozen=True)
class VisibleRows:
    """What training sees of a part: copies of the inputs, the label as given, and the weight. Nothing else of the
    part can be reached from it."""

    columns: dict[str, NDArray[Any]]
    stream: str = "rows"

    @classmethod
    def of(cls, part: Part, task: Task) -> VisibleRows:
        columns = part.numpy([*task.inputs, task.label])
        columns = {name: np.array(values) for name, values in columns.items()}
        weight = part.carried.get("weight", np.ones(len(part), np.int64))
        return cls(columns | {"weight": np.array(weight)}, f"{part.identity}/{part.name}")

    def numpy(self) -> dict[str, NDArray[Any]]:
        """Columns by name, first axis the row; text as object arrays of `str`."""
        return dict(self.columns)

    def __len__(self) -> int:
        return len(self.columns["weight"])

    def batches(
        self, batch_size: int, seed: int | None = None, epoch: int = 0, drop_last: bool = False
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """The columns in batches of `batch_size` rows, each row once: in stored order, or shuffled by (seed, epoch)."""
        rows = np.arange(len(self), dtype=np.uint64)
        order = rows.astype(np.int64) if seed is None else shuffled(f"{self.stream}/{seed}/{epoch}", rows)
        stop = len(self) - len(self) % batch_size if drop_last else len(self)
        for start in range(0, stop, batch_size):
            here = order[start : start + batch_size]
            yield {name: values[here] for name, values in self.columns.items()}


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
    code: str | None = None,
) -> Run:
    """Evaluate a model on a benchmark and write a run folder.

    model: an object with `predict` (and optionally `fit`), a scikit-learn estimator, or a factory: a class or
      function called once per seed with those of `seed`, `task` and `device` that it takes.
      predict(batch): `batch` maps each input to an array (text: object array of str); the answer is one class (a whole
      number) or one text per row, in order. fit(train, val, budget): `train.numpy()` and `train.batches(batch_size,
      seed, epoch)` give the inputs, the label as given and `weight`; `val` is the same for `id_val`, or None; `budget`
      has `name`, `steps` (None unless set by hand) and `device`. docs/evaluate.md has an example.
    on: the benchmark's name. seeds: how many (0, 1, 2 ..) or which; the protocol's number by default.
    out: the run folder (a new temporary one by default). An unfinished run found there goes on.
    budget: "full", or "quick" for the protocol's declared short form. steps: given to `fit` as it is.
    name: the model's name on the run card. Predictions do not depend on `batch_size` unless the model's do.
    code: a digest of the model's code; taken of its source by default. An unfinished run goes on only with the same.

    Raises `ModelError` where the model answers wrongly, naming part, batch and row ids; finished seeds are kept.
    """
    benchmark = find_benchmark(on) if isinstance(on, str) else on
    if budget not in ("full", "quick"):
        raise FarshiftError(f"budget {budget!r}: use full or quick")
    if batch_size < 1:
        raise FarshiftError(f"batch_size must be at least 1, not {batch_size}")
    check_device(device)
    chosen = seed_numbers(seeds, benchmark, budget)
    spend = Budget(budget, steps, device)
    make = factory(model, benchmark.task, device)
    card = {
        "name": name or model_name(model),
        "kind": "own",
        "code": fingerprint(model) if code is None else code,
        "batch_size": batch_size,
    }
    with begin(benchmark, out, card, spend, chosen) as folder:
        for seed in folder.missing():
            run_seed(folder, benchmark, make, seed, spend, batch_size)
        return folder.finish()


def seed_numbers(seeds: int | Sequence[int] | None, benchmark: Benchmark, budget: str) -> list[int]:
    """The seeds to run, sorted."""
    if seeds is None:
        seeds = benchmark.seeds(budget)
    numbers = list(range(seeds)) if isinstance(seeds, int) else sorted(set(seeds))
    if not 0 < len(numbers) <= MAX_SEEDS or numbers[0] < 0 or numbers[-1] >= 2**31:
        raise FarshiftError(f"seeds: give 1 to {MAX_SEEDS}, each from 0 to 2147483647")
    return numbers


def begin(
    benchmark: Benchmark, out: Path | str | None, model: dict[str, Any], budget: Budget, seeds: list[int]
) -> AbstractContextManager[RunFolder]:
    """The run folder of a plan, new or taken up again; its lock is held while the context lasts."""
    problem = name_problem(model["name"])
    if problem:
        raise FarshiftError(problem)
    benchmark.check()
    path = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="farshift-run-"))
    spend: dict[str, Any] = {"name": budget.name, "device": budget.device}
    if budget.steps is not None:
        spend["steps"] = budget.steps
    plan = {
        "benchmark": {
            "name": benchmark.name,
            "split": benchmark.definition.split,
            "manifest_identity": benchmark.manifest.identity,
            "entry_identity": benchmark.identity(budget.name, budget.steps),
            "protocol_seeds": benchmark.seeds(budget.name),
        },
        "model": model,
        "budget": spend,
        "seeds": seeds,
        "farshift": version(),
    }
    return RunFolder.begin(path, plan)


def run_seed(
    folder: RunFolder, benchmark: Benchmark, make: Factory, seed: int, budget: Budget, batch_size: int = BATCH
) -> None:
    """Train one seed's model, ask it for every evaluated part, and keep its predictions in the folder."""
    task = benchmark.task
    with _named_errors(f"{benchmark.name}, seed {seed}: the model's factory"):
        model = make(seed)
    spent: dict[str, Any] = {}
    watch = Stopwatch()
    fit = getattr(model, "fit", None)
    if fit is not None:
        train = VisibleRows.of(benchmark.part("train"), task)
        val = VisibleRows.of(benchmark.part("id_val"), task) if benchmark.has_part("id_val") else None
        with _named_errors(f"{benchmark.name}, seed {seed}: fit"):
            remarks = fit(train, val, budget)
        spent |= _plain(remarks)
        spent["fit_seconds"] = watch.seconds()
    watch = Stopwatch()
    tables = [
        predicted(model, benchmark.part(part), part, task, seed, batch_size) for part in benchmark.predicted_parts
    ]
    spent["predict_seconds"] = watch.seconds()
    import pyarrow as pa

    folder.keep(seed, pa.concat_tables(tables), spent)


def _plain(remarks: object) -> dict[str, Any]:
    """What of a fit's remarks goes on the run card: finite numbers and short texts."""
    if not isinstance(remarks, dict):
        return {}
    found: dict[str, Any] = {}
    for key, value in remarks.items():
        if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            found[str(key)[:100]] = value
        elif isinstance(value, str | float):
            found[str(key)[:100]] = str(value)[:200]
    return found


@contextmanager
def _named_errors(where: str) -> Iterator[None]:
    """Whatever the user's code raises becomes a `ModelError` that says where; an exit is no way out."""
    try:
        yield
    except FarshiftError:
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(f"{where} raised {type(error).__name__}: {_first_line(error)}{_place(error)}") from error


def _place(error: BaseException) -> str:
    """Where in the user's own code an error arose, such as ` (my_model.py:12)`."""
    rooms = [str(room.parent) for room in PACKAGE.glob("*/__init__.py")]
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith((*rooms, "<")) and "site-packages" not in f.filename]
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


def predicted(model: Model, part: Part, name: str, task: Task, seed: int, batch_size: int) -> pa.Table:
    """The model's predictions for a part: part, row_id, seed, candidate, prediction; in the part's stored order."""
    import pyarrow as pa

    found: list[NDArray[Any]] = []
    ids = part.row_ids
    done = 0
    for number, batch in enumerate(part.batches(batch_size, columns=task.inputs)):
        rows = ids[done : done + batch_size]
        where = f"{name}, batch {number} (rows {rows[0]:016x} .. {rows[-1]:016x})"
        given = {key: np.array(values) for key, values in batch.items()}  # copies: the model may write into them
        with _named_errors(f"predict on {where}"):
            answer = model.predict(given)
        found.append(checked(answer, rows, where, task))
        done += len(rows)
        advance(f"{part.split} {name} seed {seed}", done, len(part))
    prediction = pa.array(np.concatenate(found), pa.int64() if task.type == "classification" else pa.string())
    count = len(ids)
    columns = {
        "part": pa.repeat(name, count),
        "row_id": ids,
        "seed": pa.repeat(pa.scalar(seed, pa.int32()), count),
        "candidate": pa.repeat("last", count),
        "prediction": prediction,
    }
    return pa.table(columns)


def checked(answer: Any, rows: NDArray[np.uint64], where: str, task: Task) -> NDArray[Any]:
    """The answer as an array of one class or text per row; `ModelError` says what is wrong with it, and where."""
    try:
        count = len(answer)
    except TypeError:
        raise ModelError(
            f"predict gave {type(answer).__name__} instead of {len(rows)} predictions on {where}"
        ) from None
    if count != len(rows):
        raise ModelError(f"predict gave {count} predictions for {len(rows)} rows on {where}")
    return _classes(answer, rows, where, task) if task.type == "classification" else _texts(answer, rows, where)


def _classes(answer: Any, rows: NDArray[np.uint64], where: str, task: Task) -> NDArray[np.int64]:
    with _named_errors(f"reading the {type(answer).__name__} that predict gave on {where}"):
        values = np.asarray(answer)
    if values.ndim != 1:
        raise ModelError(f"predict gave shape {values.shape}, expected ({len(rows)},): one class a row, on {where}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values))
        raise ModelError(f"predict gave NaN or infinity for row {rows[bad[0]]:016x} ({len(bad)} rows) on {where}")
    if values.dtype.kind not in "iu":
        raise ModelError(f"predict gave dtype {values.dtype}, expected whole numbers (classes), on {where}")
    outside = np.flatnonzero((values < 0) | (values >= (task.classes or 0)))
    if len(outside):
        raise ModelError(
            f"predict gave class {values[outside[0]]} for row {rows[outside[0]]:016x}, "
            f"not one of 0..{(task.classes or 0) - 1}, on {where}"
        )
    return values.astype(np.int64)


def _texts(answer: Any, rows: NDArray[np.uint64], where: str) -> NDArray[Any]:
    values = np.empty(len(rows), object)
    values[:] = list(answer)
    wrong = [place for place, value in enumerate(values) if not isinstance(value, str)]
    if wrong:
        kind = type(values[wrong[0]]).__name__
        raise ModelError(f"predict gave {kind} instead of text for row {rows[wrong[0]]:016x} on {where}")
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        raise ModelError(f"predict gave text that is not valid Unicode on {where}") from None
    longest = max(map(len, values), default=0)
    if longest > MAX_TEXT:
        raise ModelError(f"predict gave a text of {longest} characters (at most {MAX_TEXT}) on {where}")
    return values


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or "no message").splitlines()[0][:300]


def factory(model: Any, task: Task, device: str = "cpu") -> Factory:
    """A function from seed to a fresh model."""
    if adapted(model, task, 0) is not None:
        return lambda seed: adapted(model, task, seed)  # type: ignore[return-value]
    if isinstance(model, type) or not hasattr(model, "predict"):
        if not callable(model):
            raise ModelError(f"a {type(model).__name__} is no model: it has no predict, and is no factory")
        return lambda seed: _made(model, seed, task, device)
    return lambda seed: copy.deepcopy(model) if hasattr(model, "fit") else model


def _made(make: Callable[..., Any], seed: int, task: Task, device: str) -> Model:
    offered = {"seed": seed, "task": task, "device": device}
    try:
        taken = inspect.signature(make).parameters
    except (TypeError, ValueError):
        taken = inspect.signature(lambda: None).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())
    made = make(**{key: value for key, value in offered.items() if open_ended or key in taken})
    ready = adapted(made, task, seed) or made
    if not isinstance(ready, Model):
        raise ModelError(f"the factory gave a {type(made).__name__}, which has no predict")
    return ready


def model_name(model: Any) -> str:
    """A name for the run card: the function's, class's or object's own; a pipeline's steps."""
    if steps := getattr(model, "steps", None):
        return "+".join(type(step).__name__ for _, step in steps)[:100]
    return str(getattr(model, "__name__", None) or type(model).__name__)
