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
from ...core.errors import BadData
from ._layout import check_files, get_archive, get_only_file, read_utf8_lines, refuse_malformed

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
    name, path = get_only_file("asdiv", files)
    try:
        problems = list(ElementTree.parse(path).getroot().iter("Problem"))
    except ElementTree.ParseError as error:
        raise BadData(f"{name} is not well-formed XML: {error}") from error
    rows = []
    for problem in problems:
        body, question, answer, operation = (" ".join((problem.findtext(tag) or "").split()) for tag in _PROBLEM_TAGS)
        grade, number = problem.get("Grade", ""), problem.get("ID", "")
        if not body or not answer or not grade.isdecimal():
            raise BadData(f"{name}: problem {number} lacks a body, an answer or a grade")
        if match := _NUMBER_AND_UNIT.fullmatch(answer):
            row = {"question": f"{body} {question}".strip(), "answer": match["number"].replace(",", "")}
            rows.append({**row, "grade": int(grade), "operation": operation, "number": number})
    return pa.Table.from_pylist(rows)


def word_problems(files: dict[str, Path], *, origin: dict[str, str]) -> pa.Table:
    """Word problems of SVAMP, ASDiv-A and MAWPS (Patel, Bhattamishra and Goyal 2021, arXiv 2103.07191): the table of an
    experiment, with the numbers in a separate column, or SVAMP.json.

    Fields: `question` (of a table, with its numbers in place of "number0", "number1" ..); `answer`, a number with at
    most two decimals; `operations`, the number of operations in the published equation; and `origin`, as given for the
    file.
    """
    check_files("word_problems", files, origin)
    rows = []
    for name, meaning in origin.items():
        as_json, content = name.endswith(".json"), files[name].read_bytes()
        records = parse_json(content, list, name) if as_json else csv.DictReader(read_utf8_lines(name, content))
        for number, record in enumerate(records, 1):
            with refuse_malformed(f"{name}: problem {number} is not one"):
                rows.append(
                    {
                        "question": _join_body(record) if as_json else _fill_in_numbers(record),
                        "answer": f"{float(record['Answer']):.2f}".rstrip("0").rstrip("."),
                        "operations": sum(sign in "+-*/" for sign in record["Equation"].split()),
                        "origin": meaning,
                    }
                )
    return pa.Table.from_pylist(rows)


def _join_body(record: dict[str, str]) -> str:
    """The body and question, with a space before punctuation, as in the tables: else training would differ by it."""
    return re.sub(r"(?<=\S)([.,?])(?=\s|$)", r" \1", f"{record['Body']} {record['Question']}")


def _fill_in_numbers(record: dict[str, str]) -> str:
    values = [_format_number(value) for value in record["Numbers"].split()]
    return _MARK.sub(lambda mark: values[int(mark[1])], record["Question"])


def _format_number(number: str) -> str:
    """Format a number, without ".0" if it is whole."""
    float(number)
    return number.removesuffix(".0")


def boxed_answers(files: dict[str, Path]) -> pa.Table:
    """MATH (Hendrycks et al. 2021, arXiv 2103.03874): competition problems whose solution boxes its answer.

    Fields, from lines of JSON: `problem`, `answer` (the content of the last box of the solution, with single spaces),
    `subject`, `level` (1 to 5, or 0 if none is given) and `solution`.
    """
    name, path = get_only_file("boxed_answers", files)
    rows = []
    for number, record in _iterate_records(name, path):
        with refuse_malformed(f"{name}: line {number} is not a problem of MATH"):
            level = re.fullmatch(r"Level (\d|\?)", record["level"])
            answer = extract_boxed(record["solution"], normalise=True)
            if level is None or answer is None:
                raise ValueError("no level, or no box")
            row = {"problem": record["problem"], "answer": answer, "subject": record["type"]}
            rows.append({**row, "level": int(level[1].replace("?", "0")), "solution": record["solution"]})
    return pa.Table.from_pylist(rows)


def math_problems(files: dict[str, Any]) -> pa.Table:
    """MATH: a JSON file for each problem, in folders of part and subject (Hendrycks et al. 2021, arXiv 2103.03874).

    Fields: `problem`, `answer` (the last boxed answer of the solution), `solution`, `subject` (the folder), `level` (1
    to 5, or 0 if none is given) and `cell` (part and level, such as "train/3").
    """
    archive = get_archive(files)
    rows = []
    for name, content in archive.walk(lambda name: name.endswith(".json")):
        *_, part, subject, _ = ["", *name.split("/")]
        with refuse_malformed(f"{archive.where}: {name} is not a problem of MATH"):
            record = parse_json(content)
            level = record["level"].removeprefix("Level ")
            number = int(level) if level.isdigit() else 0
            answer = extract_boxed(record["solution"])
            row = {"problem": record["problem"], "answer": answer, "solution": record["solution"], "subject": subject}
        if answer is None:
            raise BadData(f"{archive.where}: {name}: its solution has no boxed answer")
        rows.append({**row, "level": number, "cell": f"{part}/{number}"})
    if not rows:
        raise BadData(f"{archive.where} has no problems")
    return pa.Table.from_pylist(rows)


def extract_boxed(solution: str, normalise: bool = False) -> str | None:
    """Return the content of the last \\boxed of a solution: in (nested) braces or, without braces, up to the next
    dollar sign. normalise: spaces before the brace are skipped, and those in the content made single."""
    boxes = list((_BOX_AND_SPACES if normalise else _BOX).finditer(solution))
    if not boxes:
        return None
    rest = solution[boxes[-1].end() :]
    if not rest.startswith("{"):
        content = rest.split("$")[0].strip()
        return " ".join(content.split()) if normalise else content
    depth = 0
    for index, sign in enumerate(rest):
        depth += (sign == "{") - (sign == "}")
        if depth == 0:
            return " ".join(rest[1:index].split()) if normalise else rest[1:index]
    return None


def gsm8k(files: dict[str, Path], *, parts: dict[str, str], solutions: str) -> pa.Table:
    """GSM8K: grade-school word problems with worked solutions, and the results of four published systems on the test
    part.

    Fields: `question`, `answer` (the final number, in digits without commas), `solution` (the worked lines), `origin`,
    `steps`, `words`, and `failures`.

    parts: the published part (`origin`) that each file of problems holds. solutions: the file of model solutions.
    `steps` counts the lines of the solution (Hase et al. 2024, arXiv 2401.06751); `words` those of the question;
    `failures` the systems that do not solve the problem, or -1 if none was evaluated on it.
    """
    check_files("gsm8k", files, sorted({*parts, solutions}))
    failed = {}
    for _, record in _iterate_records(solutions, files[solutions]):
        systems = [value for value in record.values() if isinstance(value, dict)]
        failed[record["question"]] = sum(not system["is_correct"] for system in systems)
    rows = []
    for name, part in parts.items():
        for number, record in _iterate_records(name, files[name]):
            with refuse_malformed(f"{name}: line {number}"):
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
    named = {"train": train, "test": test, "changed": changed}
    check_files("gsm_plus", files, named.values())
    rows: list[dict[str, str]] = []
    tests: dict[str, str] = {}
    for origin, name in named.items():
        for number, record in _iterate_records(name, files[name]):
            with refuse_malformed(f"{name}: line {number}"):
                question, problem, change = record["question"], f"{origin} {number - 1}", "none"
                if origin == "changed":
                    problem, change = tests[record["seed_question"].strip()], record["perturbation_type"]
                    if not _NUMBER.fullmatch(record["answer"].strip()):
                        continue
                    answer = record["answer"].strip().replace(",", "")
                else:
                    answer = _split_solution(record["answer"])[1]
                if origin == "test":
                    tests[question.strip()] = problem
                row = {"question": question, "answer": answer, "origin": origin}
                rows.append({**row, "change": change, "problem": problem})
    return pa.Table.from_pylist(rows)


def gsm_symbolic(files: dict[str, Path], *, train: str, test: str, variants: str, clauses: int) -> pa.Table:
    """GSM-Symbolic (Mirzadeh et al. 2024, arXiv 2410.05229): variants of GSM8K's problems, and GSM8K itself.

    Fields: `question`, `answer` (the final number, in digits without commas), `origin` ("train" and "test" of GSM8K, or
    "variants"), `problem`: the GSM8K problem that a row is or is derived from, such as "test 473", and `clauses`: how
    many clauses a row has more than this problem (the option `clauses` for the variants).

    Raises `BadData` if a variant's original is not the problem with its number in the test file.
    """
    named = {"train": train, "test": test, "variants": variants}
    check_files("gsm_symbolic", files, named.values())
    rows: list[dict[str, str | int]] = []
    tests: list[str] = []
    for origin, name in named.items():
        for number, record in _iterate_records(name, files[name]):
            with refuse_malformed(f"{name}: line {number}"):
                answer, problem = _split_solution(record["answer"])[1], f"{origin} {number - 1}"
                if origin == "test":
                    tests.append(record["question"].strip())
                if origin == "variants":
                    if tests[record["original_id"]] != record["original_question"].strip():
                        raise ValueError(f"it is not derived from problem {record['original_id']} of {test}")
                    problem = f"test {record['original_id']}"
                row = {"question": record["question"], "answer": answer, "origin": origin, "problem": problem}
                rows.append({**row, "clauses": clauses if origin == "variants" else 0})
    return pa.Table.from_pylist(rows)


def _iterate_records(name: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON object of each line, with the line's number from 1."""
    for number, line in enumerate(read_utf8_lines(name, path), 1):
        yield number, parse_json(line, dict, f"{name}: line {number}")


def _split_solution(text: str) -> tuple[str, str]:
    """Split a solution of GSM8K into its lines and the final number, in digits without commas."""
    match = _SOLVED.fullmatch(text)
    if match is None:
        raise ValueError("the solution does not end with '#### ' and a number")
    return match["solution"], match["answer"].replace(",", "")
