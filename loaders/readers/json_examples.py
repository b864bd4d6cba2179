"""Questions and answers in JSON: a list of records, or one that a key holds (BIG-Bench Hard's `examples`)."""

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
    """Text fields, each from the key that `columns` names, and the fields that `constants` gives all rows of a file.
    records: the key of the list of records, where the file is no list itself."""
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
                    raise BadData(f"{name}: record {len(rows)} holds what is no text")
                rows.append({**texts, **same})
        except (ValueError, KeyError, TypeError) as error:
            raise BadData(f"{name}: not the JSON of records: {type(error).__name__}: {error}") from error
    return pa.Table.from_pylist(rows)
