"""The run card, run.toml: the model and benchmark of a run, its environment, and its usage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from ...core.errors import BadRun


@dataclass(frozen=True)
class BenchmarkTable:
    """The benchmark of a run. identity: that of its entry, under the scorer of the time; selection: the rule that the
    entry is scored by; extra: other keys of the card (its split, the manifest's identity)."""

    name: str
    entry_identity: str
    selection: str
    extra: Mapping[str, Any]


@dataclass(frozen=True)
class ModelTable:
    """The model. candidates: every checkpoint x setting, in order; finals: the last checkpoint of each setting; extra:
    other keys of the card (its settings, its batch size, the runner)."""

    name: str
    candidates: tuple[str, ...]
    finals: tuple[str, ...]
    extra: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """`own`, `baseline`, or another origin of the predictions."""
        return str(self.extra.get("kind", ""))

    @property
    def deterministic(self) -> bool:
        """Whether its predictions are declared not to depend on a seed."""
        return self.extra.get("deterministic") is True

    @property
    def code(self) -> str:
        """The digest of the model's code."""
        return str(self.extra.get("code", ""))


@dataclass(frozen=True)
class BudgetTable:
    """The budget. steps: set by the user instead of the budget's."""

    name: str
    seeds: tuple[int, ...]
    steps: int | None = None
    device: str = ""


@dataclass(frozen=True)
class UsageTable:
    """The usage of a run. finished: when; seconds: of training and predicting; touched: additional data that training
    used; by_seed: the model's report, by `seed_0`, `seed_1` .."""

    finished: str = ""
    seconds: float = 0.0
    touched: tuple[str, ...] = ()
    by_seed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class DigestTable:
    """sha256 of predictions.parquet, and of the content of the card."""

    predictions: str
    run: str


@dataclass(frozen=True)
class RunCard:
    """The content of run.toml, one field for each of its tables."""

    format: int
    benchmark: BenchmarkTable
    model: ModelTable
    budget: BudgetTable
    environment: Mapping[str, Any]
    spent: UsageTable
    digests: DigestTable

    @classmethod
    def from_dict(cls, card: Mapping[str, Any]) -> RunCard:
        """Make a card from a parsed run.toml. `BadRun` if required keys are missing."""
        try:
            tables = {name: _read_table(kind, card[name]) for name, kind in _TABLES.items()}
            return cls(format=card["format"], environment=card["environment"], **tables)
        except (KeyError, TypeError) as error:
            raise BadRun(f"an invalid run card: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Return the card in the form of run.toml."""
        tables = {name: _write_table(getattr(self, name)) for name in _TABLES}
        return {"format": self.format, "environment": dict(self.environment)} | tables


_TABLES: dict[str, Any] = {
    "benchmark": BenchmarkTable,
    "model": ModelTable,
    "budget": BudgetTable,
    "spent": UsageTable,
    "digests": DigestTable,
}

T = TypeVar("T")


def _read_table(kind: type[T], table: Mapping[str, Any]) -> T:
    """Read a table by the fields of its class; other keys are its `extra`, if it has that."""
    names = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    known = {name: tuple(value) if isinstance(value, list) else value for name, value in table.items() if name in names}
    rest = {name: value for name, value in table.items() if name not in names}
    return kind(**known, **({"extra": rest} if "extra" in names else {}))


def _write_table(table: Any) -> dict[str, Any]:
    written: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in vars(table).items()
    }
    extra: Mapping[str, Any] = written.pop("extra", {})
    return {**extra} | {name: value for name, value in written.items() if value is not None}
