"""GSM-Plus (Li et al. 2024, arXiv 2402.19255): problems of GSM8K's test part, changed in eight ways, and GSM8K."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData, BadDefinition
from ._utf8_lines import read_utf8_lines

if TYPE_CHECKING:
    import pyarrow as pa

_SOLVED = re.compile(r".*\n#### (?P<answer>-?[\d,]*\.?\d+)\s*", re.DOTALL)
_NUMBER = re.compile(r"-?[\d,]*\.?\d+")


def read(files: dict[str, Path], *, train: str, test: str, changed: str) -> pa.Table:
    """Fields: `question`, `answer` (in digits without commas), `origin` ("train" and "test" of GSM8K, or "changed"),
    `change` (how, or "none"), and `problem`: the GSM8K problem that a row is or is derived from, such as "test 473".

    Changed problems whose answer is not a number are left out: those that cannot be answered, and a few others.
    """
    import pyarrow as pa

    named = {"train": train, "test": test, "changed": changed}
    if set(files) != set(named.values()):
        raise BadDefinition(f"gsm_plus reads {', '.join(named.values())}, but the files are {', '.join(files)}")
    rows: list[dict[str, str]] = []
    tests: dict[str, str] = {}
    for origin, name in named.items():
        for number, line in enumerate(read_utf8_lines(name, files[name])):
            try:
                record = json.loads(line)
                question, problem, change = record["question"], f"{origin} {number}", "none"
                if origin == "changed":
                    problem, change = tests[record["seed_question"].strip()], record["perturbation_type"]
                    match = _NUMBER.fullmatch(record["answer"].strip())
                    if match is None:
                        continue
                    answer = match[0]
                else:
                    solved = _SOLVED.fullmatch(record["answer"])
                    if solved is None:
                        raise ValueError("the solution does not end with '#### ' and a number")
                    answer = solved["answer"]
                if origin == "test":
                    tests[question.strip()] = problem
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise BadData(f"{name}: line {number + 1}: {type(error).__name__}: {error}") from error
            row = {"question": question, "answer": answer.replace(",", ""), "origin": origin}
            rows.append({**row, "change": change, "problem": problem})
    return pa.Table.from_pylist(rows)
