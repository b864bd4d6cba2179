"""Questions and answers in JSON: a list of records, or an object with such a list (BIG-Bench Hard's `examples`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, BadDefinition

if TYPE_CHECKING:
    import pyarrow as pa


def read(
    files: dict[str, Path], *, columns: dict[str, str], constants: dict[str, dict[str, str | int]], records: str = ""
) -> pa.Table:
    """Text fields from the keys in `columns`, and for each file the fields in `constants`, the same in all its rows.
    records: the key of the list of records, if the file is not a list."""
    import pyarrow as pa

    if set(files) != set(constants):
        raise BadDefinition("json_examples: `constants` and the files of the distribution differ")
    rows: list[dict[str, Any]] = []
    for name, same in constants.items():
        try:
            content = json.loads(files[name].read_text("utf-8"))
            for record in content[records] if records else content:
                texts = {field: record[key] for field, key in columns.items()}
                if not all(isinstance(text, str) for text in texts.values()):
                    raise BadData(f"{name}: record {len(rows)} has a value that is not text")
                rows.append({**texts, **same})
        except (ValueError, KeyError, TypeError) as error:
            raise BadData(f"{name}: not JSON with the expected records: {type(error).__name__}: {error}") from error
    return pa.Table.from_pylist(rows)
