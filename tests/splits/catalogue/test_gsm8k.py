"""GSM8K as it is read, and the rules that grade rows by a measure of hardness."""

from __future__ import annotations

import json
import re
from collections import Counter

import pyarrow as pa
import pytest
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.readers.mathematics import gsm8k
from farshift.splits.rules import grades
from hypothesis import given
from hypothesis import strategies as st


def problem(question, answer):
    return json.dumps({"question": question, "answer": answer})


def solved(question, **verdicts):
    systems = {name: {"is_correct": verdict, "solution": ""} for name, verdict in verdicts.items()}
    return json.dumps({"question": question, "ground_truth": ""} | systems)


@pytest.fixture
def files(tmp_path):
    def write(train, test, solutions):
        contents = {"train": train, "test": test, "solutions": solutions}
        for name, lines in contents.items():
            (tmp_path / name).write_text("".join(line + "\n" for line in lines))
        return {name: tmp_path / name for name in contents}

    return write


READ = {"parts": {"train": "train", "test": "test"}, "solutions": "solutions"}


def test_a_problem_gives_its_number_steps_words_and_failures(files):
    rows = gsm8k(
        files(
            [problem("How many?", "One line.\nAnother.\n#### 1,200")],
            [problem("How many  are left over?", "Three - four = -1\n#### -1")],
            [solved("How many  are left over?", a=True, b=False, c=False)],
        ),
        **READ,
    ).to_pylist()
    assert [(row["answer"], row["steps"], row["words"], row["failures"], row["origin"]) for row in rows] == [
        ("1200", 2, 2, -1, "train"),
        ("-1", 1, 5, 2, "test"),
    ]
    assert [row["solution"] for row in rows] == ["One line.\nAnother.", "Three - four = -1"]


def test_files_that_are_not_the_published_form_are_refused(files):
    good = problem("q", "a\n#### 1")
    with pytest.raises(BadData, match="test: line 2: ValueError: the solution does not end with '#### ' and a number"):
        gsm8k(files([good], [good, problem("q", "a\n#### one")], []), **READ)
    with pytest.raises(BadData, match="train: line 1 cannot be read as JSON"):
        gsm8k(files(["{"], [good], []), **READ)
    with pytest.raises(BadDefinition, match="gsm8k reads other, test, train, but the files are train, test, solutions"):
        gsm8k(files([good], [good], []), parts=READ["parts"], solutions="other")


measures = st.lists(st.integers(0, 9), min_size=20, max_size=60)


@given(measures, st.integers(0, 4), st.integers(1, 5))
def test_what_lies_between_easy_and_hard_is_validation(values, easy, gap):
    origin = ["train" if k % 2 else "test" for k in range(len(values))]
    table = pa.table({"steps": values, "origin": origin})
    outcome = grades.published(
        table, field="steps", easy_at_most=easy, hard_at_least=easy + gap, part="origin", train="train", test="test"
    )
    for value, where, part in zip(values, origin, outcome.part.tolist(), strict=True):
        if where == "train":
            assert part == ("train" if value <= easy else "")
        else:
            assert part == ("id_test" if value <= easy else "ood_test" if value >= easy + gap else "ood_val")


def numbered(values, **columns):
    return pa.table({"hard": values, "row_id": pa.array(range(len(values)), pa.uint64())} | columns)


@given(measures.filter(lambda values: sum(value <= 4 for value in values) > 3))
def test_the_in_distribution_test_is_drawn_from_the_easy_rows_alone(values):
    outcome = grades.drawn(numbered(values), field="hard", easy_at_most=4, hard_at_least=7, id_test=3, seed="a")
    counts = Counter(outcome.part.tolist())
    assert counts["id_test"] == 3
    assert counts["train"] == sum(value <= 4 for value in values) - 3
    assert all(value <= 4 for value, part in zip(values, outcome.part, strict=True) if part in ("train", "id_test"))
    assert all(value >= 7 for value, part in zip(values, outcome.part, strict=True) if part == "ood_test")
    assert outcome.severity.tolist() == values


def test_another_seed_draws_other_rows_and_the_same_seed_the_same():
    table = numbered([0] * 40 + [9] * 5)
    common = {"field": "hard", "easy_at_most": 1, "hard_at_least": 2, "id_test": 10}
    item, again, other = (grades.drawn(table, seed=seed, **common).part.tolist() for seed in ("a", "a", "b"))
    assert item == again != other


def test_rows_that_do_not_meet_the_conditions_are_dropped():
    table = numbered([0, 0, 0, 9, 9], origin=["a", "a", "b", "a", "b"])
    outcome = grades.drawn(
        table, field="hard", easy_at_most=1, hard_at_least=2, id_test=0, seed="a", only={"origin": ["a"]}
    )
    assert outcome.part.tolist() == ["train", "train", "", "ood_test", ""]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"hard_at_least": 1}, "hard: easy_at_most = 1 must lie below hard_at_least = 1"),
        ({"id_test": 4}, "id_test = 4, but only 4 rows have hard <= 1"),
        ({"only": {"origin": ["c"]}}, "no row has origin = c"),
    ],
)
def test_grades_that_cannot_be_are_refused(change, complaint):
    table = numbered([0, 0, 1, 1, 9], origin=["a"] * 5)
    common = {"field": "hard", "easy_at_most": 1, "hard_at_least": 2, "id_test": 1, "seed": "a"}
    with pytest.raises(BadDefinition, match=re.escape(complaint)):
        grades.drawn(table, **(common | change))
