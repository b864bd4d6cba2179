"""The estimate in words that `farshift run --dry-run` prints."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.clock import format_duration
from ...core.text import format_count
from ...core.threads import describe_busy_cores
from ...loaders.cache.entries import format_size
from .forecast import Forecast
from .probe import Probe


def format_cost_rows(forecast: Forecast) -> list[list[str]]:
    """Format the cost of a run as rows of two cells each."""
    rows = [
        ["training", _describe_training(forecast)],
        ["rows", _describe_rows(forecast)],
        ["download", _describe_download(forecast)],
    ]
    rows += [
        [resource, _describe_resource(forecast, resource)]
        for resource in ("disk", "memory", "device memory")
        if resource in forecast.free
    ]
    if forecast.probes:
        rows += [["measured", line] for trial in forecast.probes for line in _describe_trial(forecast, trial)]
    else:
        rows.append(["not measured", forecast.unmeasured])
    if busy := describe_busy_cores(forecast.busy_cores):
        rows.append(["cores", busy])
    rows.append(["time", _describe_time(forecast)])
    return rows


def format_brief_row(forecast: Forecast) -> list[str | int]:
    """Format one row of a table of several runs: baseline, benchmark, replicas, steps, memory, disk, time."""
    time = format_duration(forecast.seconds["all"]) if "all" in forecast.seconds else forecast.unmeasured or "?"
    return [
        forecast.plan.name,
        forecast.plan.benchmark.name,
        forecast.replicas,
        forecast.steps or "until done",
        format_size(forecast.bytes("memory") + forecast.bytes("device memory")) if forecast.probes else "not known",
        format_size(forecast.bytes("disk")) if forecast.probes or forecast.bytes("disk") else "not known",
        time,
    ]


def _describe_training(forecast: Forecast) -> str:
    plan, parts = forecast.plan, [format_count(len(forecast.plan.seeds), "seed")]
    if len(plan.settings) > 1:
        parts.append(f"{len(plan.settings)} settings")
    if forecast.folds:
        parts.append(
            f"once, and without each of {forecast.folds} groups for {plan.benchmark.rule(plan.selection).name}"
        )
    text = f"{format_count(forecast.replicas, 'replica')} ({' x '.join(parts)})"
    trial = forecast.probe
    if forecast.steps is None:
        return f"{text}, until the estimator's own stopping rule"
    text += f", {format_count(forecast.steps, 'step')}"
    if trial is not None and trial.replicas:
        text += (
            f" of {format_count(trial.drawn, 'row')} each, {trial.replicas} at once; {trial.parameters:,} parameters"
        )
    return text + (f"; in {forecast.workers} processes" if forecast.workers > 1 else "")


def _describe_rows(forecast: Forecast) -> str:
    rows = forecast.rows
    if "train" not in rows:
        return "not known: the split is frozen when it is first pulled"
    text = f"{rows['train']:,} for training"
    if rows.get("id_val"):
        text += f", {rows['id_val']:,} for validation"
    return f"{text}, {rows['predicted']:,} to predict"


def _describe_download(forecast: Forecast) -> str:
    stated = [format_size(forecast.download.bytes)] if forecast.download.bytes else []
    text = (
        ", ".join([*stated, *(f"{name} (its size is not stated)" for name in forecast.download.unknown)]) or "nothing"
    )
    own = forecast.download.own
    return text + (f"; {format_size(own)} of local files are copied to the cache" if own else "")


def _describe_resource(forecast: Forecast, resource: str) -> str:
    some = [
        f"{need.what} {format_size(need.bytes)}" for need in forecast.needs if need.resource == resource and need.bytes
    ]
    parts = f" ({', '.join(some)})" if some else ""
    if not some and forecast.probe is None:
        return f"not known until the data are in the cache; {format_size(forecast.free[resource])} are free"
    return f"{format_size(forecast.bytes(resource))}{parts}; {format_size(forecast.free[resource])} are free"


def _describe_trial(forecast: Forecast, trial: Probe) -> Iterator[str]:
    if trial.images_per_second:
        yield f"{trial.images_per_second:,.0f} images a second decoded to {trial.side} x {trial.side}"
    if trial.audio_files_per_second:
        yield f"{trial.audio_files_per_second:,.0f} recordings a second decoded"
    if trial.features_per_second:
        yield f"{trial.features_per_second:,.0f} rows a second encoded, {trial.width} features each"
    elif trial.width:
        yield f"features of the rows in the trial are in the cache, {trial.width} each"
    if trial.steps:
        at = f", at {trial.side} x {trial.side}" if len(forecast.probes) > 1 else ""
        yield f"{trial.step_seconds:.3g} s a step (the median of {trial.steps}, on {trial.rows:,} of the rows){at}"
        yield f"{1000 * trial.answer_seconds:.3g} ms a row to predict"


def _describe_time(forecast: Forecast) -> str:
    if "all" not in forecast.seconds:
        return "not known: an estimator has its own stopping rule" if forecast.probe is not None else "not known"
    parts = [f"{name} {format_duration(value)}" for name, value in forecast.seconds.items() if name != "all"]
    return f"about {format_duration(forecast.seconds['all'])} ({', '.join(parts)}): an estimate"
