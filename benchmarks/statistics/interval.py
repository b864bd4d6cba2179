"""Confidence intervals of scores and of their differences, over rows and training seeds.

A value is measured on a sample of rows with several training seeds, and varies with both. For a mean, with row means
m_i over seeds and seed means m_s over rows, the variance of the grand mean is estimated by

    var(m_i) / rows + var(m_s) / seeds - interaction

(two-way crossed random effects; the interaction of rows and seeds, which includes randomness of single predictions, is
in both terms and is subtracted once, but the result is never less than either term). If rows are clustered, the first
term is that of clusters.py; for a statistic that is not a mean over rows, it is the jackknife variance (sample.py),
also over whole clusters. The squared half-width of the interval is the sum of those of the t intervals of both terms
(`combine_crossed_variances`). For a single mean on a bounded scale, it is centred on the value with one more row at
each end (Agresti and Coull, The American Statistician 1998): centred on the value itself, its coverage is too low near
an end, for any number of rows. For a statistic that is not a mean, and for a mean over random clusters, which are often
few, it is symmetric in logits (Korn and Graubard, Survey Methodology 1998): an interval symmetric in the value has too
low coverage near an end of the scale.

Clusters with rows in both parts of a gap are treated as independent samples for each part. The interval of the gap is
then conservative, since a cluster's difficulty common to both parts cancels in the gap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, reduce
from itertools import pairwise
from math import fsum, hypot, inf, isfinite, log, nan, sqrt, tanh
from types import NoneType, UnionType
from typing import Any, ClassVar, Self, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

from .clusters import INDEPENDENT, Clustering
from .sample import Replicates, RowScores, Sample, subtract_bounds
from .variance_estimate import (
    VarianceEstimate,
    compute_average,
    compute_reach,
    estimate_seed_variance,
    find_df,
    has_finite_ends,
    sum_variances,
)

KEY = "n/a"
"""The only key of the JSON form of `NotAvailable`."""

T = TypeVar("T")


class Record:
    """Base class of dataclasses that are written as plain JSON, a key for each field, and read back by the fields'
    types: other records, mappings, sequences, and values that may be None or `NotAvailable`. A field with a default may
    be missing."""

    RENAMED: ClassVar[Mapping[str, str]] = {}
    """Keys that differ from the field's name."""
    INLINED: ClassVar[str] = ""
    """A field, another record, whose keys are written beside those of the other fields."""
    DIGITS: ClassVar[int | None] = None
    """Decimals to which numbers are rounded, without negative zeros."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        record = {self.RENAMED.get(name, name): _write_value(value, self.DIGITS) for name, value in vars(self).items()}
        return record | record.pop(self.INLINED) if self.INLINED else record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; raises `KeyError` if a field without a default is missing."""
        values, types = {}, _get_types(cls)  # type: ignore[arg-type]
        record = {**record, cls.INLINED: record} if cls.INLINED else record
        for field in fields(cls):  # type: ignore[arg-type]
            key = cls.RENAMED.get(field.name, field.name)
            if key in record or (field.default is MISSING and field.default_factory is MISSING):
                values[field.name] = _read_value(types[field.name], record[key])
        return cls(**values)


@cache
def _get_types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _write_value(value: Any, digits: int | None) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): _write_value(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_write_value(item, digits) for item in value]
    return round(value, digits) + 0.0 if isinstance(value, float) and digits is not None else value


def _read_value(type_: Any, value: Any) -> Any:
    origin, arguments = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType):
        if NotAvailable in arguments and isinstance(value, Mapping) and KEY in value:
            return NotAvailable(str(value[KEY]))
        (type_, *_) = (other for other in arguments if other not in (NotAvailable, NoneType))
        return None if value is None else _read_value(type_, value)
    if origin is Mapping:
        return {
            int(key) if arguments[0] is int else key: _read_value(arguments[1], item) for key, item in value.items()
        }
    if origin in (Sequence, tuple):
        return tuple(_read_value(arguments[0], item) for item in value)
    return type_.from_dict(value) if hasattr(type_, "from_dict") else value


@dataclass(frozen=True)
class NotAvailable:
    """The placeholder for an estimate that is not defined, or too uncertain to be reported: the reason, instead of zero
    or NaN."""

    reason: str

    def to_dict(self) -> dict[str, str]:
        """Plain JSON."""
        return {KEY: self.reason}


def read_available(read: Callable[[Mapping[str, Any]], T], record: Mapping[str, Any]) -> T | NotAvailable:
    """Apply `read` to a JSON record; `NotAvailable` if the record is a reason instead."""
    return NotAvailable(str(record[KEY])) if KEY in record else read(record)


@dataclass(frozen=True)
class Interval:
    """A value and the ends of its interval; NaN if it has none."""

    value: float
    low: float
    high: float

    @property
    def defined(self) -> bool:
        """Whether there is a value with an interval."""
        return isfinite(self.value) and isfinite(self.low) and isfinite(self.high)


@dataclass(frozen=True)
class ConfidenceInterval(Interval):
    """A value with its 95 % t interval."""

    se: float
    df: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON with six decimals; `n/a` with the reason if there is no interval. `df` is null if it is
        infinite, since nothing in the value varies."""
        if not self.defined:
            return NotAvailable("not defined on these predictions").to_dict()
        numbers = {"value": self.value, "low": self.low, "high": self.high, "se": self.se}
        return round_numbers(numbers) | {"df": round(self.df, 1) if isfinite(self.df) else None}


def make_confidence_interval(value: float, spread: VarianceEstimate) -> ConfidenceInterval:
    """Make the t interval around `value`."""
    if not (isfinite(value) and isfinite(spread.variance)):
        return ConfidenceInterval(value, nan, nan, nan, spread.df)
    reach = compute_reach(spread)
    return ConfidenceInterval(value, value - reach, value + reach, sqrt(spread.variance), spread.df)


def round_numbers(numbers: Mapping[str, float], digits: int = 6) -> dict[str, float]:
    """Round each number, without negative zeros."""
    return {name: round(number, digits) + 0.0 for name, number in numbers.items()}


@dataclass(frozen=True)
class Estimate(Interval):
    """A value, its 95 % t interval, and its variance components. `seed_se` is None for a single seed; the interval then
    covers rows only. `row_df`: the degrees of freedom of `row_se`. `interaction_se`: the component included in both.
    `why`: the reason if there is no value or no interval."""

    row_se: float
    seed_se: float | None
    rows: int
    seeds: int
    per_seed: tuple[float, ...]
    clustering: Clustering = INDEPENDENT
    row_df: float = inf
    interaction_se: float = 0.0
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, rounded to six decimals to be independent of the platform's arithmetic; `n/a` with the
        reason if it is not defined."""
        if not isfinite(self.value):
            return NotAvailable(f"not defined{f': {self.why}' if self.why else ' on these rows'}").to_dict()
        if not self.defined:
            why = self.why or "not defined without some of the rows"
            return NotAvailable(f"{self.value:g}, but no interval: {why}").to_dict()
        return {
            **{name: round(getattr(self, name), 6) for name in ("value", "low", "high", "row_se")},
            "seed_se": None if self.seed_se is None else round(self.seed_se, 6),
            "interaction_se": round(self.interaction_se, 6),
            "rows": self.rows,
            **self.clustering.to_dict(),
            "seeds": self.seeds,
            "per_seed": [round(value, 6) for value in self.per_seed],
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Estimate:
        """Read the estimate that `to_dict` wrote. Fields that an earlier scorer did not record, and the degrees of
        freedom, which are never recorded, have their defaults."""
        names = ("value", "low", "high", "row_se", "seed_se", "rows", "seeds")
        return cls(
            **{name: record[name] for name in names},
            per_seed=tuple(record["per_seed"]),
            clustering=Clustering.from_dict(record),
            interaction_se=record.get("interaction_se", 0.0),
        )


def read_interval(record: Mapping[str, Any]) -> Interval | NotAvailable:
    """Read the value and interval of a JSON record, or the reason if there is none."""
    return read_available(lambda known: Interval(known["value"], known["low"], known["high"]), record)


def is_measured(score_estimate: Estimate | NotAvailable | None) -> TypeGuard[Estimate]:
    """Return whether there is an estimate rather than `NotAvailable` or None."""
    return isinstance(score_estimate, Estimate)


def make_estimate(
    value: float,
    rows: Sequence[VarianceEstimate],
    seeds: Sequence[VarianceEstimate | None],
    bounds: tuple[float, float],
    *,
    row_count: int = 0,
    seed_count: int = 1,
    per_seed: Sequence[float] = (),
    clustering: Clustering = INDEPENDENT,
    interaction: float = 0.0,
    logit: bool = False,
    shift: float = 0.0,
    bias: float = 0.0,
    why: str = "",
) -> Estimate:
    """Make an estimate with the t interval around `value`, clipped to `bounds`; NaN if undefined.

    rows, seeds: independent variance components. interaction: the variance included in both. logit: whether the
    interval is symmetric in the logit of the value's position between finite `bounds`. shift: the offset of the
    interval's centre from the value; the interval always contains the value. bias: that of the value; the interval is
    then that around the value together with that around the value without it. per_seed: the seeds' values; if some
    learn and others fail, the interval is their range, widened by the interval of the rows."""
    known = [spread for spread in seeds if spread is not None]
    row_se = sqrt(fsum(spread.variance for spread in rows))
    seed_se = sqrt(fsum(spread.variance for spread in known)) if known else None
    by_rows, ends = sum_variances(rows), list[float]()
    if not all(map(isfinite, (value, row_se, seed_se or 0.0))):
        pass
    elif has_split_seeds(per_seed, bounds):
        reach = compute_reach(by_rows)
        ends = [min(per_seed) - reach, max(per_seed) + reach]
    else:
        reach = compute_reach(combine_crossed_variances(rows, known, interaction))
        ends = [value]
        for centre in {value, value - bias}:
            if logit:
                ends += _compute_logit_interval(centre, reach, bounds, row_count)
            else:
                ends += centre + shift - reach, centre + shift + reach
    low, high = (max(bounds[0], min(ends)), min(bounds[1], max(ends))) if ends else (nan, nan)
    return Estimate(
        value,
        low,
        high,
        row_se,
        seed_se,
        row_count,
        seed_count,
        tuple(per_seed),
        clustering,
        by_rows.df,
        sqrt(interaction),
        why,
    )


def combine_crossed_variances(
    rows: Sequence[VarianceEstimate], seeds: Sequence[VarianceEstimate], interaction: float
) -> VarianceEstimate:
    """Combine the variances of rows and seeds, counting their common component, the `interaction`, once.

    The degrees of freedom are those of Student's t for which the squared half-width of the 95 % interval is the sum of
    the squared half-widths for rows and for seeds (Banerjee, Sankhya 1960): it covers at least 95 % whatever the true
    variances are. Satterthwaite's grow when few seeds agree by chance: intervals over two seeds then cover 87 %."""
    by_rows, by_seeds = (sum_variances(some) if some else VarianceEstimate(0.0, inf) for some in (rows, seeds))
    if not by_rows.variance or not by_seeds.variance:
        return by_rows if by_rows.variance or not seeds else by_seeds
    left = max(by_rows.variance + by_seeds.variance - interaction, by_rows.variance, by_seeds.variance)
    alone = replace(by_rows, variance=left - by_seeds.variance)
    return VarianceEstimate(left, find_df(hypot(compute_reach(alone), compute_reach(by_seeds)) / sqrt(left)))


def has_split_seeds(per_seed: Sequence[float], bounds: tuple[float, float]) -> bool:
    """Return whether some seeds learn and others fail: between their values is a gap of more than a quarter of the
    scale, if its `bounds` are finite, and of more than the seeds on either side of it differ in total."""
    gaps = [after - before for before, after in pairwise(sorted(per_seed))]
    return max(gaps, default=0.0) > max((bounds[1] - bounds[0]) / 4, sum(gaps) / 2)


def estimate_bounded_seed_variance(per_seed: Sequence[float], bounds: tuple[float, float]) -> VarianceEstimate | None:
    """Estimate the variance component of training seeds; seeds that learn or fail are as two, with one degree of
    freedom. None for a single seed."""
    estimate = estimate_seed_variance(per_seed)
    return replace(estimate, df=1) if estimate and has_split_seeds(per_seed, bounds) else estimate


def _compute_logit_interval(value: float, reach: float, bounds: tuple[float, float], rows: int) -> tuple[float, float]:
    """Compute an interval symmetric in logits whose half-width at the value is `reach`; at an end of the scale, with
    one more row at each end."""
    width = bounds[1] - bounds[0]
    end = 1 / (rows + 2)
    share = min(max((value - bounds[0]) / width, end), 1 - end)
    middle, far = log(share / (1 - share)), reach / width / (share * (1 - share))
    low, high = (bounds[0] + width * (1 + tanh((middle + by) / 2)) / 2 for by in (-far, far))
    return low, high


def _estimate_samples(
    value: float,
    samples: Sequence[Sample],
    seeds: Sequence[VarianceEstimate | None],
    bounds: tuple[float, float],
    trained: Sequence[Sample],
    **form: Any,
) -> Estimate:
    """Make an estimate with the row variance of all `samples`, and the interaction of the `trained` models."""
    return make_estimate(
        value,
        [sample.spread() for sample in samples],
        seeds,
        bounds,
        row_count=sum(sample.rows for sample in samples),
        clustering=reduce(Clustering.beside, (sample.clustering for sample in samples)),
        interaction=fsum(sample.interaction() for sample in trained),
        bias=samples[0].bias - fsum(sample.bias for sample in samples[1:]),
        why=next((sample.why for sample in trained if sample.why), ""),
        **form,
    )


def _estimate_model(samples: Sequence[Sample], per_seed: Sequence[float], **form: Any) -> Estimate:
    """Make an estimate of one model from its values per seed: on a sample, or of the difference of two."""
    bounds = reduce(subtract_bounds, (sample.bounds for sample in samples))
    seeds = [estimate_bounded_seed_variance(per_seed, bounds)]
    form |= {"per_seed": per_seed, "seed_count": len(per_seed)}
    return _estimate_samples(compute_average(per_seed), samples, seeds, bounds, samples, **form)


def estimate_mean(sample: Sample) -> Estimate:
    """Estimate the value of a sample: the mean over its seeds."""
    shift = sample.shift() if isinstance(sample, RowScores) else 0.0
    is_skewed = sample.clustering.treated == "random" or isinstance(sample, Replicates)
    logit = is_skewed and has_finite_ends(sample.bounds) and not sample.bias  # without its bias, it can be at the end
    return _estimate_model([sample], sample.per_seed, logit=logit, shift=shift)


def estimate_gap(left: Sample, right: Sample) -> Estimate:
    """Estimate left - right of the *same* models on different rows: ID minus OOD.

    Row variances add; the seed variance is that of the per-seed gaps, so effects common to both scores cancel."""
    return _estimate_model([left, right], [a - b for a, b in zip(left.per_seed, right.per_seed, strict=True)])


def estimate_paired_difference(left: Sample, right: Sample) -> Estimate:
    """Estimate left - right of *different* models on the same rows.

    Rows are paired: the row variance is that of the row-wise differences. Seeds of different models are independent."""
    rows, values = [left.pooled().minus(right.pooled())], [left.per_seed, right.per_seed]
    return _estimate_difference(rows, values, (left.bounds, right.bounds), [left, right])


def estimate_gap_difference(left: tuple[Sample, Sample], right: tuple[Sample, Sample]) -> Estimate:
    """Estimate (ID - OOD of one model) - (ID - OOD of another), with rows paired within ID and within OOD."""
    rows = [a.pooled().minus(b.pooled()) for a, b in zip(left, right, strict=True)]
    gaps = [[a - b for a, b in zip(x.per_seed, y.per_seed, strict=True)] for x, y in (left, right)]
    bounds = subtract_bounds(left[0].bounds, left[1].bounds)
    return _estimate_difference(rows, gaps, (bounds, bounds), [*left, *right])


def _estimate_difference(
    rows: list[Sample],
    values: list[list[float]],
    bounds: tuple[tuple[float, float], tuple[float, float]],
    trained: Sequence[Sample],
) -> Estimate:
    """Estimate the difference of two models' values, each with its bounds, with independent seeds; `rows`: the row-wise
    differences."""
    value = compute_average(values[0]) - compute_average(values[1])
    seeds = [estimate_bounded_seed_variance(*side) for side in zip(values, bounds, strict=True)]
    count = min(map(len, values))
    return _estimate_samples(value, rows, seeds, subtract_bounds(*bounds), trained, seed_count=count)
