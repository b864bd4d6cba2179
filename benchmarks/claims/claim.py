"""The schema of a claim: one TOML file, validated without importing torch."""

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
Verdict = Literal["reproduced", "not reproduced", "inconclusive", "comparison"]
DECIDES = ("runs", "quantities", "published", "premises", "rules")
"""The fields of a claim that determine its verdict, except for settings of the quick form."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PublishedResult(_Strict):
    """A result reported in a paper: a number, or a finding in words."""

    says: str = ""
    value: int | float | str | None = None
    mark: Mark
    """Whether the number was seen in a source. A number from memory is compared, but does not decide the verdict."""
    where: str

    @model_validator(mode="after")
    def _check_content(self) -> PublishedResult:
        if not self.says and self.value is None:
            raise ValueError("give `value` or `says`")
        return self


class SettingDifference(_Strict):
    """A difference between the setting of a claim's runs and the paper's."""

    ours: int | float | str
    paper: int | float | str


class EarlierOutcome(_Strict):
    """The outcome of an earlier specification of a claim, and the commit that recorded it."""

    verdict: Verdict
    reason: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")]


class QuickOverrides(_Strict):
    """Settings of a run that differ in the quick form."""

    seeds: Annotated[int, Field(gt=0)] = 2
    steps: Annotated[int, Field(gt=0)] | None = None
    search: Annotated[int, Field(ge=2)] | None = None


class TrainedBaseline(_Strict):
    """A baseline on a benchmark, trained for the claim; if `recorded`, the recorded result of the `budget` that ships
    with the package."""

    recipe: str
    on: str
    settings: dict[str, Setting] = {}
    """Settings that differ from the recipe."""
    budget: Literal["full", "quick"] = "quick"
    steps: Annotated[int, Field(gt=0)] | None = None
    seeds: Annotated[int, Field(gt=0)] = 5
    search: Annotated[int, Field(ge=2)] | None = None
    """How many settings are tried: the recipe's, and others drawn from the algorithm's published ranges as by
    `farshift run --search`. `settings` then apply to every draw unless the draw overrides them."""
    selection: str | None = None
    """The selection rule, unless a score names another one; by default the protocol's."""
    recorded: bool = False
    quick: QuickOverrides = QuickOverrides()

    @model_validator(mode="after")
    def _check_settings(self) -> TrainedBaseline:
        if self.recorded and self.model_fields_set - {"recipe", "on", "recorded", "budget"}:
            raise ValueError("a recorded run has fixed settings and seeds: give only recipe, on and budget")
        if self.quick.search and not self.search:
            raise ValueError("quick.search requires search")
        return self


class Score(_Strict):
    """A run's score on a view, by the benchmark's first metric or another of its metrics, on all rows or one group."""

    sort: Literal["score"]
    run: Named
    view: str = "ood"
    metric: str = ""
    group: str = ""
    rule: str = ""
    """The selection rule that chooses among the run's candidates; by default the run's own. `oracle` selects on the
    shifted test rows, which is not permitted for entries."""


class Difference(_Strict):
    """One score minus another, or minus the best of several; paired if both are on the same rows."""

    sort: Literal["difference"]
    left: Named
    right: Named


class BestScore(_Strict):
    """The best of several scores on the same rows for each seed: the result of selecting by these rows' labels, such as
    when a few labels suffice to decide between two hypotheses."""

    sort: Literal["best"]
    scores: Annotated[list[Named], Field(min_length=2)]


class RecoveredShare(_Strict):
    """The share of the gap between two scores that a third score closes."""

    sort: Literal["recovered"]
    score: Named
    floor: Named
    ceiling: Named


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
    """Excluded baselines, such as those with constant predictions."""


class DiagnosticCorrelation(_Strict):
    """Kendall's tau-b between a diagnostic of recorded baselines and their OOD scores on one benchmark, over the
    baselines that have both. Losses are negated, so that a positive tau means that higher values go with better
    scores."""

    sort: Literal["diagnostic_correlation"]
    diagnostic: str
    """Such as `sharpness.worst`, or `disagreement.ood`, which is computed from the recorded predictions."""
    on: str


class Fact(_Strict):
    """A property of a split's rows, independent of any training."""

    sort: Literal["fact"]
    measure: str
    split: str
    arguments: dict[str, Setting] = {}


Quantity = Annotated[
    Score | Difference | BestScore | RecoveredShare | RankCorrelation | DiagnosticCorrelation | Fact,
    Field(discriminator="sort"),
]


class Within(_Strict):
    """The quantity is within `by` of the published value."""

    shape: Literal["within"]
    quantity: Named
    published: Named
    by: Annotated[float, Field(gt=0)]


class LowerBound(_Strict):
    """The quantity is at least `limit`."""

    shape: Literal["at_least"]
    quantity: Named
    limit: float


class UpperBound(_Strict):
    """The quantity is at most `limit`."""

    shape: Literal["at_most"]
    quantity: Named
    limit: float


class Positive(_Strict):
    """The quantity is greater than zero."""

    shape: Literal["positive"]
    quantity: Named


class Equal(_Strict):
    """A fact equals the published value exactly."""

    shape: Literal["equal"]
    quantity: Named
    published: Named


class Order(_Strict):
    """Each score exceeds the next by more than `by`."""

    shape: Literal["order"]
    quantities: Annotated[list[Named], Field(min_length=2)]
    by: Annotated[float, Field(ge=0)] = 0.0


Rule = Annotated[Within | LowerBound | UpperBound | Positive | Equal | Order, Field(discriminator="shape")]


class QuickForm(_Strict):
    """The quick form, which only checks the direction. By default its rules are those of the claim except `within`."""

    rules: list[Rule] = []
    skip: list[Named] = []
    """Runs that the quick form omits."""


class Cost(_Strict):
    """The cost of the full form in minutes: on one CPU core without a GPU, and on one GPU."""

    cpu_minutes: Annotated[float, Field(ge=0)]
    gpu_minutes: Annotated[float, Field(ge=0)] | None = None


class Claim(_Strict):
    """A published claim, the runs that check it, and the rules that decide it. All rules must hold."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    title: str
    kind: Kind | Literal["any"]
    citation: str
    notes: str = ""
    """How our setting differs; if the claim fails, why, and what was tried."""
    cost: Cost
    published: Annotated[dict[Named, PublishedResult], Field(min_length=1)]
    runs: dict[Named, TrainedBaseline] = {}
    quantities: Annotated[dict[Named, Quantity], Field(min_length=1)]
    premises: list[Rule] = []
    """Conditions that must hold for the setting to be that of the claim, such as successful training."""
    rules: Annotated[list[Rule], Field(min_length=1)]
    quick: QuickForm = QuickForm()
    setting: dict[Named, SettingDifference] = {}
    """Differences from the paper's setting that may change the result, by name, such as `steps`. If the rules of such a
    claim fail, its verdict is *another setting*."""
    earlier: list[EarlierOutcome] = []
    """The outcomes of earlier runs or rules, oldest first."""
    committed_with_outcome: bool = False
    """Whether the rules and the outcome have been committed together, so that their order cannot be checked."""

    @model_validator(mode="after")
    def _names(self) -> Claim:
        for name, quantity in self.quantities.items():
            if isinstance(quantity, Score):
                _check_exists("run", quantity.run, self.runs, f"quantities.{name}")
            for other in iterate_component_scores(quantity):
                _check_exists("quantity", other, self.quantities, f"quantities.{name}")
                parts = Score | BestScore if isinstance(quantity, Difference) else Score
                if not isinstance(self.quantities[other], parts):
                    raise ValueError(f"quantities.{name}: {other} is not a score")
        for rule in (*self.premises, *self.rules, *self.quick.rules):
            for quantity_name in list_judged_quantities(rule):
                _check_exists("quantity", quantity_name, self.quantities, "rules")
            if isinstance(rule, Within | Equal):
                _check_exists("published value", rule.published, self.published, "rules")
                value = self.published[rule.published].value
                if value is None or (isinstance(rule, Within) and isinstance(value, str)):
                    raise ValueError(f"rules: published.{rule.published} has no number to compare with")
            if isinstance(rule, Order) and not all(isinstance(self.quantities[q], Score) for q in rule.quantities):
                raise ValueError("rules: order requires scores")
        for run in self.quick.skip:
            _check_exists("run", run, self.runs, "quick.skip")
        if not self.quick_rules():
            raise ValueError("quick: all rules are `within`: give quick.rules that check the direction")
        return self

    def quick_rules(self) -> list[Rule]:
        """Return the rules of the quick form."""
        return self.quick.rules or [rule for rule in self.rules if not isinstance(rule, Within)]

    @property
    def mark(self) -> Mark:
        """`from memory` if nothing was seen in a source, or if a rule depends on a number that was not; else `seen`."""
        named_by = {rule.published for rule in self.rules if isinstance(rule, Within | Equal)}
        decisive = [self.published[name] for name in named_by] or list(self.published.values())
        some_seen = any(published_value.mark == "seen" for published_value in decisive)
        all_seen = all(published_value.mark == "seen" for published_value in decisive)
        return "seen" if (all_seen if named_by else some_seen) else "from memory"

    @property
    def identity(self) -> str:
        """sha256 of everything that determines the verdict: it changes if the runs or the rules change."""
        content = self.model_dump(mode="json", include=set(DECIDES), exclude={"runs": {"__all__": {"quick"}}})
        # Fields that were added later count only if set, so that earlier identities do not change.
        for late, table in (("search", content["runs"]), ("rule", content["quantities"])):
            for item in table.values():
                if not item.get(late):
                    item.pop(late, None)
        return compute_identity(content)


def _check_exists(what: str, name: str, known: Mapping[str, Any], where: str) -> None:
    if name not in known:
        raise ValueError(f"{where}: no {what} named {name!r}; available: {', '.join(sorted(known)) or 'none'}")


def iterate_component_scores(quantity: Quantity) -> Iterator[str]:
    """Iterate over the scores that a quantity is computed from."""
    if isinstance(quantity, Difference):
        yield from (quantity.left, quantity.right)
    elif isinstance(quantity, RecoveredShare):
        yield from (quantity.score, quantity.floor, quantity.ceiling)
    elif isinstance(quantity, BestScore):
        yield from quantity.scores


def list_judged_quantities(rule: Rule) -> list[str]:
    """Return the quantities that a rule refers to."""
    return list(rule.quantities) if isinstance(rule, Order) else [rule.quantity]


def read_claim(file: Path) -> Claim:
    """Read the claim in one file; raises `BadDefinition` with the file and its first error."""
    parsed = read_definition(file, Claim)
    if parsed.name != file.stem:
        raise BadDefinition(f"{file}: the name {parsed.name!r} must be the file's name, {file.stem!r}")
    return parsed


def load_claims() -> dict[str, Claim]:
    """Return every claim by name, sorted: those of this package and those in FARSHIFT_PATH."""
    return {name: read_claim(file) for name, file in sorted(find_files_by_name(CLAIMS_FOLDER, ".toml").items())}


def load_claim(name: str) -> Claim:
    """Return the claim called `name`; raises `UnknownName`, which suggests the nearest name."""
    known = find_files_by_name(CLAIMS_FOLDER, ".toml")
    if name not in known:
        raise UnknownName("claim", name, known, listed="farshift reproduce --list")
    return read_claim(known[name])
