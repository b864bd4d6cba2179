"""Questions and their SQL, in the format in which Finegan-Dollak et al. 2018 (arXiv 1806.09029) published eight data
sets: a JSON list of queries, each with all its questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, BadDefinition

if TYPE_CHECKING:
    import pyarrow as pa


def read(files: dict[str, Path]) -> pa.Table:
    """One row per question, with the fields `question`; `sql`, the first of the equivalent queries; `query`, the
    query's number in the file; `query_split` and `question_split`, the published parts by query and by question; and
    `words`, the number of words of the question.

    Values are the variables of the file ("state_name0"), in both question and query.
    """
    import pyarrow as pa

    if len(files) != 1:
        raise BadDefinition("text_to_sql reads one file")
    ((name, path),) = files.items()
    rows: list[dict[str, Any]] = []
    try:
        for number, query in enumerate(json.loads(path.read_text("utf-8"))):
            for sentence in query["sentences"]:
                rows.append(
                    {
                        "question": " ".join(sentence["text"].split()),
                        "sql": " ".join(query["sql"][0].split()),
                        "query": number,
                        "query_split": query["query-split"],
                        "question_split": sentence["question-split"],
                        "words": len(sentence["text"].split()),
                    }
                )
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise BadData(f"{name}: not JSON with questions and SQL: {type(error).__name__}: {error}") from error
    return pa.Table.from_pylist(rows)
