"""Questions of the AI2 Reasoning Challenge with annotations of their difficulty.

The questions are read from evaluation requests (gzipped JSON lines, one for each option of a question), the annotations
from the file of Hase et al. 2024 (arXiv 2401.06751). Questions without annotations are left out.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, BadDefinition

if TYPE_CHECKING:
    import pyarrow as pa

_QUERY = re.compile(r"Question: (?P<question>.+?)\n A\. (?P<options>.+)\nAnswer:", re.DOTALL)
_PREFIXES = {"challenge": "ARCCH_", "easy": "ARCEZ_"}
_LEVELS = {
    "bloom": ("Remembering", "Understanding", "Applying", "Analyzing", "Evaluating"),
    "depth_of_knowledge": ("I", "II", "III"),
    "difficulty": ("Low", "Medium", "High"),
}
_GRADE = re.compile(r"Grade (\d+)")
_HIGH_SCHOOL = 9
"""The grade of questions that are filed under a subject (Biology, Earth and Space Sciences) instead of a grade."""


def read(files: dict[str, Path], *, requests: dict[str, str], annotations: str) -> pa.Table:
    """Fields: `question`, `options` (one per line, `A. ..`), `answer` (the index of the right option, from 0),
    `collection`, `hard` (1 in the challenge set, 0 in the easy one), `grade`, `bloom`, `depth_of_knowledge` and
    `difficulty`.

    requests: for each file of requests, the set of ARC ("easy" or "challenge") of its questions. The
    annotated levels are numbered from 1, easiest first; `grade` is the school grade, 3 to 8, or 9 for high school.
    """
    import pyarrow as pa

    if unknown := sorted(set(requests.values()) - set(_PREFIXES)):
        raise BadDefinition(f"arc_annotated: unknown set {', '.join(unknown)}: use {' or '.join(_PREFIXES)}")
    try:
        known = json.loads(files[annotations].read_text("utf-8"))
    except ValueError as error:
        raise BadData(f"{annotations} is not JSON: {error}") from error
    rows = {}
    for name, collection in requests.items():
        for doc in _read_documents(name, files[name]):
            key = _PREFIXES[collection] + doc["id"]
            if key in known and key not in rows:
                rows[key] = (
                    _parse_question(name, doc)
                    | _parse_levels(key, known[key])
                    | {
                        "collection": collection,
                        "hard": int(collection == "challenge"),
                    }
                )
    return pa.Table.from_pylist(list(rows.values()))


def _read_documents(name: str, path: Path) -> list[dict[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line)["doc"] for line in lines]
    except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise BadData(f"{name} is not gzipped JSON with one request and its `doc` per line: {error}") from error


def _parse_question(name: str, doc: dict[str, Any]) -> dict[str, Any]:
    match = _QUERY.fullmatch(doc["query"])
    if not match or not 0 <= doc["gold"] < len(doc["choices"]):
        raise BadData(f"{name}: {doc['id']} is not a question with lettered options and the index of the right one")
    return {
        "question": match["question"],
        "options": "A. " + match["options"].replace("\n ", "\n"),
        "answer": doc["gold"],
    }


def _parse_levels(key: str, annotation: dict[str, str]) -> dict[str, int]:
    grade = _GRADE.fullmatch(annotation["grade"])
    levels = {"grade": int(grade[1]) if grade else _HIGH_SCHOOL}
    for field, names in _LEVELS.items():
        if annotation[field] not in names:
            raise BadData(f"{key}: {field} is {annotation[field]!r}, expected one of {', '.join(names)}")
        levels[field] = names.index(annotation[field]) + 1
    return levels
