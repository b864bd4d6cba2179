"""Several files, each with its own reader, concatenated: for example training rows from one data set and test rows from
a later collection of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...core.errors import BadDefinition, UnknownName
from ...splits.schema import Schema
from . import read_tables


def read(files: dict[str, Any], *, of: Sequence[Mapping[str, Any]], schema: Schema) -> Iterator[pa.Table]:
    """Yield the rows of each entry of `of`, in order. An entry has a `reader`, the names of its `files` (by default
    all), its `options`, and `constants`: fields with the same value in all its rows, such as
    `{ origin = "CIFAR-10.1" }`.
    """
    for entry in of:
        if unknown := sorted(set(entry) - {"reader", "files", "options", "constants"}):
            raise BadDefinition(f"together: {', '.join(unknown)}: an entry has reader, files, options and constants")
        its = entry.get("files", list(files))
        if absent := sorted(set(its) - set(files)):
            raise UnknownName("file of the distribution", absent[0], files)
        arguments = {"files": {name: files[name] for name in its}, **entry.get("options", {})}
        for table in read_tables(entry["reader"], arguments, schema, "together"):
            for field, value in entry.get("constants", {}).items():
                if field in table.column_names:
                    raise BadDefinition(f"together: the field {field!r} is both read and a constant")
                table = table.append_column(field, pa.repeat(pa.scalar(value), table.num_rows))
            yield table
