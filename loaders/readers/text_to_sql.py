"""Questions and their SQL, as Finegan-Dollak et al. 2018 (arXiv 1806.09029) published eight data sets in one form: a
JSON list of queries, each with all questions that ask it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, BadDefinition

if TYPE_CHECKING:
    import pyarrow as pa


def read(files: dict[str, Path]) -> pa.Table:
    """One row a question: `question`; `sql`, the first of the equivalent queries given; `query`, the query's number in
    the file; `query_split` and `question_split`, the published parts by query and by question; `words` of the question.

    Values stay the variables that the file names ("state_name0"), in question and query alike.
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
        raise BadData(f"{name}: not the JSON of questions and SQL: {type(error).__name__}: {error}") from error
    return pa.Table.from_pylist(rows)
