"""The run: the predictions of one model on one benchmark, read back and checked against their digests.

    run.toml              model, benchmark, environment, usage, and the digests
    predictions.parquet   part, row_id, seed, candidate, prediction, status, scores (predictions.py)
    log.jsonl             events with their times

Until a run is finished its predictions are in `shards/`, and `plan.json` describes it. A killed run resumes where it
stopped; a finished one is immutable: its digests reveal any change.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

from ...core.canonical import compute_identity
from ...core.documents import read_toml
from ...core.errors import BadRun, FarshiftError, shorten_list
from ...core.files import compute_file_sha256
from ...core.settings import get_version
from ...core.text import format_count
from ..benchmark import find_benchmark

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 2


class _Table(pydantic.BaseModel, frozen=True, extra="allow"):
    """A table of run.toml. extra: its other keys."""

    @property
    def extra(self) -> dict[str, Any]:
        return self.model_extra or {}


class BenchmarkTable(_Table):
    """The benchmark of a run. entry_identity: that of its entry, under the scorer of the time; selection: the rule that
    the entry is scored by; extra: its split, the manifest's identity."""

    name: str
    entry_identity: str
    selection: str


class ModelTable(_Table):
    """The model. candidates: every checkpoint x setting, in order; finals: the last checkpoint of each setting; kind:
    `own`, `baseline`, or another origin of the predictions; code: the digest of the model's code; deterministic:
    whether its predictions are declared not to depend on a seed; extra: its settings, its batch size, the runner."""

    name: str
    candidates: tuple[str, ...]
    finals: tuple[str, ...]

    @property
    def kind(self) -> str:
        return str(self.extra.get("kind", ""))

    @property
    def deterministic(self) -> bool:
        return self.extra.get("deterministic") is True

    @property
    def code(self) -> str:
        return str(self.extra.get("code", ""))

    @property
    def limit(self) -> int | None:
        """Rows of each part, in a trial run that boards reject; None for a complete run."""
        stated = self.extra.get("limit")
        return stated if type(stated) is int and stated > 0 else None

    @property
    def left_out(self) -> list[str]:
        """Validation parts that the run's rule does not use, which a model with a single candidate need not predict."""
        stated = self.extra.get("left_out")
        return [*map(str, stated)] if isinstance(stated, list) else []


class BudgetTable(_Table):
    """The budget. steps: set by the user instead of the budget's."""

    name: str
    seeds: tuple[int, ...]
    steps: int | None = None
    device: str = ""


class UsageTable(_Table):
    """The usage of a run. finished: when; seconds: of training and predicting; touched: additional data that training
    used; by_seed: the model's report, by `seed_0`, `seed_1` .."""

    finished: str = ""
    seconds: int | float = 0.0
    touched: tuple[str, ...] = ()
    by_seed: dict[str, dict[str, Any]] = {}


class DigestTable(_Table):
    """sha256 of predictions.parquet, and of the content of the card."""

    predictions: str
    run: str


class RunCard(pydantic.BaseModel, frozen=True):
    """The content of run.toml, one field for each of its tables."""

    format: int
    benchmark: BenchmarkTable
    model: ModelTable
    budget: BudgetTable
    environment: dict[str, Any]
    spent: UsageTable
    digests: DigestTable

    @classmethod
    def from_dict(cls, card: Mapping[str, Any]) -> RunCard:
        """Make a card from a parsed run.toml. `BadRun` if keys are missing or have other types."""
        try:
            return cls.model_validate(card)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise BadRun(f"an invalid run card: {where}: {first['msg']}") from error

    def to_dict(self) -> dict[str, Any]:
        """Return the card in the form of run.toml."""
        tables = self.model_dump(exclude_none=True)
        return {
            name: {key: list(item) if isinstance(item, tuple) else item for key, item in table.items()}
            if isinstance(table, dict)
            else table
            for name, table in tables.items()
        }


@dataclass(frozen=True)
class RunLike:
    """Anything with a run card: a finished run on disk, an entry of a submission. Its properties are short names for
    the most used values."""

    card: RunCard

    @property
    def entry_identity(self) -> str:
        return self.card.benchmark.entry_identity

    @property
    def model(self) -> str:
        return self.card.model.name

    @property
    def budget(self) -> str:
        return self.card.budget.name

    @property
    def steps(self) -> int | None:
        """Steps set by the user instead of the budget's."""
        return self.card.budget.steps

    @property
    def seeds(self) -> tuple[int, ...]:
        return self.card.budget.seeds

    @property
    def selection(self) -> str:
        """The selection rule that the run's entry is scored by."""
        return self.card.benchmark.selection

    @property
    def candidates(self) -> tuple[str, ...]:
        """Every candidate (checkpoint x setting), in order."""
        return self.card.model.candidates

    @property
    def finals(self) -> tuple[str, ...]:
        """The last checkpoint of each setting, in order."""
        return self.card.model.finals

    @property
    def digest(self) -> str:
        return self.card.digests.run


@dataclass(frozen=True)
class Run(RunLike):
    """A finished run, read and checked against its digests."""

    path: Path

    def __repr__(self) -> str:
        return f"Run({self.card.model.name} on {self.benchmark}, budget {self.card.budget.name}: {self.path})"

    @property
    def benchmark(self) -> str:
        return self.card.benchmark.name

    def predictions(self, named: bool = False) -> pa.Table:
        """Return all predictions, one per row, in the format of docs/formats.md. `named`: with a column `name`, the
        name of the predicted class; `FarshiftError` if the benchmark's classes have no names."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pq.read_table(self.path / "predictions.parquet")
        if not named:
            return table
        names = find_benchmark(self.benchmark).definition.task.names
        if not names:
            raise FarshiftError(f"the classes of {self.benchmark} have no names")
        return table.append_column("name", pa.array(names, pa.string()).take(table["prediction"]))


def read_run(path: Path | str) -> Run:
    """Read a finished run. Raises `BadRun` if the path is not a run, or the run is unfinished or was edited.

    >>> import farshift as fs
    >>> run = fs.baseline("modadd97/xi35", "quadratic-mlp")
    >>> fs.read_run(run.path).seeds
    (0, 1, 2, 3, 4)
    """
    path = Path(path)
    if not (path / "run.toml").is_file():
        if (path / "plan.json").is_file():
            done = len(list((path / "shards").glob("seed-*.json")))
            raise BadRun(
                f"{path} is unfinished ({format_count(done, 'seed')} done): repeat the command that started it to "
                "resume"
            )
        raise BadRun(f"{path} is not a run: {_explain_no_run(path)}")
    card = read_card(path / "run.toml")
    predictions = path / "predictions.parquet"
    if not predictions.is_file() or compute_file_sha256(predictions) != card.digests.predictions:
        raise BadRun(f"{predictions} is missing or was edited: its digest is not the one in run.toml")
    return Run(card, path)


def _explain_no_run(path: Path) -> str:
    """Return why a path is not a run folder, and which runs are in it or in the folders of a suite."""
    if not path.is_dir():
        return "it is a file" if path.exists() else "the folder does not exist"
    inside = [str(file.parent) for deep in ("", "*/", "*/*/") for file in sorted(path.glob(f"*/{deep}run.toml"))]
    runs = f"it has {format_count(len(inside), 'run')}: give one of them, {shorten_list(inside)}"
    return runs if inside else "it has no run.toml"


def read_card(path: Path) -> RunCard:
    """Read the run card of a run.toml and check its digest. Raises `BadRun` if it is incomplete or was edited."""
    card = read_toml(path)
    if problem := find_card_problem(card):
        raise BadRun(f"{path}: {problem}")
    try:
        return RunCard.from_dict(card)
    except BadRun as error:
        raise BadRun(f"{path}: {error}") from error


def find_card_problem(card: dict[str, Any]) -> str:
    """Return what is wrong with the content of a run.toml; empty if it is complete and its digest matches."""
    if card.get("format") != FORMAT:
        return f"format {card.get('format')!r} is not {FORMAT}"
    missing = [name for name in RunCard.model_fields if name != "format" and not isinstance(card.get(name), dict)]
    if missing:
        return f"lacks [{'], ['.join(missing)}]"
    digests = card["digests"]
    if not isinstance(digests.get("run"), str) or not isinstance(digests.get("predictions"), str):
        return "lacks its digests"
    try:
        fits = digests["run"] == compute_card_digest(card)
    except (TypeError, ValueError):  # a date or NaN, which no run writes
        fits = False
    return "" if fits else "was edited: its digest does not match its content"


def compute_card_digest(card: dict[str, Any]) -> str:
    """Return sha256 over the content of run.toml without this digest."""
    rest = {key: value for key, value in card.items() if key != "digests"}
    return compute_identity(rest | {"digests": {"predictions": card["digests"]["predictions"]}})


def describe_environment() -> dict[str, Any]:
    """Return versions and platform, which may explain differences; no names, paths or secrets."""
    import numpy
    import pyarrow

    versions = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count() or 0,
        "numpy": numpy.__version__,
        "pyarrow": pyarrow.__version__,
        "farshift": get_version(),
    }
    for name in ("torch", "sklearn", "transformers", "openai"):
        if name in sys.modules:
            versions[name] = str(getattr(sys.modules[name], "__version__", ""))
    return versions
