"""Of what field a benchmark's data are, by the types of its inputs."""

from __future__ import annotations

from collections.abc import Collection

from ...benchmarks.benchmark import benchmarks
from ...loaders.acquire.source import sources
from ...splits.schema import Field

FIELDS = ("pictures", "sound", "text", "tables")


_FOUND: dict[tuple[str, str], str] = {}


def fields_of(names: Collection[str]) -> dict[str, str]:
    """For benchmarks by name `pictures`, `sound`, `text` (any input that is a string), or `tables` (numbers and codes);
    `other` where a benchmark is not known here. Definitions are read once for all of them."""
    known = benchmarks()
    wanted = {name: known[name] for name in names if name in known}
    keys = {name: (name, one.definition.split) for name, one in wanted.items()}
    if any(key not in _FOUND for key in keys.values()):
        held = sources()
        for name, one in wanted.items():
            source = held.get(one.manifest.definition.source.name)
            inputs = [] if source is None else source.schema.fields
            _FOUND[keys[name]] = kind_of([field for field in inputs if field.name in one.definition.task.inputs])
    return {name: _FOUND[keys[name]] if name in keys else "other" for name in names}


def kind_of(inputs: list[Field]) -> str:
    """The field of data with these inputs."""
    names = {_kind(one.type) for one in inputs}
    return next((name for name in FIELDS if name in names), "tables")


def _kind(type_: str) -> str:
    if type_ == "image" or (type_.startswith("uint8[") and "," in type_):
        return "pictures"
    return {"audio": "sound", "string": "text", "bytes": "text"}.get(type_, "tables")
