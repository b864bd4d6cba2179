"""The run: what evaluating one model on one benchmark writes, read back and checked against its digests.

    run.toml              what was run, in which environment, what it spent, and the digests
    predictions.parquet   part, row_id, seed, candidate, prediction, status, scores (predictions.py)
    log.jsonl             what happened when

While a run is under way what was answered lies in `shards/`, and `plan.json` says what the run is. A killed run goes on
where it stopped; a finished one is immutable: its digests show any change.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.canonical import compute_identity
from ...core.errors import BadRun, FarshiftError, shorten_list
from ...core.files import compute_file_sha256
from ...core.listings.plural import format_count
from ...core.plugins import read_toml
from ...core.version import get_version
from ..benchmark import find_benchmark
from .card import RunCard

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 2
_TABLES = ("benchmark", "model", "budget", "environment", "spent", "digests")


@dataclass(frozen=True)
class RunLike:
    """Whatever has a run card: a finished run on disk, an entry of a submission. Its properties are short
    names for what is needed most often."""

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
        """Steps set by hand instead of the budget's."""
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

    @property
    def benchmark(self) -> str:
        return self.card.benchmark.name

    def predictions(self, named: bool = False) -> pa.Table:
        """Every prediction, a row each, as docs/formats.md has them. `named`: with a column `name`, what the predicted
        class is called; `FarshiftError` where the benchmark's classes have no names."""
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
    """A finished run. Raises `BadRun` where it is not one, is unfinished, or was edited.

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
                "resume it"
            )
        raise BadRun(f"{path} is not a run: {_suggest_runs(path)}")
    card = read_card(path / "run.toml")
    predictions = path / "predictions.parquet"
    if not predictions.is_file() or compute_file_sha256(predictions) != card.digests.predictions:
        raise BadRun(f"{predictions} is missing or was edited: its digest is not the one in run.toml")
    return Run(card, path)


_DEEP = 3
"""How deep below a folder runs are looked for: a suite's lie in it by benchmark and baseline."""


def _suggest_runs(path: Path) -> str:
    """Why a path is no run's folder, and which runs lie in it."""
    if not path.is_dir():
        return "it is a file" if path.exists() else "there is no such folder"
    inside = sorted(file.parent for deep in range(1, _DEEP + 1) for file in path.glob(f"{'*/' * deep}run.toml"))
    if not inside:
        return "it has no run.toml"
    return (
        f"it holds {format_count(len(inside), 'run')}: name one of them, "
        f"{shorten_list([str(folder) for folder in inside])}"
    )


def read_card(path: Path) -> RunCard:
    """The run card in a run.toml, checked against its digest. Raises `BadRun` where it is not whole or was edited."""
    card = read_toml(path)
    if problem := find_card_problem(card):
        raise BadRun(f"{path}: {problem}")
    try:
        return RunCard.from_dict(card)
    except BadRun as error:
        raise BadRun(f"{path}: {error}") from error


def find_card_problem(card: dict[str, Any]) -> str:
    """What is wrong with the content of a run.toml; empty if it is whole and its digest fits."""
    if card.get("format") != FORMAT:
        return f"format {card.get('format')!r} is not {FORMAT}"
    missing = [name for name in _TABLES if not isinstance(card.get(name), dict)]
    if missing:
        return f"lacks [{'], ['.join(missing)}]"
    digests = card["digests"]
    if not isinstance(digests.get("run"), str) or not isinstance(digests.get("predictions"), str):
        return "lacks its digests"
    try:
        fits = digests["run"] == compute_card_digest(card)
    except (TypeError, ValueError):  # a date, NaN: nothing that a run writes
        fits = False
    return "" if fits else "was edited: its digest does not fit what it says"


def compute_card_digest(card: dict[str, Any]) -> str:
    """sha256 over all that run.toml says except this digest itself."""
    rest = {key: value for key, value in card.items() if key != "digests"}
    return compute_identity(rest | {"digests": {"predictions": card["digests"]["predictions"]}})


def describe_environment() -> dict[str, Any]:
    """What may explain a difference: versions and platform. Never a name, a path or a secret."""
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
