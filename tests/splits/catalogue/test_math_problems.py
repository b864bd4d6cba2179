"""Word problems and competitions: MATH, ASDiv, SVAMP, GSM-Symbolic and BIG-Bench Hard as published, in small."""

from __future__ import annotations

import json

import pytest
from farshift.core.errors import BadData
from farshift.loaders.readers.mathematics import (
    asdiv,
    boxed_answers,
    extract_boxed,
    gsm_plus,
    gsm_symbolic,
    word_problems,
)
from farshift.loaders.readers.questions import two_hop_questions


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        (r"so $x = \boxed{\frac{1}{2}}$.", r"\frac{1}{2}"),
        (r"first \boxed{1}, then \boxed{  2 \text{ or }  3}", r"2 \text{ or } 3"),
        (r"hence \fbox{7}", "7"),
        (r"hence $\boxed 9$ it is", "9"),
        ("no box", None),
        (r"\boxed{1", None),
    ],
)
def test_the_answer_is_what_the_last_box_holds(solution, answer):
    assert extract_boxed(solution, normalise=True) == answer


def math_file(tmp_path, **changes):
    record = {"problem": "1+1?", "level": "Level 3", "type": "Algebra", "solution": r"\boxed{2}", **changes}
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps(record) + "\n", "utf-8")
    return {"test.jsonl": path}


def test_math_gives_level_subject_and_answer(tmp_path):
    (row,) = boxed_answers(math_file(tmp_path)).to_pylist()
    assert (row["problem"], row["answer"], row["level"], row["subject"]) == ("1+1?", "2", 3, "Algebra")
    (row,) = boxed_answers(math_file(tmp_path, level="Level ?")).to_pylist()
    assert row["level"] == 0


@pytest.mark.parametrize("change", [{"level": "hard"}, {"solution": "2"}, {"solution": None}])
def test_a_problem_without_level_or_box_is_named_by_its_line(tmp_path, change):
    with pytest.raises(BadData, match=r"test\.jsonl: line 1 is not a problem of MATH"):
        boxed_answers(math_file(tmp_path, **change))


PROBLEM = (
    '<Problem ID="p{n}" Grade="{grade}"><Body>{body}</Body><Question>How many?</Question>'
    "<Solution-Type>Sum</Solution-Type><Answer>{answer}</Answer></Problem>"
)


def corpus(tmp_path, *problems):
    text = "".join(
        PROBLEM.format(n=n, grade=grade, body=body, answer=answer) for n, (grade, body, answer) in enumerate(problems)
    )
    path = tmp_path / "ASDiv.xml"
    path.write_text(f"<Corpus><ProblemSet>{text}</ProblemSet></Corpus>", "utf-8")
    return {"ASDiv.xml": path}


def test_asdiv_keeps_problems_whose_answer_is_one_number(tmp_path):
    files = corpus(
        tmp_path,
        (1, "Two  apples.", "2 (apples)"),
        (4, "Crowds.", "1,250 (people)"),
        (6, "Halves.", "0.5"),
        (2, "Who?", "Sara"),
        (3, "Both.", "3 (cats); 4 (dogs)"),
        (5, "Part.", "1/2"),
    )
    rows = asdiv(files).to_pylist()
    assert [(row["question"], row["answer"], row["grade"]) for row in rows] == [
        ("Two apples. How many?", "2", 1),
        ("Crowds. How many?", "1250", 4),
        ("Halves. How many?", "0.5", 6),
    ]
    assert (rows[0]["operation"], rows[0]["number"]) == ("Sum", "p0")


def test_asdiv_refuses_a_problem_without_a_grade_and_text_that_is_no_xml(tmp_path):
    with pytest.raises(BadData, match="problem p0 lacks a body, an answer or a grade"):
        asdiv(corpus(tmp_path, ("", "Apples.", "2")))
    path = tmp_path / "cut.xml"
    path.write_text("<Corpus><Problem", "utf-8")
    with pytest.raises(BadData, match=r"cut\.xml is not well-formed XML"):
        asdiv({"cut.xml": path})


SVAMP = (
    'Question,Numbers,Equation,Answer\n"had number0 , ate number1 : how many ?",8.0 0.5,- number0 number1,{answer}\n'
)


def test_svamp_puts_the_numbers_in_their_places(tmp_path):
    path = tmp_path / "dev.csv"
    path.write_text(SVAMP.format(answer="7.5"), "utf-8")
    assert word_problems({"dev.csv": path}, origin={"dev.csv": "svamp"}).to_pylist() == [
        {"question": "had 8 , ate 0.5 : how many ?", "answer": "7.5", "operations": 1, "origin": "svamp"}
    ]
    path.write_text(SVAMP.format(answer="0.6666666666666666"), "utf-8")
    assert word_problems({"dev.csv": path}, origin={"dev.csv": "svamp"})["answer"].to_pylist() == ["0.67"]
    path.write_text(SVAMP.format(answer="many"), "utf-8")
    with pytest.raises(BadData, match=r"dev\.csv: problem 1 is not one"):
        word_problems({"dev.csv": path}, origin={"dev.csv": "svamp"})


def test_svamp_json_has_a_body_and_a_question(tmp_path):
    path = tmp_path / "SVAMP.json"
    record = {
        "Body": "Ann had 3.5 g, ate 2 g.",
        "Question": "What is left?",
        "Equation": "( 3.5 - 2.0 )",
        "Answer": 1.5,
    }
    path.write_text(json.dumps([record]), "utf-8")
    assert word_problems({"SVAMP.json": path}, origin={"SVAMP.json": "svamp"}).to_pylist() == [
        {"question": "Ann had 3.5 g , ate 2 g . What is left ?", "answer": "1.5", "operations": 1, "origin": "svamp"}
    ]


def gsm_files(tmp_path, original="How old?"):
    test = {"question": "How old?", "answer": "2 + 1 = 3\n#### 3"}
    more = {"question": "How old now?", "answer": "..\n#### 1,003.5", "original_id": 0, "original_question": original}
    paths = {}
    for name, record in (("train", {**test, "question": "How far?"}), ("test", test), ("p2", more)):
        paths[name] = tmp_path / name
        paths[name].write_text(json.dumps(record), "utf-8")
    return paths


def test_a_variant_is_grouped_with_the_problem_that_it_was_made_from(tmp_path):
    options = {"train": "train", "test": "test", "variants": "p2", "clauses": 2}
    rows = gsm_symbolic(gsm_files(tmp_path), **options).to_pylist()
    assert [(row["answer"], row["origin"], row["problem"], row["clauses"]) for row in rows] == [
        ("3", "train", "train 0", 0),
        ("3", "test", "test 0", 0),
        ("1003.5", "variants", "test 0", 2),
    ]
    with pytest.raises(BadData, match="p2: line 1: ValueError: it is not derived from problem 0 of test"):
        gsm_symbolic(gsm_files(tmp_path, "How tall?"), **options)


def test_a_changed_problem_is_kept_where_its_answer_is_a_number(tmp_path):
    files = gsm_files(tmp_path)
    built = {"seed_question": "How old? ", "perturbation_type": "digit expansion"}
    rows = [{**built, "question": "How old then?", "answer": "1,003"}, {**built, "question": "Why?", "answer": "None"}]
    files["p2"].write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    options = {"train": "train", "test": "test", "changed": "p2"}
    assert gsm_plus(files, **options).to_pylist()[2:] == [
        {
            "question": "How old then?",
            "answer": "1003",
            "origin": "changed",
            "change": "digit expansion",
            "problem": "test 0",
        }
    ]
    files["p2"].write_text(json.dumps({**rows[0], "seed_question": "How tall?"}), "utf-8")
    with pytest.raises(BadData, match="p2: line 1: KeyError"):
        gsm_plus(files, **options)


def test_a_question_of_two_hops_gives_three_rows_that_name_each_other(tmp_path):
    record = {"Question": "Q?", "Answer": ["b", "B|c"], "Q1": "Q1?", "A1": "a", "Q2": "Q2?", "A2": [7]}
    (tmp_path / "two.json").write_text(json.dumps({"data": [{**record, "kind": "k"}] * 2}))
    rows = two_hop_questions({"two.json": tmp_path / "two.json"}, train=1, category="kind").to_pylist()
    assert [row["origin"] for row in rows] == [
        "train first",
        "train second",
        "train composed",
        "first",
        "second",
        "composed",
    ]
    assert [row["answer"] for row in rows[3:]] == ["a", "7", "b | B | c"]
    assert [rows[5]["first"], rows[5]["second"]] == [rows[3]["row"], rows[4]["row"]]
    (tmp_path / "two.json").write_text(json.dumps([{**record, "A1": []}]))
    with pytest.raises(BadData, match=r"two\.json: record 0: A1 must be a text or number"):
        two_hop_questions({"two.json": tmp_path / "two.json"}, train=0)
