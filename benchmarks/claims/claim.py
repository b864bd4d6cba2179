"""What a claim is: one TOML file, checked without importing torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...core.canonical import compute_identity
from ...core.errors import BadDefinition, UnknownName
from ...core.plugins import find_files_by_name, read_definition
from ...splits.manifest import Kind

CLAIMS_FOLDER = "baselines/claims"

Named = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Setting = bool | int | float | str | list[int]
Mark = Literal["seen", "from memory"]
DECIDES = ("runs", "quantities", "published", "premises", "rules")
"""The tables of a claim that its verdict hangs on, but for what they say of the short form."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PublishedResult(_Strict):
    """What the paper says: a number, or a finding in words."""

    says: str = ""
    value: int | float | str | None = None
    mark: Mark
    """Whether the number was seen in a source. What is from memory is compared with, and decides nothing."""
    where: str

    @model_validator(mode="after")
    def _check_content(self) -> PublishedResult:
        if not self.says and self.value is None:
            raise ValueError("give value, or says")
        return self


class QuickOverrides(_Strict):
    """What is otherwise of a run in the quick form."""

    seeds: Annotated[int, Field(gt=0)] = 2
    steps: Annotated[int, Field(gt=0)] | None = None
    search: Annotated[int, Field(ge=2)] | None = None


class TrainedBaseline(_Strict):
    """A baseline on a benchmark, trained for the claim; or, `recorded`, the result of it that ships."""

    recipe: str
    on: str
    settings: dict[str, Setting] = {}
    """In which it differs from the recipe."""
    budget: Literal["full", "quick"] = "quick"
    steps: Annotated[int, Field(gt=0)] | None = None
    seeds: Annotated[int, Field(gt=0)] = 5
    search: Annotated[int, Field(ge=2)] | None = None
    """How many settings are tried beside each other: the recipe's, and others drawn from the algorithm's published
    ranges as by `farshift run --search`. Its `settings` are then those of every draw that names no other."""
    selection: str | None = None
    """The rule that chooses among candidates, where a score names no other; by default the protocol's."""
    recorded: bool = False
    quick: QuickOverrides = QuickOverrides()

    @model_validator(mode="after")
    def _check_settings(self) -> TrainedBaseline:
        if self.recorded and self.model_fields_set - {"recipe", "on", "recorded"}:
            raise ValueError("a recorded run has its own settings, budget and seeds: give recipe and on alone")
        if self.quick.search and not self.search:
            raise ValueError("quick.search: the run has no search")
        return self


class Score(_Strict):
    """A run's score on a view, by the benchmark's first metric or another of its metrics, on all rows or one group."""

    sort: Literal["score"]
    run: Named
    view: str = "ood"
    metric: str = ""
    group: str = ""
    rule: str = ""
    """The selection rule that chooses among the run's candidates; by default the run's own. `oracle` chooses by the
    shifted test rows, which no entry may."""


class Difference(_Strict):
    """One score minus another, or the best of several: paired where both are of the same rows."""

    sort: Literal["difference"]
    left: Named
    right: Named


class BestScore(_Strict):
    """For each seed the best of several scores on the same rows: what choosing by these rows' labels gives, as where a
    few of them say which of two hypotheses is meant."""

    sort: Literal["best"]
    scores: Annotated[list[Named], Field(min_length=2)]


class RecoveredShare(_Strict):
    """The share of the gap between two scores that a third one closes."""

    sort: Literal["recovered"]
    score: Named
    floor: Named
    ceiling: Named


class Slope(_Strict):
    """The least-squares slope of scores along x."""

    sort: Literal["slope"]
    x: Annotated[list[float], Field(min_length=2)]
    scores: Annotated[list[Named], Field(min_length=2)]

    @model_validator(mode="after")
    def _as_many(self) -> Slope:
        if len(self.x) != len(self.scores) or len(set(self.x)) < 2:
            raise ValueError("give one x for each score, two different ones at least")
        return self


class ScoreColumn(_Strict):
    """A column of the recorded results: a view of a benchmark."""

    on: str
    view: Literal["id", "ood", "gap"] = "ood"


class RankCorrelation(_Strict):
    """Kendall's tau-b between two columns of the recorded results, over the baselines that are in both."""

    sort: Literal["rank_correlation"]
    left: ScoreColumn
    right: ScoreColumn
    without: list[str] = []
    """Baselines left out, such as those that answer alike whatever is asked."""


class DiagnosticCorrelation(_Strict):
    """Kendall's tau-b between what a diagnostic says of recorded baselines and their OOD scores on one benchmark, over
    the baselines that have both; a loss is turned round, so that above 0 more of it goes with better scores."""

    sort: Literal["diagnostic_correlation"]
    diagnostic: str
    """Such as `sharpness.worst`, or `disagreement.ood`, which recorded answers have by themselves."""
    on: str


class Fact(_Strict):
    """A measure of a split's rows, which no training enters."""

    sort: Literal["fact"]
    measure: str
    split: str
    arguments: dict[str, Setting] = {}


Quantity = Annotated[
    Score | Difference | BestScore | RecoveredShare | Slope | RankCorrelation | DiagnosticCorrelation | Fact,
    Field(discriminator="sort"),
]


class Within(_Strict):
    """The quantity lies within `by` of the published value."""

    shape: Literal["within"]
    quantity: Named
    published: Named
    by: Annotated[float, Field(gt=0)]


class LowerBound(_Strict):
    """The quantity is `limit` or more."""

    shape: Literal["at_least"]
    quantity: Named
    limit: float


class UpperBound(_Strict):
    """The quantity is `limit` or less."""

    shape: Literal["at_most"]
    quantity: Named
    limit: float


class Positive(_Strict):
    """The quantity is greater than zero."""

    shape: Literal["positive"]
    quantity: Named


class Equal(_Strict):
    """A fact is the published value exactly."""

    shape: Literal["equal"]
    quantity: Named
    published: Named


class Order(_Strict):
    """Each score is greater than the next, by more than `by`."""

    shape: Literal["order"]
    quantities: Annotated[list[Named], Field(min_length=2)]
    by: Annotated[float, Field(ge=0)] = 0.0


Rule = Annotated[Within | LowerBound | UpperBound | Positive | Equal | Order, Field(discriminator="shape")]


class QuickForm(_Strict):
    """The short form, which checks the direction only. By default the rules are those of the claim, but `within`."""

    rules: list[Rule] = []
    skip: list[Named] = []
    """Runs that the short form does without."""


class Cost(_Strict):
    """Minutes of one CPU core, and of one GPU, that the claim takes in full; the first without a GPU."""

    cpu_minutes: Annotated[float, Field(ge=0)]
    gpu_minutes: Annotated[float, Field(ge=0)] | None = None


class Claim(_Strict):
    """A published claim, what is run to check it, and the rule that judges it. Several rules hold together or not."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    title: str
    kind: Kind | Literal["any"]
    citation: str
    notes: str = ""
    """In which our setting differs; why it fails, where it does, and what was tried."""
    cost: Cost
    published: Annotated[dict[Named, PublishedResult], Field(min_length=1)]
    runs: dict[Named, TrainedBaseline] = {}
    quantities: Annotated[dict[Named, Quantity], Field(min_length=1)]
    premises: list[Rule] = []
    """What must hold for the setting to be the claim's, such as that training succeeded."""
    rules: Annotated[list[Rule], Field(min_length=1)]
    quick: QuickForm = QuickForm()

    @model_validator(mode="after")
    def _names(self) -> Claim:
        for name, quantity in self.quantities.items():
            if isinstance(quantity, Score):
                _check_exists("run", quantity.run, self.runs, f"quantities.{name}")
            for other in iterate_component_scores(quantity):
                _check_exists("quantity", other, self.quantities, f"quantities.{name}")
                parts = Score | BestScore if isinstance(quantity, Difference) else Score
                if not isinstance(self.quantities[other], parts):
                    raise ValueError(f"quantities.{name}: {other} is no score")
        for rule in (*self.premises, *self.rules, *self.quick.rules):
            for quantity_name in list_judged_quantities(rule):
                _check_exists("quantity", quantity_name, self.quantities, "rules")
            if isinstance(rule, Within | Equal):
                _check_exists("published value", rule.published, self.published, "rules")
                value = self.published[rule.published].value
                if value is None or (isinstance(rule, Within) and isinstance(value, str)):
                    raise ValueError(f"rules: published.{rule.published} has no number to compare with")
            if isinstance(rule, Order) and not all(isinstance(self.quantities[q], Score) for q in rule.quantities):
                raise ValueError("rules: order is of scores")
        for run in self.quick.skip:
            _check_exists("run", run, self.runs, "quick.skip")
        if not self.quick_rules():
            raise ValueError("quick: its rules would all be `within`: give quick.rules that judge the direction")
        return self

    def quick_rules(self) -> list[Rule]:
        """The rules of the short form."""
        return self.quick.rules or [rule for rule in self.rules if not isinstance(rule, Within)]

    @property
    def mark(self) -> Mark:
        """`from memory` where nothing was seen in a source, or a rule rests on a number that was not."""
        named_by = {rule.published for rule in self.rules if isinstance(rule, Within | Equal)}
        decisive = [self.published[name] for name in named_by] or list(self.published.values())
        some_seen = any(published_value.mark == "seen" for published_value in decisive)
        all_seen = all(published_value.mark == "seen" for published_value in decisive)
        return "seen" if (all_seen if named_by else some_seen) else "from memory"

    @property
    def recorded_only(self) -> bool:
        """Whether nothing is trained for it."""
        return all(run.recorded for run in self.runs.values())

    @property
    def identity(self) -> str:
        """sha256 of all that its verdict hangs on: it changes when what is run, or the rule, does."""
        content = self.model_dump(mode="json", include=set(DECIDES), exclude={"runs": {"__all__": {"quick"}}})
        # Fields that came later count where they say something: what was recorded before them stays as it is.
        for late, table in (("search", content["runs"]), ("rule", content["quantities"])):
            for item in table.values():
                if not item.get(late):
                    item.pop(late, None)
        return compute_identity(content)


def _check_exists(what: str, name: str, known: Mapping[str, Any], where: str) -> None:
    if name not in known:
        raise ValueError(f"{where}: no {what} named {name!r}: there are {', '.join(sorted(known)) or 'none'}")


def iterate_component_scores(quantity: Quantity) -> Iterator[str]:
    """The scores that a quantity is made of."""
    if isinstance(quantity, Difference):
        yield from (quantity.left, quantity.right)
    elif isinstance(quantity, RecoveredShare):
        yield from (quantity.score, quantity.floor, quantity.ceiling)
    elif isinstance(quantity, Slope | BestScore):
        yield from quantity.scores


def list_judged_quantities(rule: Rule) -> list[str]:
    """The quantities that a rule is about."""
    return list(rule.quantities) if isinstance(rule, Order) else [rule.quantity]


def read_claim(file: Path) -> Claim:
    """The claim in one file; `BadDefinition` naming the file and the first thing wrong in it."""
    parsed = read_definition(file, Claim)
    if parsed.name != file.stem:
        raise BadDefinition(f"{file} names itself {parsed.name!r}: a claim's name is its file's, {file.stem!r}")
    return parsed


def load_claims() -> dict[str, Claim]:
    """Every claim there is, by name, sorted: those of this package and those of FARSHIFT_PATH."""
    return {name: read_claim(file) for name, file in sorted(find_files_by_name(CLAIMS_FOLDER, ".toml").items())}


def load_claim(name: str) -> Claim:
    """The claim called `name`; `UnknownName` offers the nearest."""
    known = find_files_by_name(CLAIMS_FOLDER, ".toml")
    if name not in known:
        raise UnknownName("claim", name, known, listed="farshift reproduce --list")
    return read_claim(known[name])
