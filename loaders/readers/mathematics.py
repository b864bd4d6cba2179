"""Mathematical problems in words, with their answers."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa

from ...core.documents import parse_json
from ._layout import get_archive, read_utf8_lines

PUBLISHED_FORM = True

_NUMBER_AND_UNIT = re.compile(r"(?P<number>-?[\d,]*\.?\d+)(?: *\([^;]*\))?")
_PROBLEM_TAGS = ("Body", "Question", "Answer", "Solution-Type")
_BOX, _BOX_AND_SPACES = re.compile(r"\\(?:boxed|fbox)"), re.compile(r"\\(?:boxed|fbox)\s*")
_SOLVED = re.compile(r"(?P<solution>.*)\n#### (?P<answer>-?[\d,]*\.?\d+)\s*", re.DOTALL)
_NUMBER = re.compile(r"-?[\d,]*\.?\d+")
_MARK = re.compile(r"number(\d+)")


def asdiv(files: dict[str, Path]) -> pa.Table:
    """ASDiv (Miao, Liang and Su 2020, arXiv 2106.15772): arithmetic word problems of six school grades, in XML.

    Fields: `question` (the body and its question), `answer` (a number in digits, without its unit), `grade` (1 to 6),
    `operation` (the published type of its solution) and `number` (of the problem). Problems whose answer is not one
    number are left out.
    """
    (path,) = files.values()
    rows = []
    for problem in ElementTree.parse(path).getroot().iter("Problem"):
        body, question, answer, operation = (" ".join((problem.findtext(tag) or "").split()) for tag in _PROBLEM_TAGS)
        if match := _NUMBER_AND_UNIT.fullmatch(answer):
            row = {"question": f"{body} {question}".strip(), "answer": match["number"].replace(",", "")}
            grade, number = int(problem.attrib["Grade"]), problem.attrib["ID"]
            rows.append({**row, "grade": grade, "operation": operation, "number": number})
    return pa.Table.from_pylist(rows)


def word_problems(files: dict[str, Path], *, origin: dict[str, str]) -> pa.Table:
    """Word problems of SVAMP, ASDiv-A and MAWPS (Patel, Bhattamishra and Goyal 2021, arXiv 2103.07191): the table of an
    experiment, with the numbers in a separate column, or SVAMP.json.

    Fields: `question` (of a table, with its numbers in place of "number0", "number1" ..); `answer`, a number with at
    most two decimals; `operations`, the number of operations in the published equation; and `origin`, as given for the
    file.
    """
    rows: list[dict[str, Any]] = []
    for name, meaning in origin.items():
        as_json, content = name.endswith(".json"), files[name].read_bytes()
        rows += (
            {
                "question": _join_body(record) if as_json else _fill_in_numbers(record),
                "answer": f"{float(record['Answer']):.2f}".rstrip("0").rstrip("."),
                "operations": sum(sign in "+-*/" for sign in record["Equation"].split()),
                "origin": meaning,
            }
            for record in (parse_json(content) if as_json else csv.DictReader(read_utf8_lines(content)))
        )
    return pa.Table.from_pylist(rows)


def _join_body(record: dict[str, str]) -> str:
    """The body and question, with a space before punctuation, as in the tables: else training would differ by it."""
    return re.sub(r"(?<=\S)([.,?])(?=\s|$)", r" \1", f"{record['Body']} {record['Question']}")


def _fill_in_numbers(record: dict[str, str]) -> str:
    values = [number.removesuffix(".0") for number in record["Numbers"].split()]
    return _MARK.sub(lambda mark: values[int(mark[1])], record["Question"])


def boxed_answers(files: dict[str, Path]) -> pa.Table:
    """MATH (Hendrycks et al. 2021, arXiv 2103.03874): competition problems whose solution boxes its answer.

    Fields, from lines of JSON: `problem`, `answer` (the content of the last box of the solution, with single spaces),
    `subject`, `level` (1 to 5, or 0 if none is given) and `solution`.
    """
    (path,) = files.values()
    return pa.Table.from_pylist(
        [{**_read_problem(record, normalise=True), "subject": record["type"]} for _, record in _iterate_records(path)]
    )


def math_problems(files: dict[str, Any]) -> pa.Table:
    """MATH: a JSON file for each problem, in folders of part and subject.

    Fields: those of `boxed_answers`, with the spaces of the answer as they are and the folder as `subject`; and `cell`
    (part and level, such as "train/3").
    """
    rows = []
    for name, content in get_archive(files).walk(lambda name: name.endswith(".json")):
        *_, part, subject, _ = ["", *name.split("/")]
        row = _read_problem(parse_json(content), normalise=False)
        rows.append({**row, "subject": subject, "cell": f"{part}/{row['level']}"})
    return pa.Table.from_pylist(rows)


def _read_problem(record: dict[str, str], normalise: bool) -> dict[str, Any]:
    return {
        "problem": record["problem"],
        "answer": extract_boxed(record["solution"], normalise),
        "solution": record["solution"],
        "level": int(record["level"].removeprefix("Level ").replace("?", "0")),
    }


def extract_boxed(solution: str, normalise: bool = False) -> str:
    """Return the content of the last \\boxed of a solution: in (nested) braces or, without braces, up to the next
    dollar sign. normalise: spaces before the brace are skipped, and those in the content made single. Raises
    `ValueError` if there is no box."""
    boxes = list((_BOX_AND_SPACES if normalise else _BOX).finditer(solution))
    if not boxes:
        raise ValueError(f"no box in {solution[-60:]!r}")
    rest = solution[boxes[-1].end() :]
    if not rest.startswith("{"):
        content = rest.split("$")[0].strip()
        return " ".join(content.split()) if normalise else content
    depth = 0
    for index, sign in enumerate(rest):
        depth += (sign == "{") - (sign == "}")
        if depth == 0:
            return " ".join(rest[1:index].split()) if normalise else rest[1:index]
    raise ValueError(f"an open box in {solution[-60:]!r}")


def gsm8k(files: dict[str, Path], *, parts: dict[str, str], solutions: str) -> pa.Table:
    """GSM8K: grade-school word problems with worked solutions, and the results of four published systems on the test
    part.

    Fields: `question`, `answer` (the final number, in digits without commas), `solution` (the worked lines), `origin`,
    `steps`, `words`, and `failures`.

    parts: the published part (`origin`) that each file of problems holds. solutions: the file of model solutions.
    `steps` counts the lines of the solution (Hase et al. 2024, arXiv 2401.06751); `words` those of the question;
    `failures` the systems that do not solve the problem, or -1 if none was evaluated on it.
    """
    failed = {}
    for _, record in _iterate_records(files[solutions]):
        systems = [value for value in record.values() if isinstance(value, dict)]
        failed[record["question"]] = sum(not system["is_correct"] for system in systems)
    rows = []
    for name, part in parts.items():
        for _, record in _iterate_records(files[name]):
            solution, answer = _split_solution(record["answer"])
            rows.append(
                {
                    "question": record["question"],
                    "answer": answer,
                    "solution": solution,
                    "origin": part,
                    "steps": solution.count("\n") + 1,
                    "words": len(record["question"].split()),
                    "failures": failed.get(record["question"], -1),
                }
            )
    return pa.Table.from_pylist(rows)


def gsm_plus(files: dict[str, Path], *, train: str, test: str, changed: str) -> pa.Table:
    """GSM-Plus (Li et al. 2024, arXiv 2402.19255): problems of GSM8K's test part, changed in eight ways, and GSM8K.

    Fields: `question`, `answer` (in digits without commas), `origin` ("train" and "test" of GSM8K, or "changed"),
    `change` (how, or "none"), and `problem`: the GSM8K problem that a row is or is derived from, such as "test 473".

    Changed problems whose answer is not a number are left out: those that cannot be answered, and a few others.
    """
    rows = _read_gsm8k(files, train=train, test=test)
    problems = {row["question"].strip(): row["problem"] for row in rows if row["origin"] == "test"}
    for row in rows:
        row["change"] = "none"
    for _, record in _iterate_records(files[changed]):
        if _NUMBER.fullmatch(answer := record["answer"].strip()):
            row = {"question": record["question"], "answer": answer.replace(",", ""), "origin": "changed"}
            change, problem = record["perturbation_type"], problems[record["seed_question"].strip()]
            rows.append({**row, "change": change, "problem": problem})
    return pa.Table.from_pylist(rows)


def gsm_symbolic(files: dict[str, Path], *, train: str, test: str, variants: str, clauses: int) -> pa.Table:
    """GSM-Symbolic (Mirzadeh et al. 2024, arXiv 2410.05229): variants of GSM8K's problems, and GSM8K itself.

    Fields: `question`, `answer` (the final number, in digits without commas), `origin` ("train" and "test" of GSM8K, or
    "variants"), `problem`: the GSM8K problem that a row is or is derived from, such as "test 473", and `clauses`: how
    many clauses a row has more than this problem (the option `clauses` for the variants).

    """
    rows = [{**row, "clauses": 0} for row in _read_gsm8k(files, train=train, test=test)]
    for _, record in _iterate_records(files[variants]):
        row = {"question": record["question"], "answer": _split_solution(record["answer"])[1], "origin": "variants"}
        rows.append({**row, "problem": f"test {record['original_id']}", "clauses": clauses})
    return pa.Table.from_pylist(rows)


def _read_gsm8k(files: dict[str, Path], **names: str) -> list[dict[str, Any]]:
    """Read the question, the answer and the `problem` of each row of GSM8K's files, by `origin`."""
    return [
        {
            "question": record["question"],
            "answer": _split_solution(record["answer"])[1],
            "origin": origin,
            "problem": f"{origin} {number}",
        }
        for origin, name in names.items()
        for number, record in _iterate_records(files[name])
    ]


def _iterate_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON object of each line, with the line's number from 0."""
    for number, line in enumerate(read_utf8_lines(path)):
        yield number, parse_json(line, dict, f"{path.name}: line {number + 1}")


def _split_solution(text: str) -> tuple[str, str]:
    """Split a solution of GSM8K into its lines and the final number, in digits without commas."""
    match = _SOLVED.fullmatch(text)
    if match is None:
        raise ValueError("the solution does not end with '#### ' and a number")
    return match["solution"], match["answer"].replace(",", "")
