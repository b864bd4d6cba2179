"""What `farshift splits show` adds to a manifest: the fields of its rows, where their bytes come from, the benchmarks
over it with the best recorded result of each, and a row of each part where the rows are in the cache already."""

from __future__ import annotations

from typing import Any

from ..benchmarks.benchmark import benchmarks
from ..core.errors import UnknownName
from ..loaders.acquire.source import Distribution, find_source
from ..loaders.cache.limit import size_in_words
from ..loaders.listing import at_hand
from ..loaders.mirrors import opened
from ..loaders.split import open_split
from ..splits.manifest import Manifest

LONGEST = 72
"""The most characters of a value of an example row."""


def surroundings(manifest: Manifest) -> dict[str, Any]:
    """Plain JSON. Nothing is downloaded: without the rows at hand there are no `example_rows`."""
    found: dict[str, Any] = {"benchmarks": _benchmarks(manifest.full_name)}
    try:
        source = find_source(manifest.definition.source.name)
    except UnknownName:  # rows that come with the split itself, or of a source that is private elsewhere
        return found
    label = manifest.definition.label
    names = class_names(manifest)
    found["fields"] = [
        pin.model_dump() | ({"names": names} if names and pin.name == label else {}) for pin in source.definition.fields
    ]
    found["origins"] = [_origin(one) for one in source.definition.distributions]
    if source.definition.accept:
        found["accept"] = source.definition.accept
    if at_hand(manifest) and source.cached_at.is_file():
        split = open_split(manifest.full_name)
        rows = {part: split.part(part)[0] for part in sorted(split.parts)}
        found["example_rows"] = {part: _short(_named(row, label, names)) for part, row in rows.items()}
    return found


def class_names(manifest: Manifest) -> list[str]:
    """What the classes 0, 1 .. of a split's label are called: as the split says it, or its source, or a benchmark over
    it; nothing where none does."""
    definition = manifest.definition
    if definition.label_names:
        return definition.label_names
    try:
        found = find_source(definition.source.name).class_names(definition.label)
    except UnknownName:
        found = []
    tasks = [
        one.definition.task
        for one in benchmarks().values()
        if one.definition.split == manifest.full_name and one.definition.task.label == definition.label
    ]
    return found or next((task.names for task in tasks if task.names), [])


def _named(row: dict[str, Any], label: str, names: list[str]) -> dict[str, Any]:
    """A row with what its class is called."""
    value = row.get(label)
    if not isinstance(value, int) or not 0 <= value < len(names):
        return row
    return row | {label: f"{value} ({names[value]})"}


def _origin(distribution: Distribution) -> str:
    """Where a distribution's bytes come from, and how many they are, in words."""
    if distribution.generator:
        return f"generated here ({distribution.generator})"
    if distribution.derivation:
        return f"made of the source {distribution.of} ({distribution.derivation})"
    wanted = [*distribution.files, *distribution.trees]
    sizes = [getattr(one, "bytes", None) for one in distribution.files]
    size = "" if distribution.trees or None in sizes else f", {size_in_words(sum(size or 0 for size in sizes))}"
    places = [opened(mirror, one.name)[1] for one in wanted[:1] for mirror in one.mirrors]
    count = f"{len(wanted)} file{'s' * (len(wanted) > 1)}" if not distribution.trees else "a folder of files"
    where = " or ".join(places) or "your own copy (--data DIR)"
    return f"{distribution.name}: {count}{size}, by {where}{' ..' if len(wanted) > 1 else ''}"


def _benchmarks(split: str) -> list[dict[str, Any]]:
    """The benchmarks over a split, each with the best recorded result by OOD score."""
    from ..baselines.running.recorded_scores import kept_scores

    found = []
    for name, benchmark in sorted(benchmarks().items()):
        if benchmark.definition.split != split:
            continue
        scores = kept_scores(name).values()
        best = max(scores, key=lambda one: one.ood.value if one.better == "higher" else -one.ood.value, default=None)
        found.append({"benchmark": name} | ({} if best is None else {"best": best.to_dict()}))
    return found


def _short(row: dict[str, Any]) -> dict[str, str]:
    """A row's values in a line each."""
    return {name: _in_a_line(value) for name, value in row.items()}


def _in_a_line(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}.."
