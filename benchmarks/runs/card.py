"""The run card, run.toml: the model and benchmark of a run, its environment, and its usage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import BadRun


@dataclass(frozen=True)
class BenchmarkTable:
    """The benchmark of a run. identity: that of its entry, under the scorer of the time; selection: the rule that the
    entry is scored by; more: other keys of the card (its split, the manifest's identity)."""

    name: str
    entry_identity: str
    selection: str
    extra: Mapping[str, Any]


@dataclass(frozen=True)
class ModelTable:
    """The model. candidates: every checkpoint x setting, in order; finals: the last checkpoint of each setting; more:
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
    steps: int | None
    device: str


@dataclass(frozen=True)
class UsageTable:
    """The usage of a run. finished: when; seconds: of training and predicting; touched: additional data that training
    used; by_seed: the model's report, by `seed_0`, `seed_1` .."""

    finished: str
    seconds: float
    touched: tuple[str, ...]
    by_seed: Mapping[str, Mapping[str, Any]]


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
        benchmark, model, budget = dict(card["benchmark"]), dict(card["model"]), card["budget"]
        spent, digests = card["spent"], card["digests"]
        try:
            return cls(
                format=card["format"],
                benchmark=BenchmarkTable(
                    name=benchmark.pop("name"),
                    entry_identity=benchmark.pop("entry_identity"),
                    selection=benchmark.pop("selection"),
                    extra=benchmark,
                ),
                model=ModelTable(
                    name=model.pop("name"),
                    candidates=tuple(model.pop("candidates")),
                    finals=tuple(model.pop("finals")),
                    extra=model,
                ),
                budget=BudgetTable(
                    budget["name"], tuple(budget["seeds"]), budget.get("steps"), budget.get("device", "")
                ),
                environment=card["environment"],
                spent=UsageTable(
                    finished=spent.get("finished", ""),
                    seconds=spent.get("seconds", 0.0),
                    touched=tuple(spent.get("touched", ())),
                    by_seed=spent.get("by_seed", {}),
                ),
                digests=DigestTable(digests["predictions"], digests["run"]),
            )
        except (KeyError, TypeError) as error:
            raise BadRun(f"an invalid run card: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Return the card in the form of run.toml."""
        benchmark, model, budget, spent = self.benchmark, self.model, self.budget, self.spent
        return {
            "format": self.format,
            "benchmark": {
                **benchmark.extra,
                "name": benchmark.name,
                "entry_identity": benchmark.entry_identity,
                "selection": benchmark.selection,
            },
            "model": {
                **model.extra,
                "name": model.name,
                "candidates": list(model.candidates),
                "finals": list(model.finals),
            },
            "budget": {
                "name": budget.name,
                "seeds": list(budget.seeds),
                "device": budget.device,
                **({} if budget.steps is None else {"steps": budget.steps}),
            },
            "environment": dict(self.environment),
            "spent": {
                "finished": spent.finished,
                "seconds": spent.seconds,
                "touched": list(spent.touched),
                "by_seed": dict(spent.by_seed),
            },
            "digests": {"predictions": self.digests.predictions, "run": self.digests.run},
        }
