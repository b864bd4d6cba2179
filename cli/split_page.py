"""What `farshift splits show` adds to a manifest: the fields of its rows, where their bytes come from, the benchmarks
over it with the best recorded result of each, and a row of each part where the rows are in the cache already."""

from __future__ import annotations

from typing import Any

from ..benchmarks.benchmark import load_benchmarks
from ..core.errors import UnknownName
from ..loaders.acquire.source import Distribution, find_source
from ..loaders.cache.limit import format_size
from ..loaders.listing import has_local_rows
from ..loaders.mirrors import load_mirror
from ..loaders.split import open_split
from ..splits.manifest import Manifest

LONGEST = 72
"""The most characters of a value of an example row."""


def collect_related_facts(manifest: Manifest) -> dict[str, Any]:
    """Plain JSON. Nothing is downloaded: without the rows at hand there are no `example_rows`."""
    facts: dict[str, Any] = {"benchmarks": _list_benchmarks(manifest.full_name)}
    try:
        source = find_source(manifest.definition.source.name)
    except UnknownName:  # rows that come with the split itself, or of a source that is private elsewhere
        return facts
    label = manifest.definition.label
    names = find_class_names(manifest)
    facts["fields"] = [
        pin.model_dump() | ({"names": names} if names and pin.name == label else {}) for pin in source.definition.fields
    ]
    facts["origins"] = [_describe_origin(distribution) for distribution in source.definition.distributions]
    if source.definition.accept:
        facts["accept"] = source.definition.accept
    if has_local_rows(manifest) and source.cached_at.is_file():
        split = open_split(manifest.full_name)
        rows = {part: split.part(part)[0] for part in sorted(split.parts)}
        facts["example_rows"] = {part: _shorten_values(_name_class(row, label, names)) for part, row in rows.items()}
    return facts


def find_class_names(manifest: Manifest) -> list[str]:
    """What the classes 0, 1 .. of a split's label are called: as the split says it, or its source, or a benchmark over
    it; nothing where none does."""
    definition = manifest.definition
    if definition.label_names:
        return definition.label_names
    try:
        names = find_source(definition.source.name).class_names(definition.label)
    except UnknownName:
        names = []
    tasks = [
        benchmark.definition.task
        for benchmark in load_benchmarks().values()
        if benchmark.definition.split == manifest.full_name and benchmark.definition.task.label == definition.label
    ]
    return names or next((task.names for task in tasks if task.names), [])


def _name_class(row: dict[str, Any], label: str, names: list[str]) -> dict[str, Any]:
    """A row with what its class is called."""
    value = row.get(label)
    if not isinstance(value, int) or not 0 <= value < len(names):
        return row
    return row | {label: f"{value} ({names[value]})"}


def _describe_origin(distribution: Distribution) -> str:
    """The origin and size of a distribution's files, in words."""
    if distribution.generator:
        return f"generated locally ({distribution.generator})"
    if distribution.derivation:
        return f"derived from the source {distribution.of} ({distribution.derivation})"
    entries = [*distribution.files, *distribution.trees]
    sizes = [getattr(entry, "bytes", None) for entry in distribution.files]
    size = "" if distribution.trees or None in sizes else f", {format_size(sum(size or 0 for size in sizes))}"
    places = [load_mirror(mirror, entry.name)[1] for entry in entries[:1] for mirror in entry.mirrors]
    count = f"{len(entries)} file{'s' * (len(entries) > 1)}" if not distribution.trees else "a folder of files"
    where = " or ".join(places) or "your own copy (--data DIR)"
    return f"{distribution.name}: {count}{size}, from {where}{' ..' if len(entries) > 1 else ''}"


def _list_benchmarks(split: str) -> list[dict[str, Any]]:
    """The benchmarks over a split, each with the best recorded result by OOD score."""
    from ..baselines.running.recorded_scores import read_recorded_scores

    records = []
    for name, benchmark in sorted(load_benchmarks().items()):
        if benchmark.definition.split != split:
            continue
        scores = read_recorded_scores(name).values()
        best = max(
            scores, key=lambda score: score.ood.value if score.better == "higher" else -score.ood.value, default=None
        )
        records.append({"benchmark": name} | ({} if best is None else {"best": best.to_dict()}))
    return records


def _shorten_values(row: dict[str, Any]) -> dict[str, str]:
    """A row's values in a line each."""
    return {name: _format_value(value) for name, value in row.items()}


def _format_value(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}.."
