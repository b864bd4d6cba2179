"""Of what field a benchmark's data are, by the types of its inputs."""

from __future__ import annotations

from functools import cache

from ...benchmarks.benchmark import find_benchmark
from ...core.errors import FarshiftError
from ...loaders.acquire.source import find_source
from ...splits.schema import Field

FIELDS = ("pictures", "sound", "text", "tables")


@cache
def field_of(benchmark: str) -> str:
    """`pictures`, `sound`, `text` (any input that is a string), or `tables` (numbers and codes); `other` where the
    benchmark is not known here."""
    try:
        known = find_benchmark(benchmark)
        source = find_source(known.manifest.definition.source.name)
        types = [one for one in source.schema.fields if one.name in known.definition.task.inputs]
    except FarshiftError:
        return "other"
    return kind_of(types)


def kind_of(inputs: list[Field]) -> str:
    """The field of data with these inputs."""
    names = {_kind(one.type) for one in inputs}
    return next((name for name in FIELDS if name in names), "tables")


def _kind(type_: str) -> str:
    if type_ == "image" or (type_.startswith("uint8[") and "," in type_):
        return "pictures"
    return {"audio": "sound", "string": "text", "bytes": "text"}.get(type_, "tables")
