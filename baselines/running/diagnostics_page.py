"""The page docs/diagnostics.md: each diagnostic against the OOD score, over all recorded results."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from .outcome_diagnostics import Correlation, Pooled, pooled

_HEAD = """# Diagnostics against outcome

Does what can be seen of a trained model without the shifted labels tell how it will do under the shift? Here over the
recorded baselines, by `farshift baselines diagnostics`, which reads recorded results alone; this page is its
`--markdown`.

A row of the first table is a diagnostic over all benchmarks that have it, one of the second a diagnostic on one
benchmark: Kendall's tau-b between it and the OOD score over baselines, each the mean over its seeds. Above 0 the
baselines that have more of it do better under the shift. Brackets are 95 % intervals: on one benchmark over baselines
(percentile bootstrap, at least as wide as Fieller, Hartley and Pearson's), over benchmarks a t interval over sources,
whose benchmarks are averaged first, since their rows are alike. Hundreds of replicas are few sources: the interval over
sources is the one to read. *ID held fixed* is the partial tau that is left beside the ID score.

`ID score` and `disagreement` (how often two seeds of a network answer a row differently, on the OOD or the ID rows) are
in the recorded answers, the first also of estimators. The others are of networks that were trained again with
`--diagnose all` and answered as recorded in 99 of 100 rows at least, three seeds each, on 256 training rows
([what they are](baselines.md#all-components)); `farshift baselines record RUN.. --diagnostics` keeps those of a run.
Benchmarks with fewer than seven such baselines are left out. Baselines differ in algorithm and settings under a quick
budget, not in training alone: a tau says whether a diagnostic orders *these*, as one would use it to choose among
models, and not what it would do along one training run. Nothing is corrected for the number of rows in the tables.
"""


def markdown(found: Sequence[Correlation]) -> str:
    """The whole page."""
    over = [
        f"| `{one.diagnostic}` | {one.baselines} ({one.replicas:,}) | {one.benchmarks} of {one.sources} | "
        f"{_spread(one.tau)} | {one.least:.2f} to {one.most:.2f} | {_spread(one.partial)} |"
        for one in pooled(found)
    ]
    each = [
        f"| `{one.diagnostic}` | `{one.benchmark}` | {one.baselines} ({one.replicas}) | "
        f"{_with_interval(one.tau, one.low, one.high)} | {_plain(one.partial)} |"
        for one in found
    ]
    return "\n".join(
        [
            _HEAD,
            "| diagnostic | baselines (replicas) | benchmarks of sources | tau | lowest to highest | ID held fixed |",
            "|---|---|---|---|---|---|",
            *over,
            "",
            _told(pooled(found)),
            "",
            "## On each benchmark",
            "",
            "| diagnostic | benchmark | baselines (replicas) | tau | ID held fixed |",
            "|---|---|---|---|---|",
            *each,
            "",
        ]
    )


def rows_over_benchmarks(found: Sequence[Pooled]) -> list[list[str]]:
    """What the terminal shows of them: name, baselines, benchmarks, tau, partial tau."""
    return [
        [one.diagnostic, str(one.baselines), str(one.benchmarks), *map(_spread, (one.tau, one.partial))]
        for one in found
    ]


def _spread(value: tuple[float, float, float]) -> str:
    return _with_interval(*value)


def _told(found: Sequence[Pooled]) -> str:
    """Which intervals leave 0 out, in a sentence."""
    clear = [f"`{one.diagnostic}`" for one in found if _leaves_zero_out(one.tau)]
    beyond = [f"`{one.diagnostic}`" for one in found if _leaves_zero_out(one.partial)]
    return (
        f"Of {len(found)} diagnostics the interval over sources leaves 0 out for {_names(clear)};\n"
        f"with ID held fixed for {_names(beyond)}."
    )


def _names(some: Sequence[str]) -> str:
    return ", ".join(some) or "none"


def _leaves_zero_out(value: tuple[float, float, float]) -> bool:
    return value[1] > 0 or value[2] < 0


def _plain(value: float) -> str:
    return f"{value:.2f}" if isfinite(value) else ""


def _with_interval(value: float, low: float, high: float) -> str:
    if not isfinite(value):
        return ""
    return f"{value:.2f} [{low:.2f}, {high:.2f}]" if isfinite(low) else f"{value:.2f} (no interval)"
