"""A forecast in words: what `farshift run --dry-run` prints."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.clock import duration
from ...core.listings.plural import counted
from ...loaders.cache.limit import size_in_words
from .forecast import Forecast
from .probe import Probe


def lines(found: Forecast) -> list[list[str]]:
    """What a run takes, a line of two cells each."""
    rows = [["training", _training(found)], ["rows", _rows(found)], ["download", _download(found)]]
    rows += [[place, _place(found, place)] for place in ("disk", "memory", "device memory") if place in found.free]
    if found.probes:
        rows += [["measured", line] for one in found.probes for line in _measured(found, one)]
    else:
        rows.append(["not measured", found.unmeasured])
    rows.append(["time", _time(found)])
    return rows


def brief(found: Forecast) -> list[str | int]:
    """A line of a table of several: baseline, benchmark, replicas, steps, memory, disk, time."""
    memory = found.bytes("memory") + found.bytes("device memory")
    time = duration(found.seconds["all"]) if "all" in found.seconds else found.unmeasured or "?"
    return [
        found.plan.name,
        found.plan.benchmark.name,
        found.replicas,
        found.steps or "to its end",
        size_in_words(memory),
        size_in_words(found.bytes("disk")),
        time,
    ]


def _training(found: Forecast) -> str:
    plan, parts = found.plan, [counted(len(found.plan.seeds), "seed")]
    if len(plan.settings) > 1:
        parts.append(f"{len(plan.settings)} settings")
    if found.folds:
        parts.append(f"once, and without each of {found.folds} groups for {plan.benchmark.rule(plan.selection).name}")
    told = f"{counted(found.replicas, 'replica')} ({' x '.join(parts)})"
    tried = found.probe
    if found.steps is None:
        return f"{told}, each to the estimator's own end"
    told += f", {counted(found.steps, 'step')}"
    if tried is not None and tried.replicas:
        told += f" of {counted(tried.drawn, 'row')} each, {tried.replicas} at once; {tried.parameters:,} parameters"
    return told + (f"; in {found.workers} processes" if found.workers > 1 else "")


def _rows(found: Forecast) -> str:
    rows = found.rows
    told = f"{rows['train']:,} to train on"
    if rows.get("id_val"):
        told += f", {rows['id_val']:,} for validation"
    return f"{told}, {rows['predicted']:,} to predict"


def _download(found: Forecast) -> str:
    stated = [size_in_words(found.download.bytes)] if found.download.bytes else []
    told = ", ".join([*stated, *(f"{name} (its size is not stated)" for name in found.download.unknown)]) or "nothing"
    own = found.download.own
    return told + (f"; {size_in_words(own)} at hand are copied to the cache" if own else "")


def _place(found: Forecast, place: str) -> str:
    some = [f"{need.what} {size_in_words(need.bytes)}" for need in found.needs if need.place == place and need.bytes]
    parts = f" ({', '.join(some)})" if some else ""
    if found.probe is None and place != "disk" and not some:
        return f"not known before the data are here; {size_in_words(found.free[place])} are free"
    return f"{size_in_words(found.bytes(place))}{parts}; {size_in_words(found.free[place])} are free"


def _measured(found: Forecast, tried: Probe) -> Iterator[str]:
    if tried.pictures_per_second:
        yield f"{tried.pictures_per_second:,.0f} pictures a second decoded to {tried.side} x {tried.side}"
    if tried.sounds_per_second:
        yield f"{tried.sounds_per_second:,.0f} sounds a second decoded"
    if tried.features_per_second:
        yield f"{tried.features_per_second:,.0f} rows a second encoded, {tried.width} features each"
    elif tried.width:
        yield f"features of the rows that were tried are in the cache, {tried.width} each"
    if tried.steps:
        at = f", at {tried.side} x {tried.side}" if len(found.probes) > 1 else ""
        yield f"{tried.step_seconds:.3g} s a step (the median of {tried.steps}, on {tried.rows:,} of the rows){at}"
        yield f"{1000 * tried.answer_seconds:.3g} ms a row to predict"


def _time(found: Forecast) -> str:
    if "all" not in found.seconds:
        return "not known: an estimator trains to its own end" if found.probe is not None else "not known"
    parts = [f"{name} {duration(value)}" for name, value in found.seconds.items() if name != "all"]
    return f"about {duration(found.seconds['all'])} ({', '.join(parts)}): an estimate"
