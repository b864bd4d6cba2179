"""The score of a run as a typed record: returned by `fs.score`, stored by boards as JSON, shown in plots and tables.

All numbers have six decimals, whether just computed or read back, so that both are equal and do not depend on the last
bits of a platform's arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from ...core.canonical import to_canonical_json
from ...core.errors import BadRun
from ...core.listings import render_table, to_data_frame
from ...core.text import drop_version, escape_untrusted
from ..derived.compositional import Compositionality
from ..derived.extrapolation import Extrapolation, Valley
from ..derived.label_errors import LabelErrors
from ..statistics.interval import Estimate, Interval, NotAvailable, Record
from ..statistics.ranks import Better
from ..statistics.variation import Variation

if TYPE_CHECKING:
    import pandas as pd

MaybeEstimate = Estimate | NotAvailable


@dataclass(frozen=True)
class ViewScores(Record):
    """ID, OOD and gap by one metric."""

    id: MaybeEstimate
    ood: MaybeEstimate
    gap: MaybeEstimate


@dataclass(frozen=True)
class AnswerCounts(Record):
    """Numbers of rows answered, abstained from and failed, over all seeds."""

    rows: int
    answered: int
    abstained: int
    failed: int


@dataclass(frozen=True)
class SelectionScore(Record):
    """The result of a selection rule: each seed's candidate, the scores, and the regret: how much better the oracle's
    choice scores on the shifted rows."""

    chosen: Mapping[int, str]
    id: MaybeEstimate
    ood: MaybeEstimate
    gap: MaybeEstimate
    regret: MaybeEstimate


@dataclass(frozen=True)
class WorstGroup(Record):
    """The OOD group with the worst score, its `estimate`, and those of all `groups` by name. The interval of the worst
    group does not account for its selection among several."""

    group: str
    estimate: Estimate
    groups: Mapping[str, Estimate]

    INLINED: ClassVar = "estimate"


@dataclass(frozen=True)
class SeverityPoint(Record):
    """The score of a view's rows whose severity is between `first` and `last`, both included."""

    view: str
    first: float
    last: float
    estimate: Estimate

    RENAMED: ClassVar = {"first": "from", "last": "to"}
    INLINED: ClassVar = "estimate"

    @property
    def middle(self) -> float:
        """The point's position on an axis of severity."""
        return float(self.first + self.last) / 2


@dataclass(frozen=True)
class CalibrationBin(Record):
    """The predictions with a confidence between `low` and `high`: their number, mean confidence, and the share that is
    correct."""

    low: float
    high: float
    rows: int
    confidence: float
    accuracy: float

    RENAMED: ClassVar = {"low": "from", "high": "to"}


@dataclass(frozen=True)
class Calibration(Record):
    """The expected calibration error of a view, and the bins of its reliability diagram, over all seeds."""

    ece: float
    bins: Sequence[CalibrationBin]


@dataclass(frozen=True, kw_only=True)
class Score(Record):
    """The scores of a run, each with its 95 % interval: `score.ood.value`, `score.gap.low`.

    id, ood, gap: by the primary metric. views: every view by it. metrics: ID, OOD and gap by each other metric.
    selections: the result of each selection rule. worst_group, severity and the following are None or empty if they do
    not apply to the benchmark or the predictions. `spent` is the usage that the model's side reports, and `remarks` are
    its remarks for each seed (with diagnostics); they are not part of the score, since they differ between repetitions.
    """

    scorer: int
    benchmark: str
    kind: str
    entry_identity: str
    model: str
    budget: str
    steps: int | None
    seeds: Sequence[int]
    protocol_seeds: int
    deterministic: bool = False
    selection: str
    candidates: int = 1
    metric: str
    better: Better
    bounds: tuple[float, float] | None
    id: Estimate
    ood: Estimate
    gap: Estimate
    views: Mapping[str, MaybeEstimate]
    metrics: Mapping[str, ViewScores] = field(default_factory=dict)
    answers: Mapping[str, AnswerCounts] = field(default_factory=dict)
    selections: Mapping[str, SelectionScore | NotAvailable] = field(default_factory=dict)
    worst_group: WorstGroup | None
    group_quantiles: Mapping[str, float] | None = None
    severity: Sequence[SeverityPoint]
    severity_unit: str
    extrapolation: Extrapolation | None = None
    valley: Valley | None = None
    calibration: Mapping[str, Calibration] | None
    label_errors: LabelErrors | None = None
    composition: Compositionality | NotAvailable | None = None
    touched: Sequence[str] = ()
    variation: Mapping[str, Variation | None] = field(default_factory=dict)
    interval: str
    spent: Mapping[str, Any] = field(default_factory=dict, compare=False)
    remarks: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: the reproducible score only, as stored by boards."""
        left_out = {"spent", "remarks"} | (set() if self.deterministic else {"deterministic"})
        return {name: item for name, item in super().to_dict().items() if name not in left_out}

    def report(self) -> dict[str, Any]:
        """Plain JSON: the score, the usage and the remarks."""
        return self.to_dict() | {"spent": self.spent, "remarks": self.remarks}

    def json(self) -> bytes:
        """Canonical JSON: the bytes that a board stores."""
        return to_canonical_json(self.to_dict())

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Score:
        """Read the score that `to_dict` or `report` wrote. `BadRun` if a required value is missing; values that an
        earlier scorer did not record are None or empty."""
        required = (item.name for item in fields(cls) if item.default is MISSING and item.default_factory is MISSING)
        if lacking := [name for name in required if name not in record]:
            whose = f"{record.get('model', 'a model')} on {record.get('benchmark', 'a benchmark')}"
            raise BadRun(f"the score record of {whose} lacks {', '.join(lacking)}: score the run again")
        return super().from_dict(record)

    def rounded(self) -> Score:
        """Return the score as it is read back: all numbers with six decimals."""
        return Score.from_dict(self.report())

    def _measures(self) -> list[tuple[str, str, MaybeEstimate]]:
        """Yield each estimate as (metric, measure, estimate): ID, OOD and gap, the other views, the other metrics."""
        measures = [(self.metric, name, getattr(self, name)) for name in ("id", "ood", "gap")]
        measures += [(self.metric, name, view) for name, view in self.views.items() if name not in ("id", "ood")]
        for signature, view_scores in self.metrics.items():
            measures += [(signature, name, getattr(view_scores, name)) for name in ("id", "ood", "gap")]
        return measures

    def _repr_html_(self) -> str:
        rows = [
            {"metric": drop_version(metric), "measure": name, "value": format_estimate(estimate)}
            for metric, name, estimate in self._measures()
        ]
        return render_table(rows, f"{self.model} on {self.benchmark}", self.interval)

    def to_pandas(self) -> pd.DataFrame:
        """Return a data frame with a row for each metric and measure (ID, OOD, gap, other views): its value and
        interval, or the reason why there is none. `MissingExtra` without pandas."""
        named = {"benchmark": self.benchmark, "model": self.model}
        rows = [
            named | {"metric": signature, "measure": name} | estimate.to_dict()
            for signature, name, estimate in self._measures()
        ]
        return to_data_frame(rows)

    def __repr__(self) -> str:
        views = (("id", self.id), ("ood", self.ood), ("gap", self.gap))
        estimates = ", ".join(f"{name} {format_estimate(item)}" for name, item in views)
        return f"Score({self.model} on {self.benchmark}: {estimates})"

    def __str__(self) -> str:
        chosen = "" if self.candidates == 1 else f", {self.candidates} candidates, chosen by {self.selection}"
        lines = [f"{self.model} on {self.benchmark} ({drop_version(self.metric)}, {self.kind}{chosen})"]
        estimates: dict[str, MaybeEstimate] = {"id": self.id, "ood": self.ood, "gap": self.gap}
        estimates |= {name: view for name, view in self.views.items() if name not in estimates}
        lines += [f"{name:>10}  {format_estimate(item)}" for name, item in estimates.items()]
        if worst := self.worst_group:
            lines.append(
                f'{"worst":>10}  {format_estimate(worst.estimate)}  "{worst.group}", of {len(worst.groups)} groups'
            )
        if isinstance(self.composition, Compositionality):
            gap, known = map(format_estimate, (self.composition.gap, self.composition.parts_right))
            lines.append(f"{'composed':>10}  {gap}  wrong of those with right parts ({known})")
        lines += [_format_metric(drop_version(signature), item) for signature, item in self.metrics.items()]
        for view, counts in self.answers.items():
            if counts.answered < counts.rows:
                lines.append(
                    f"{view}: of {counts.rows} predictions {counts.abstained} abstained, {counts.failed} failed; "
                    "each counts as wrong"
                )
        if self.candidates > 1:
            applied = {name: item for name, item in self.selections.items() if isinstance(item, SelectionScore)}
            lines += [
                f"  by {name}: OOD {format_estimate(item.ood)}, regret {format_estimate(item.regret)}"
                for name, item in applied.items()
            ]
            if others := [name for name in self.selections if name not in applied]:
                lines.append(f"  not applicable: {', '.join(others)} (--json has the reasons)")
        usage_text = ", ".join(f"{name} {_format_usage(value)}" for name, value in self.spent.items())
        lines += [f"{'':>10}  {self.interval}", f"{'':>10}  spent: {usage_text}"]
        # One line each: names of models or groups may have line breaks.
        return "\n".join(map(escape_untrusted, lines))


def format_estimate(estimate: Interval | NotAvailable) -> str:
    """Format a value and its interval, such as `0.953 [0.941, 0.965]`; `n/a` with the reason if there is none."""
    if isinstance(estimate, NotAvailable):
        return f"n/a ({estimate.reason})"
    return f"{estimate.value:z.3f} [{estimate.low:z.3f}, {estimate.high:z.3f}]"


def _format_metric(name: str, scores: ViewScores) -> str:
    if isinstance(scores.id, NotAvailable) and isinstance(scores.ood, NotAvailable):
        return f"{name}: {format_estimate(scores.id)}"
    return (
        f"{name}: id {format_estimate(scores.id)}, ood {format_estimate(scores.ood)}, gap {format_estimate(scores.gap)}"
    )


def _format_usage(value: Any) -> str:
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)
