"""GSM-Symbolic (Mirzadeh et al. 2024, arXiv 2410.05229): variants of GSM8K's problems, and GSM8K itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData, BadDefinition
from ._utf8_lines import read_utf8_lines

if TYPE_CHECKING:
    import pyarrow as pa

_ANSWER = re.compile(r"(?P<solution>.*)\n#### (?P<answer>-?[\d,]*\.?\d+)\s*", re.DOTALL)


def read(files: dict[str, Path], *, train: str, test: str, variants: str, clauses: int) -> pa.Table:
    """Fields: `question`, `answer` (the final number, in digits without commas), `origin` ("train" and "test" of GSM8K,
    or "variants"), `problem`: the GSM8K problem that a row is or is derived from, such as "test 473", and `clauses`:
    how many clauses a row has more than this problem (the option `clauses` for the variants).

    Raises `BadData` if a variant's original is not the problem with its number in the test file.
    """
    import pyarrow as pa

    named = {"train": train, "test": test, "variants": variants}
    if set(files) != set(named.values()):
        raise BadDefinition(f"gsm_symbolic reads {', '.join(named.values())}, but the files are {', '.join(files)}")
    rows: list[dict[str, str | int]] = []
    tests: list[str] = []
    for origin, name in named.items():
        for number, line in enumerate(read_utf8_lines(name, files[name])):
            try:
                record = json.loads(line)
                match = _ANSWER.fullmatch(record["answer"])
                if match is None:
                    raise ValueError("the solution does not end with '#### ' and a number")
                problem = f"{origin} {number}"
                if origin == "test":
                    tests.append(record["question"].strip())
                if origin == "variants":
                    if tests[record["original_id"]] != record["original_question"].strip():
                        raise ValueError(f"it is not derived from problem {record['original_id']} of {test}")
                    problem = f"test {record['original_id']}"
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise BadData(f"{name}: line {number + 1}: {type(error).__name__}: {error}") from error
            answer = match["answer"].replace(",", "")
            clause_count = clauses if origin == "variants" else 0
            row = {"question": record["question"], "answer": answer, "origin": origin, "problem": problem}
            rows.append({**row, "clauses": clause_count})
    return pa.Table.from_pylist(rows)
