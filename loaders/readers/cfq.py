"""CFQ: questions and SPARQL queries in one JSON list, and for each split a file with the places of its rows (Keysers et
al. 2020, arXiv 1912.09713)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import BadData
from ._layout import whole

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.members import Members

_TEXT = rb'"%s"\s*:\s*"((?:[^"\\]|\\.)*)"'
"""A text of the JSON file, as it stands there, by its key."""

_PARTS = {"trainIdxs": "train", "devIdxs": "dev", "testIdxs": "test"}


def read(files: dict[str, Any], *, folder: str, splits: dict[str, str]) -> pa.Table:
    """`question` and `query`, with placeholders for entities, and a field for each of `splits` (its file below
    `folder`/splits): train, dev, test, or "" for a row that it leaves out. A place in two parts is in the later one."""
    import pyarrow as pa

    held = whole(files)
    columns: dict[str, Any] = _texts(held, f"{folder}/dataset.json")
    try:
        for field, name in splits.items():
            said = _json(held, f"{folder}/splits/{name}")
            part = np.full(len(columns["question"]), "", dtype=object)
            for key, which in _PARTS.items():
                part[np.asarray(said.get(key, []), np.int64)] = which
            columns[field] = part.tolist()
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise BadData(f"{held.where} is not in the form of CFQ: {error!r}") from error
    return pa.table(columns)


def _texts(held: Members, name: str) -> dict[str, list[str]]:
    """Question and query of all rows. The file has 4 GB, of which these are little: no JSON is made of the rest, for
    which Python would need ten times its size."""
    content = held.read(name)
    found = {
        field: [json.loads(b'"%s"' % said[1]) for said in re.finditer(_TEXT % key, content)]
        for field, key in (("question", b"questionPatternModEntities"), ("query", b"sparqlPatternModEntities"))
    }
    questions, queries = len(found["question"]), len(found["query"])
    if not questions or questions != queries:
        raise BadData(f"{held.where} is not in the form of CFQ: {name} has {questions} questions and {queries} queries")
    return found


def _json(held: Members, name: str) -> Any:
    try:
        return json.loads(held.read(name))
    except ValueError as error:
        raise BadData(f"{held.where}: {name} is not JSON: {error}") from error
