"""CFQ: questions and SPARQL queries in one JSON list, and for each split a file with the indices of its rows (Keysers
et al. 2020, arXiv 1912.09713)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import BadData
from ._layout import get_archive

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.archive_files import ArchiveFiles

_TEXT = rb'"%s"\s*:\s*"((?:[^"\\]|\\.)*)"'
"""The pattern of a string value in the JSON file, by its key."""

_PARTS = {"trainIdxs": "train", "devIdxs": "dev", "testIdxs": "test"}


def read(files: dict[str, Any], *, folder: str, splits: dict[str, str]) -> pa.Table:
    """Fields: `question` and `query`, with placeholders for entities, and a field for each of `splits` (its file below
    `folder`/splits): train, dev, test, or "" for a row that it leaves out; of two parts of a row the later one."""
    import pyarrow as pa

    archive = get_archive(files)
    columns: dict[str, Any] = _read_texts(archive, f"{folder}/dataset.json")
    try:
        for field, name in splits.items():
            split = _read_json(archive, f"{folder}/splits/{name}")
            part = np.full(len(columns["question"]), "", dtype=object)
            for key, which in _PARTS.items():
                part[np.asarray(split.get(key, []), np.int64)] = which
            columns[field] = part.tolist()
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise BadData(f"{archive.where} is not in CFQ's format: {error!r}") from error
    return pa.table(columns)


def _read_texts(archive: ArchiveFiles, name: str) -> dict[str, list[str]]:
    """Return the question and the query of all rows. They are a small part of a file of 4 GB, and parsing all of it as
    JSON would take ten times as much memory."""
    content = archive.read(name)
    texts = {
        field: [json.loads(b'"%s"' % match[1]) for match in re.finditer(_TEXT % key, content)]
        for field, key in (("question", b"questionPatternModEntities"), ("query", b"sparqlPatternModEntities"))
    }
    questions, queries = len(texts["question"]), len(texts["query"])
    if not questions or questions != queries:
        raise BadData(f"{archive.where} is not in CFQ's format: {name} has {questions} questions and {queries} queries")
    return texts


def _read_json(archive: ArchiveFiles, name: str) -> Any:
    try:
        return json.loads(archive.read(name))
    except ValueError as error:
        raise BadData(f"{archive.where}: {name} is not JSON: {error}") from error
