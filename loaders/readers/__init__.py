"""Readers: each converts a distribution's files to tables of the source's fields.

A reader is a function `(files, **options)` that returns a table, or yields tables (for data that are larger than
memory). `files` are paths (or `ArchiveFiles`, for folders) by name; a parameter `schema` gets the source's schema. The
reader `table` is `read` of the module `table.py`; `digits/idx` is the function `idx` of `digits.py`, which has several.
In a module with `PUBLISHED_FORM = True` each reader relies on the form in which one data set was published.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from ...core.errors import BadDefinition, get_first_line
from ...core.plugins import load_function
from ...splits.schema import Schema
from ..files.reader_errors import convert_reader_errors

if TYPE_CHECKING:
    import pyarrow as pa


def load_reader(name: str) -> Callable[..., Any]:
    """Load a reader, of the package or a user's folder, as a function that returns a table or yields tables.
    Raises `UnknownName` if there is none."""
    call: Callable[..., Any] = load_function("loaders/readers", name if "/" in name else f"{name}/read", "reader")
    return call


def read_tables(reader: str, arguments: Mapping[str, Any], schema: Schema, where: str) -> Iterator[pa.Table]:
    """Yield the tables that a reader makes of `arguments`: its `files` and options. `where` names the source in
    messages. Raises `BadDefinition` for options that it does not have."""
    import pyarrow as pa

    call = load_reader(reader)
    own = {"schema": schema} if "schema" in signature(call).parameters else {}
    try:
        signature(call).bind(**own, **arguments)
    except TypeError as error:
        raise BadDefinition(f"{where}: {get_first_line(error)}") from error
    # A published form is proven by the digests of the files or of the rows, so its readers do not check it.
    is_published = getattr(sys.modules[call.__module__], "PUBLISHED_FORM", False)
    with convert_reader_errors(where, reader.rpartition("/")[2] if is_published else ""):
        tables = call(**own, **arguments)
        yield from [tables] if isinstance(tables, pa.Table) else tables
