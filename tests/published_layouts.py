"""Public sources read from small files in their published layouts, by the definition that ships."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from farshift.loaders.acquire.source import find_source
from farshift.loaders.readers import read_tables


def read_small(name: str, files: dict[str, str | bytes], folder: Path) -> pa.Table:
    """What the source's own distribution makes of these files, each of which it must name."""
    source = find_source(name)
    (distribution,) = source.definition.distributions
    assert {pin.name for pin in distribution.files} == set(files)
    for file, text in files.items():
        (folder / file).write_bytes(text.encode() if isinstance(text, str) else text)
    in_order = {pin.name: folder / pin.name for pin in distribution.files}
    tables = read_tables(distribution.reader, {"files": in_order, **distribution.options}, source.schema, name)
    full = pa.concat_tables(tables, promote_options="permissive")
    return source.schema.conform(full, name)


def check_layout(name: str, layout: tuple[dict[str, str | bytes], dict[str, list]], folder: Path) -> None:
    """The files give these values of these fields."""
    files, some = layout
    result = read_small(name, files, folder).select(list(some)).to_pydict()
    assert result == {
        field: pytest.approx(values) if isinstance(values[0], float) else values for field, values in some.items()
    }
