"""The data type of a benchmark (images, audio, text or tabular), by the types of its inputs."""

from __future__ import annotations

from collections.abc import Collection

from ...benchmarks.benchmark import load_benchmarks
from ...loaders.acquire.source import load_sources
from ...splits.schema import Field

FIELDS = ("pictures", "sound", "text", "tables")


_FIELD_CACHE: dict[tuple[str, str], str] = {}


def classify_benchmarks(names: Collection[str]) -> dict[str, str]:
    """Return the data type of each benchmark by name: `pictures`, `sound`, `text` (any input is a string), or `tables`
    (numbers and codes); `other` for an unknown benchmark. Definitions are read once for all of them."""
    known = load_benchmarks()
    benchmarks_by_name = {name: known[name] for name in names if name in known}
    keys = {name: (name, benchmark.definition.split) for name, benchmark in benchmarks_by_name.items()}
    if any(key not in _FIELD_CACHE for key in keys.values()):
        known_sources = load_sources()
        for name, benchmark in benchmarks_by_name.items():
            source = known_sources.get(benchmark.manifest.definition.source.name)
            inputs = [] if source is None else source.schema.fields
            _FIELD_CACHE[keys[name]] = classify_inputs(
                [field for field in inputs if field.name in benchmark.definition.task.inputs]
            )
    return {name: _FIELD_CACHE[keys[name]] if name in keys else "other" for name in names}


def classify_inputs(inputs: list[Field]) -> str:
    """Return the data type for these inputs."""
    names = {_classify_type(field.type) for field in inputs}
    return next((name for name in FIELDS if name in names), "tables")


def _classify_type(type_: str) -> str:
    if type_ == "image" or (type_.startswith("uint8[") and "," in type_):
        return "pictures"
    return {"audio": "sound", "string": "text", "bytes": "text"}.get(type_, "tables")
