"""BoolQ's questions of yes and no in Parquet, and its contrast sets in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...core.documents import read_json
from ..files.reader_errors import convert_reader_errors

_ANSWERS = {"FALSE": 0, "TRUE": 1}


def read(files: Mapping[str, Path], *, contrast: str) -> Iterator[pa.Table]:
    """Yield the rows of all files (Clark et al. 2019, arXiv 1905.10044; Gardner et al. 2020, arXiv 2004.02709).

    Fields: `passage`, `question`, `answer` (1 is yes), `version` ("original" or "contrast") and `origin`: the name of a
    Parquet file without its ending, "original test" and "contrast test" in the file `contrast`, a list of records with
    `perturbed_questions` under `data`. Its first record only says what the keys mean; questions without an answer are
    left out.
    """
    for name, path in files.items():
        with convert_reader_errors(name, "boolq"):
            if name == contrast:
                yield _read_contrast_sets(path)
            else:
                table = pq.read_table(path, columns=["passage", "question", "answer"])
                table = table.set_column(2, "answer", table["answer"].cast(pa.int64()))
                for field, value in (("version", "original"), ("origin", name.removesuffix(".parquet"))):
                    table = table.append_column(field, pa.array([value] * table.num_rows))
                yield table


def _read_contrast_sets(path: Path) -> pa.Table:
    rows = []
    for record in read_json(path, dict)["data"][1:]:
        questions = [("original", record["question"], record["answer"])]
        questions += [("contrast", item["perturbed_q"], item["answer"]) for item in record["perturbed_questions"]]
        rows += [
            {
                "passage": record["paragraph"],
                "question": question,
                "answer": _ANSWERS[answer],
                "version": version,
                "origin": f"{version} test",
            }
            for version, question, answer in questions
            if answer
        ]
    return pa.Table.from_pylist(rows)
