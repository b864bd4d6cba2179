"""Readers of one published form of data: small files in that form, and the rows that they give."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadData
from farshift.loaders.acquire.archive_files import FolderFiles, open_archive
from farshift.loaders.acquire.source import find_source
from farshift.loaders.readers import load_reader, read_tables
from farshift.loaders.readers.mathematics import extract_boxed
from farshift.loaders.readers.parses import normalise_term, parse_funql
from farshift.loaders.readers.questions import PLANES, encode_planes
from farshift.loaders.readers.texts import find_arrival_month, split_dialogues
from farshift.splits.schema import Field, Schema
from twins import gz, laid, picture, tar, zipped


def encode(name: str, content: Any) -> bytes:
    """Bytes and texts as they are; other values as JSON, a list in .jsonl a record a line."""
    if isinstance(content, list) and name.removesuffix(".gz").endswith(".jsonl"):
        content = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in content)
    content = json.dumps(content) if not isinstance(content, str | bytes) else content
    content = content.encode() if isinstance(content, str) else content
    return gz(content) if name.endswith(".jsonl.gz") else content


def read(folder: Path, reader: str, files: dict[str, Any], /, **options: Any) -> dict[str, list]:
    """The columns that a reader makes of small files."""
    laid(folder, {name: encode(name, content) for name, content in files.items()})
    result = load_reader(reader)({name: folder / name for name in files}, **options)
    return (result if isinstance(result, pa.Table) else pa.concat_tables(result)).to_pydict()


QUERY = {
    "query-split": "test",
    "sql": ["SELECT  NAME FROM CITY ;", "SELECT CITY.NAME FROM CITY ;"],
    "sentences": [
        {"text": "name the cities", "question-split": "train"},
        {"text": "which cities  are there ?", "question-split": "dev"},
    ],
}
INDEXED = {
    "walk . agent ( x _ 1 , Emma )": (0, 0),
    "cake . nmod . on ( x _ 1 , x _ 4 )": (0, 1),
    "a . nmod . on ( x _ 1 , x _ 4 ) AND b . nmod . in ( x _ 9 , x _ 12 )": (0, 1),
    "b . nmod . in ( x _ 4 , x _ 7 ) AND a . nmod . on ( x _ 1 , x _ 4 )": (0, 2),
    "say . ccomp ( x _ 1 , x _ 4 ) AND a . nmod . in ( x _ 3 , x _ 9 )": (1, 1),
    "say . ccomp ( x _ 1 , x _ 4 ) AND hope . ccomp ( x _ 4 , x _ 8 ) AND go . xcomp ( x _ 8 , x _ 9 )": (2, 0),
}
"""Forms, and how deep complements and prepositional phrases nest in them."""
NESTED = {
    "run ( agent = * dog )": (0, 0, 0),
    "see ( theme = cake ( nmod . on = plate ) )": (0, 1, 0),
    "see ( theme = * cake ( nmod . on = plate ( nmod . in = * room ) ) , agent = box ( nmod . in = car ) )": (0, 2, 0),
    "say ( agent = Ava , ccomp = hope ( agent = * cat , ccomp = run ( agent = ? ) ) )": (2, 0, 0),
    "see ( agent = dog ( nmod = eat ( agent = dog , theme = cat ( nmod = run ( agent = cat ) ) ) ) )": (0, 0, 2),
    "say ( agent = dog ( nmod = run ( agent = dog ) ) , ccomp = go ( agent = box ( nmod . on = bed ) ) )": (1, 1, 1),
    "want ( agent = dog , xcomp = run ( agent = dog ) )": (0, 0, 0),
}
"""The same, and relative clauses."""
TSV = {name: "".join(f"s\t{form}\tt\n" for form in forms) for name, forms in (("a", INDEXED), ("b", NESTED))}
TSV = {name: text.replace("s\t", f"{name}\t") for name, text in TSV.items()}
REPEATED = "like\tlike\tprimitive\nrun\trun\tprimitive\nlike\tlike\tprimitive\n"
QUESTIONS = [
    ("Is Austin Texas in Texas ?", "answer(intersection(cityid('austin', 'tx'), loc_2(stateid('texas'))))"),
    ("What is the area of the United States ?", "answer(area_1(countryid('usa')))"),
    ("How high is Mount Nowhere ?", "answer(elevation_1(placeid('somewhere')))"),
    ("never read", "answer(city(all))"),
]
GEO = "".join(
    f"<example id='{number}'><nl lang='en'>{question}</nl><mrl lang='geo-funql'>{query}</mrl></example>"
    for number, (question, query) in enumerate(QUESTIONS)
)


def mail(subject: str, body: str, date: str = "Mon, 9 Sep 2002 10:00:00 +0100") -> dict[str, str]:
    return {"text": f"From: a@example.org\nSubject: {subject}\nDate: {date}\n\n{body}"}


MAILS = {
    "easy-ham-1/2": mail("hello\n\tagain", "x" * 60),
    "easy-ham-1/1": mail("first", "line one\r\n\r\nline two"),
    "hard-ham-1/1": mail("news", "<html>"),
    "hard-ham-1/2": mail("NEWS", "<HTML>\n"),
    "spam-1/1": {"text": "From: b@example.org\n\nno subject"},
}
MAILS_TAR = tar(
    {"package/package.json": b"{}"}
    | {f"package/data/{name}.json": json.dumps(text).encode() for name, text in MAILS.items()}
)
MAIL = {"folder": "package/data", "spam": ["spam-1"], "hard": ["hard-ham-1"], "years": [2001, 2003], "longest": 40}
MATH = {"problem": "1+1?", "level": "Level 3", "type": "Algebra", "solution": r"\boxed{2}"}
PROBLEMS = [(1, "Two  apples.", "2 (apples)"), (4, "Crowds.", "1,250 (people)"), (6, "Halves.", "0.5"), (2, "A", "Bo")]
ASDIV = "".join(
    f'<Problem ID="p{n}" Grade="{grade}"><Body>{body}</Body><Question>How many?</Question>'
    f"<Solution-Type>Sum</Solution-Type><Answer>{answer}</Answer></Problem>"
    for n, (grade, body, answer) in enumerate(PROBLEMS)
)
SVAMP = 'Question,Numbers,Equation,Answer\n"had number0 , ate number1 : how many ?",8.0 0.5,- number0 number1,7.5\n'
SVAMP_JSON = {"Body": "Ann had 3.5 g, ate 2 g.", "Question": "What is left?"}
SVAMP_JSON |= {"Equation": "( 3.5 - 2.0 )", "Answer": 1.5}
GSM = {
    "train": json.dumps({"question": "How far?", "answer": "One line.\nAnother.\n#### 1,200"}),
    "test": json.dumps({"question": "How old  is it?", "answer": "2 - 3 = -1\n#### -1"}),
}
VARIANT = {"question": "How old now?", "answer": "..\n#### 1,003.5", "original_id": 0}
CHANGED = {"seed_question": "How old  is it? ", "perturbation_type": "digits", "question": "How?"}
SOLVED = {"question": "How old  is it?", "truth": ""}
SOLVED |= {name: {"is_correct": verdict} for name, verdict in (("a", True), ("b", False), ("c", False))}
TWO_HOPS = {"Question": "Q?", "Answer": ["b", "B|c"], "Q1": "Q1?", "A1": "a", "Q2": "Q2?", "A2": [7], "kind": "k"}
ARC_QUERY = "Question: Which of these\nis warm?\n A. ice\n B. the sun\n C. snow\n D. rain\nAnswer:"
ARC = {"id": "q1", "query": ARC_QUERY, "choices": ["A", "B", "C", "D"], "gold": 1}
LEVELS = {"grade": "Grade 04", "bloom": "Analyzing", "depth_of_knowledge": "II", "difficulty": "Low"}
ARC_FILES = {
    "e.jsonl.gz": [{"doc": ARC}, {"doc": ARC}, {"doc": ARC | {"id": "not annotated"}}],
    "c.jsonl.gz": [{"doc": ARC}],
    "notes.json": {"ARCEZ_q1": LEVELS, "ARCCH_q1": LEVELS | {"grade": "Biology"}},
}
CONLL = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nsaid VBD I-VP O\n\nUN NNP I-NP I-ORG\nNATO NNP I-NP B-ORG\n"
CONLL_2012 = (
    "bc/cctv/00   0    0        In      IN    (TOP(S(PP*    -   *\n"
    "bc/cctv/00   0    1   Beijing     NNP          (NP*))  -  (GPE)\n"
)
SENTENCE = "The cup did not fit in the bag because the _ was small.\tcup\tbag\t{}\tagree\tIf X ..\n"
PERSPECTIVES = {
    "claims.json": [
        {"cId": 3, "text": "Ban x", "perspectives": [{"pids": [7, 5], "stance_label_3": "UNDERMINE"}]},
        {"cId": 1, "text": "Allow x", "perspectives": [{"pids": [5], "stance_label_3": "SUPPORT"}]},
    ],
    "pool.json": [{"pId": 5, "text": "x helps"}, {"pId": 7, "text": "x is fun"}],
    "split.json": {"1": "train", "3": "dev"},
}
PARTS_OF = {"claims": "claims.json", "pool": "pool.json", "parts": "split.json"}
FLIP = {
    "splits/one.csv": b"sequence,target,set,validation\nMVAD,1.0,train,\nMVAC,0.5,train,True\nMAAC,2.0,test,\n",
    "splits/low.csv": b"sequence,target,set,validation\nMAAC,2.0,test,\nMVAD,1.0,test,\nMVAC,0.5,train,\n",
}
NETWORK = {
    "XX_edges.csv": "from,to\n0,1\n2,0\n",
    "XX.json": {"0": [3], "1": [9, 5], "2": [5]},
    "XX_target.csv": "id,mature,new_id\n70,True,2\n71,False,0\n72,False,1\n70,True,2\n",
}
SURVIVAL = {
    "a.csv": "age,rtime,recur,dtime,death\n40,1,1,900,0\n41,1,0,300,1\n42,400,1,900,1\n43,500,0,500,0\n44,2,0,2,0\n",
    "b.csv": "age,time,status\n50,365,1\n51,366,1\n52,365,0\n",
}
EVENTS = {"a.csv": {"recur": "rtime", "death": "dtime"}, "b.csv": {"status": "time"}}
COHORTS = {name: {"constants": {"cohort": name[0]}} for name in SURVIVAL}
PEOPLE = Schema((Field("age", "float64", "input"), Field("came", "int64", "label"), Field("cohort", "string", "meta")))
TALK = "\n\nHuman: {n}?\n\nAssistant: {reply}"
BROKEN_LINES = {side: TALK.format(n=1, reply=f"{side}\u2028\x85more") for side in ("chosen", "rejected")}
NER = {"words": 0, "tags": {"tags": 1}}


def task(*tests: int) -> dict[str, list]:
    return {
        "train": [{"input": [[1, 2]], "output": [[2], [1]]}],
        "test": [{"input": [[number]], "output": [[number, number]]} for number in tests],
    }


TASKS = {
    "one.json": {"train": {"b": task(3), "a": task(4, 5)}},
    "two.json": {"eval": {"a": task(9), "c": task(3), "d": task(6)}},
}
SETS = [
    {"file": "one.json", "part": "train", "published": "one", "level": 1},
    {"file": "two.json", "part": "eval", "published": "two", "level": 2},
]
INSTANCE = {"Definition": "D", "Categories": ["C"], "Instances": [{"input": "i", "output": ["a | b", "c"]}]}

FORMS: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, list]]] = {
    "a question of a query is a row with the first of its queries": (
        "parses/text_to_sql", {"geography.json": [QUERY]}, {},
        {"question": ["name the cities", "which cities are there ?"], "sql": ["SELECT NAME FROM CITY ;"] * 2,
         "query": [0, 0], "query_split": ["test"] * 2, "question_split": ["train", "dev"], "words": [3, 5]},
    ),
    "depths of an indexed form are its longest chains": (
        "parses/semantic_parses", {"a": TSV["a"]}, {"parts": {"a": "gen"}, "notation": "indexed"},
        {"cp_depth": [cp for cp, _ in INDEXED.values()], "pp_depth": [pp for _, pp in INDEXED.values()],
         "depth": [max(depths) for depths in INDEXED.values()], "rc_depth": [0] * 6},
    ),
    "depths of a variable-free form are those of its nesting, also in a zip": (
        "parses/semantic_parses", {"b": zipped({"inside/b.tsv": TSV["b"].encode()})},
        {"parts": {"b": "gen"}, "notation": "variable_free", "archives": {"b": {"member": "inside/b.tsv"}}},
        {"cp_depth": [cp for cp, _, _ in NESTED.values()], "pp_depth": [pp for _, pp, _ in NESTED.values()],
         "rc_depth": [rc for _, _, rc in NESTED.values()], "depth": [max(depths) for depths in NESTED.values()]},
    ),
    "a line that is repeated is one row of two copies": (
        "parses/semantic_parses", {"train": REPEATED, "dev": REPEATED},
        {"parts": {"train": "train", "dev": "dev"}, "notation": "variable_free"},
        {"sentence": ["like", "run"] * 2, "origin": ["train"] * 2 + ["dev"] * 2, "copies": [2, 1] * 2},
    ),
    "entities get marks in question and query alike": (
        "parses/geoquery", {"corpus.xml": f"<examples>{GEO}</examples>"}, {"questions": 3},
        {"question": ["is m0 in m1", "what is the area of the m0", "how high is mount nowhere"],
         "funql": ["answer ( intersection ( m0 , loc_2 ( m1 ) ) )", "answer ( area_1 ( m0 ) )",
                   "answer ( elevation_1 ( placeid ( somewhere ) ) )"],
         "number": [0, 1, 2], "words": [4, 7, 5]},
    ),
    "inflections say what training shows of a test row": (
        "lines/inflections",
        {"a": "ev\tevler\tN;PL\nat\tatta\tN;LOC\n",
         "b": "ev\tevde\tN;LOC\nat\tatım\tN;PSS1S\nit\titler\tN;PL\nkuş\tkuşum\tN;PSS1S\n"},
        {"train": "a", "tests": {"b": "test"}},
        {"origin": ["train", "train", "test both", "test lemma", "test features", "test neither"],
         "lemma": ["ev", "at", "ev", "at", "it", "kuş"],
         "features": ["N PL", "N LOC", "N LOC", "N PSS1S", "N PL", "N PSS1S"]},
    ),
    "a mail is its subject and the head of its body, once": (
        "texts/mail_archive", {"mails.tgz": MAILS_TAR}, MAIL,
        {"mail": ["Subject: first\n\nline one\n\nline two", f"Subject: hello again\n\n{'x' * 40}",
                  "Subject: news\n\n<html>", "Subject: \n\nno subject"],
         "spam": [0, 0, 0, 1], "hardness": [0, 0, 1, 0], "month": [21, 21, 21, 0]},
    ),
    "MATH has level, subject and answer": (
        "mathematics/boxed_answers", {"test.jsonl": [MATH, MATH | {"level": "Level ?"}]}, {},
        {"problem": ["1+1?"] * 2, "answer": ["2"] * 2, "level": [3, 0], "subject": ["Algebra"] * 2},
    ),
    "ASDiv keeps problems whose answer is one number": (
        "mathematics/asdiv", {"ASDiv.xml": f"<Corpus>{ASDIV}</Corpus>"}, {},
        {"question": ["Two apples. How many?", "Crowds. How many?", "Halves. How many?"],
         "answer": ["2", "1250", "0.5"], "grade": [1, 4, 6], "operation": ["Sum"] * 3, "number": ["p0", "p1", "p2"]},
    ),
    "SVAMP puts numbers in their places, rounds, and has a body in its JSON": (
        "mathematics/word_problems",
        {"dev.csv": SVAMP, "b.csv": SVAMP.replace("7.5", "0.6666666666666666"), "SVAMP.json": [SVAMP_JSON]},
        {"origin": {"dev.csv": "svamp", "b.csv": "b", "SVAMP.json": "c"}},
        {"question": ["had 8 , ate 0.5 : how many ?"] * 2 + ["Ann had 3.5 g , ate 2 g . What is left ?"],
         "answer": ["7.5", "0.67", "1.5"], "operations": [1] * 3, "origin": ["svamp", "b", "c"]},
    ),
    "a problem of GSM8K has its number, steps, words and failures": (
        "mathematics/gsm8k", GSM | {"s": json.dumps(SOLVED)}, {"parts": {"train": "train", "test": "test"}, "solutions": "s"},
        {"answer": ["1200", "-1"], "steps": [2, 1], "words": [2, 4], "failures": [-1, 2], "origin": ["train", "test"],
         "solution": ["One line.\nAnother.", "2 - 3 = -1"]},
    ),
    "a variant is grouped with the problem that it was made from": (
        "mathematics/gsm_symbolic", GSM | {"p2": json.dumps(VARIANT)},
        {"train": "train", "test": "test", "variants": "p2", "clauses": 2},
        {"answer": ["1200", "-1", "1003.5"], "origin": ["train", "test", "variants"],
         "problem": ["train 0", "test 0", "test 0"], "clauses": [0, 0, 2]},
    ),
    "a changed problem is kept where its answer is a number": (
        "mathematics/gsm_plus", GSM | {"p.jsonl": [CHANGED | {"answer": "1,003"}, CHANGED | {"answer": "None"}]},
        {"train": "train", "test": "test", "changed": "p.jsonl"},
        {"answer": ["1200", "-1", "1003"], "origin": ["train", "test", "changed"],
         "change": ["none", "none", "digits"], "problem": ["train 0", "test 0", "test 0"]},
    ),
    "a question of two hops gives three rows that name each other": (
        "questions/two_hop_questions", {"two.json": {"data": [TWO_HOPS] * 2}}, {"train": 1, "category": "kind"},
        {"origin": ["train first", "train second", "train composed", "first", "second", "composed"],
         "answer": ["a", "7", "b | B | c"] * 2, "first": ["0 first"] * 3 + ["1 first"] * 3, "category": ["k"] * 6},
    ),
    "a question of ARC has its options, answer and levels once": (
        "questions/arc_annotated", ARC_FILES,
        {"requests": {"e.jsonl.gz": "easy", "c.jsonl.gz": "challenge"}, "annotations": "notes.json"},
        {"question": ["Which of these\nis warm?"] * 2, "options": ["A. ice\nB. the sun\nC. snow\nD. rain"] * 2,
         "answer": [1, 1], "collection": ["easy", "challenge"], "hard": [0, 1], "grade": [4, 9], "bloom": [4, 4],
         "depth_of_knowledge": [2, 2], "difficulty": [1, 1]},
    ),
    "a sentence has its hardness and the place of its answer": (
        "questions/winogrande_hardness", {"rows.tsv": SENTENCE.format("bag") + SENTENCE.format("cup")},
        {"parts": {"rows.tsv": "medium_test"}},
        {"answer": [1, 0], "agreement": ["agree"] * 2, "hardness": [1, 1], "origin": ["medium_test"] * 2},
    ),
    # c has the content of b, and the second a the name of the first.
    "no task is read twice": (
        "questions/arc_tasks", TASKS, {"sets": SETS},
        {"task": ["a", "a", "b", "d"], "answer": ["44", "55", "33", "66"], "level": [1, 1, 1, 2], "cells": [2] * 4},
    ),
    "a sentence is a row of words and tags": (
        "lines/conll", {"eng": CONLL}, {"words": 0, "tags": {"tags": -1}, "constants": {"eng": {"year": "1996"}}},
        {"words": ["EU said", "UN NATO"], "length": [2, 2], "year": ["1996"] * 2, "tags": ["I-ORG O", "I-ORG B-ORG"]},
    ),
    "spans begin with B": (
        "lines/conll", {"eng": CONLL}, {"words": 0, "tags": {"tags": -1}, "bio": True, "spans": "mentions"},
        {"tags": ["B-ORG O", "B-ORG B-ORG"], "mentions": ["B O", "B B"]},
    ),
    "columns of CoNLL 2012 are filled up with spaces": (
        "lines/conll", {"v4": CONLL_2012}, {"words": 3, "tags": {"parts": 4, "entities": -1}},
        {"words": ["In Beijing"], "parts": ["IN NNP"], "entities": ["* (GPE)"]},
    ),
    "hashes are words": (
        "lines/conll", {"train": "Shugaba O\nBuhari B-PER\n# O\n\n\nKano B-LOC\n"}, NER,
        {"words": ["Shugaba Buhari #", "Kano"], "tags": ["O B-PER O", "B-LOC"]},
    ),
    "tags given anew are paired word by word, and types are called alike": (
        "lines/conll", {"clean": "Kano B-LOC\nta O\n\nya O\n", "noisy": "Kano B-location\nta O\n\nya O\n", "test": "ya O\n"},
        NER | {"constants": {"clean": {"origin": "train"}, "test": {"origin": "test"}},
               "retagged": {"clean": {"distant": "noisy"}}, "types": {"location": "LOC"}},
        {"distant": ["B-LOC O", "O", ""], "tags": ["B-LOC O", "O", "O"], "origin": ["train", "train", "test"]},
    ),
    "a perspective has its cluster's stance to the claim": (
        "texts/perspectives", PERSPECTIVES, PARTS_OF,
        {"claim": ["Ban x", "Ban x", "Allow x"], "perspective": ["x is fun", "x helps", "x helps"],
         "supports": [0, 0, 1], "origin": ["dev", "dev", "train"]},
    ),
    "variants of a protein have their residues, mutations, fitness and published sets": (
        "science/flip", {"splits.zip": zipped(FLIP)},
        {"folder": "splits", "sets": ["one", "low"], "wild_type": {"2": "V", "4": "D"}},
        {"sequence": ["MVAD", "MVAC", "MAAC"], "residues": ["V D", "V C", "A C"], "mutations": [0, 1, 2],
         "mutated": ["0 sites", "1 sites", "2 sites"], "fitness": [1.0, 0.5, 2.0],
         "one": ["train", "validation", "test"], "low": ["test", "train", "test"]},
    ),
    "a node has its features and the commonest of its neighbours": (
        "networks/musae", NETWORK, {"networks": {"XX": "Elvish"}, "target": "mature", "most": 1},
        {"features": ["f3", "f5 f9", "f5"], "neighbours": ["f5", "f3", "f3"], "degree": [2.0, 1.0, 1.0],
         "mature": [0, 0, 1], "network": ["Elvish"] * 3},
    ),
    # The second node lists no neighbour, but the first lists it.
    "a set of graphs is a row each": (
        "networks/labelled_graphs", {"SET.txt": "2\n3 2\n0 2 1 2\n4 0\n1 1 0\n1 0\n7 0\n"}, {"classes": [0, 2]},
        {"graph": ["0 4 1;0-1 0-2", "7;"], "nodes": [3, 1], "edges": [2, 0], "label": [1, 0]},
    ),
    # 44 and 52 were followed for no longer than the horizon; 42 recurred after it; 41 died within it.
    "who was not followed to the horizon without an event is left out": (
        "science/survival", SURVIVAL,
        {"schema": PEOPLE, "label": "came", "within": 365, "events": EVENTS, "columns": {"age": "age"}, "each": COHORTS},
        {"age": [40, 41, 42, 43, 50, 51], "came": [1, 1, 0, 0, 1, 0], "cohort": ["a"] * 4 + ["b"] * 2},
    ),
    "a term stands as often as it was counted, in the order of numbers": (
        "lines/svmlight", {"books": "1 7:1 0:2\n-1 4:1\n-1\n", "dvd": "1 3:1\n"},
        {"words": "terms", "label": "positive", "levels": ["-1", "1"], "origin": {"part": {"books": "b", "dvd": "d"}}},
        {"terms": ["t0 t0 t7", "t4", "", "t3"], "positive": [1, 0, 0, 1], "part": ["b"] * 3 + ["d"]},
    ),
    "a board has its moves and its reachable positions": (
        "questions/rush_hour", {"boards.txt": f"07 {'o' * 12}AAoooo{'x' + 'o' * 17} 5\n"}, {},
        {"board": ["oooooo\noooooo\nAAoooo\nxooooo\noooooo\noooooo"], "moves": [7], "positions": [5]},
    ),
    "an output's bar separates no outputs": (
        "texts/instructions", {"task1_x.json": INSTANCE}, {"each": 1, "train": []},
        {"answer": ["a b | c"], "task": ["task1_x"], "category": ["C"]},
    ),
    "a reply may have other ends of lines within": (
        "texts/preferences", {"a.jsonl.gz": [BROKEN_LINES]}, {"constants": {"a.jsonl.gz": {"origin": "here"}}, "seed": "s"},
        {"prompt": ["Human: 1?"], "number": [0], "origin": ["here"]},
    ),
}  # fmt: skip
"""By what is so: the reader, its files, its options, and some of the columns."""


@pytest.mark.parametrize("name", FORMS)
def test_files_in_their_published_form_give_rows(tmp_path, name):
    reader, files, options, expected = FORMS[name]
    result = read(tmp_path, reader, files, **options)
    assert {field: result[field] for field in expected} == expected


ODD = [
    ("parses/text_to_sql", {"a.json": [{}]}, {}, "KeyError"),
    ("texts/perspectives", PERSPECTIVES | {"pool.json": []}, PARTS_OF, "KeyError"),
    ("mathematics/asdiv", {"a.xml": "<Corpus><Problem"}, {}, "ParseError"),
    ("texts/mail_archive", {"a.tgz": b"no archive"}, MAIL, "ReadError"),
    ("science/flip", {"a.zip": b"a page"}, {"folder": "s", "sets": ["a"], "wild_type": {}}, "BadZipFile"),
    ("parses/semantic_parses", {"a": "a\tb\n"}, {"parts": {"a": "gen"}, "notation": "indexed"}, "ValueError"),
    ("lines/inflections", {"a": "ev\tN;PL\n"}, {"train": "a", "tests": {}}, "not enough values"),
    ("mathematics/boxed_answers", {"a.jsonl": [MATH | {"solution": "2"}]}, {}, "no box in '2'"),
    ("networks/labelled_graphs", {"a": "x\n"}, {"classes": [0]}, "invalid literal"),
]


@pytest.mark.parametrize(("reader", "files", "options", "complaint"), ODD, ids=[reader for reader, *_ in ODD])
def test_files_in_another_form_are_refused_in_one_line(tmp_path, reader, files, options, complaint):
    laid(tmp_path, {name: encode(name, content) for name, content in files.items()})
    arguments = {"files": {name: tmp_path / name for name in files}, **options}
    form = reader.partition("/")[2]
    begin = rf"^source mine(: its files are not in the form of {form}| cannot be read): "
    with pytest.raises(BadData, match=begin) as told:
        list(read_tables(reader, arguments, PEOPLE, "source mine"))
    assert complaint in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("files", "options", "complaint"),
    [
        ({"a": "EU NNP O\nsaid O\n"}, {}, "a: 'said O' has 2 columns, but the line before it 3"),
        (
            {"a": "K O\nt O\n", "b": "K O\n\nt O\n"},
            {"retagged": {"a": {"t": "b"}}},
            "the sentences of b do not have as",
        ),
    ],
)
def test_tagged_words_that_do_not_fit_are_refused(tmp_path, files, options, complaint):
    with pytest.raises(BadData, match=complaint):
        read(tmp_path, "lines/conll", files, **NER, **options)


def test_json_that_is_none_is_refused_with_its_line(tmp_path):
    with pytest.raises(BadData, match=r"test: line 1 cannot be read as JSON"):
        read(tmp_path, "mathematics/gsm8k", GSM | {"test": "{", "s": ""}, parts={"test": "test"}, solutions="s")


def test_conll_u_leaves_out_what_is_no_word_of_its_own_and_folders_give_fields(tmp_path):
    lines = ["# newdoc id = a", "1-2\tDon't\t_\t_", "1\tDo\tdo\tAUX", "2\tn't\tnot\tPART", "2.1\twill\twill\tAUX"]
    text = "\n".join([*lines, "3\t1 000\tgo\tVERB", "", ""])
    laid(tmp_path, {"email/one.conllu": text.encode(), "README": b"no sentence"})
    names = r"(?P<genre>[a-z]+)/(?P<document>.+)\.conllu"
    rows = load_reader("lines/conll")({"s": FolderFiles(tmp_path)}, words=1, tags={"tags": 3}, number=0, names=names)
    assert rows.to_pylist() == [
        {"words": "Do n't 1_000", "length": 3, "genre": "email", "document": "one", "tags": "AUX PART VERB"}
    ]


def test_a_folder_of_tasks_gives_each_the_name_of_its_file_and_of_its_folder(tmp_path):
    laid(tmp_path, {"corpus/Copy/Copy1.json": json.dumps(task(3)).encode(), "one.json": b'{"t": {}}'})
    sets = [{"file": "one.json", "part": "t", "published": "ARC", "level": 1}]
    sets.append({"file": "corpus", "part": "", "published": "ConceptARC", "level": 2})
    files = {"one.json": tmp_path / "one.json", "corpus": FolderFiles(tmp_path / "corpus")}
    rows = load_reader("questions/arc_tasks")(files, sets=sets).to_pydict()
    assert (rows["task"], rows["published"]) == (["Copy1"], ["ConceptARC, Copy"])
    assert rows["question"] == ["input:\n12\noutput:\n2\n1\n\ninput:\n3\noutput:"]


@pytest.mark.parametrize(
    ("header", "month"),
    [
        ("From a@b  Mon Jun 24 17:06:54 2002\nDate: Tue, 1 Jan 2002 00:00:00 +0000", 18),
        ("Delivery-Date: Tue May 28 02:53:28 2002\nDate: Tue, 1 Jan 2002 00:00:00 +0000", 17),
        ("Received: from x by y; Wed, 2 Jan 2002\n\t10:55:03 -0800\nDate: Fri, 1 Mar 2002 00:00:00 +0000", 13),
        ("Received: from x; Wed, 13 Sep 1972 10:00:00 -0800\nDate: Fri, 1 Mar 2002 00:00:00 +0000", 15),
        ("Date: Fri, 31 Dec 1999 00:00:00 +0000", 0),
        ("Date: some day", 0),
    ],
)
def test_the_month_of_arrival_is_told_by_the_most_trustworthy_witness(header, month):
    assert find_arrival_month(header, 2001, 2003) == month


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        (r"so $x = \boxed{\frac{1}{2}}$.", r"\frac{1}{2}"),
        (r"first \boxed{1}, then \boxed{  2 \text{ or }  3}", r"2 \text{ or } 3"),
        (r"hence \fbox{7}", "7"),
        (r"hence $\boxed 9$ it is", "9"),
    ],
)
def test_the_answer_is_what_the_last_box_holds(solution, answer):
    assert extract_boxed(solution, normalise=True) == answer


NORMAL = {
    "city(loc_2(stateid('virginia')))": "intersection ( city , loc_2 ( stateid ( virginia ) ) )",
    "capital(all)": "capital",
    "largest_one(population_1(city(all)))": "largest_one ( population_1 , city )",
    "most(state(loc_1(river(all))))": "most ( state , loc_1 , river )",
    "elevation_1(placeid('mount mckinley'))": "elevation_1 ( placeid ( mount mckinley ) )",
    "exclude(state(all), next_to_2(stateid('maine')))": "exclude ( state , next_to_2 ( stateid ( maine ) ) )",
    "higher_2(0)": "higher_2 ( 0 )",
}


@pytest.mark.parametrize("text", NORMAL)
def test_the_normal_form_of_a_query_puts_arguments_side_by_side(text):
    assert str(normalise_term(parse_funql(text))) == NORMAL[text]
    assert str(parse_funql(NORMAL[text])) == str(parse_funql(NORMAL[text].replace(" , ", ","))) == NORMAL[text]


def test_planes_mark_the_car_walls_and_the_ends_of_every_piece():
    board = "BBBooxoooCooAAoCoooooCDDxEEFFooooooo"
    planes = encode_planes(np.array([list(board.encode())], np.uint8).reshape(1, 6, 6))[0]
    where = {name: {*zip(*np.nonzero(plane), strict=True)} for name, plane in zip(PLANES, planes, strict=True)}
    assert where == {
        "car": {(2, 0), (2, 1)}, "wall": {(0, 5), (4, 0)}, "left end": {(0, 0), (2, 0), (3, 4), (4, 1), (4, 3)},
        "across": {(0, 1)}, "right end": {(0, 2), (2, 1), (3, 5), (4, 2), (4, 4)}, "upper end": {(1, 3)},
        "down": {(2, 3)}, "lower end": {(3, 3)},
    }  # fmt: skip


def test_the_label_names_the_chosen_reply_whose_place_is_drawn(tmp_path):
    pairs = [{"chosen": TALK.format(n=n, reply="good"), "rejected": TALK.format(n=n, reply="bad")} for n in range(400)]
    rows = read(tmp_path, "texts/preferences", {"a.jsonl.gz": pairs}, constants={"a.jsonl.gz": {}}, seed="s")
    replies = zip(rows["first"], rows["second"], rows["chosen"], strict=True)
    assert all((row[row[2]], row[1 - row[2]]) == ("good", "bad") for row in replies)
    assert 160 < sum(rows["chosen"]) < 240


def test_the_prompt_ends_before_the_last_turn_that_begins_alike():
    common, prompt = "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: ", "Human: a\n\nAssistant: b\n\nHuman: c"
    assert split_dialogues(common + "dear", common + "deer", "x") == (prompt, "dear", "deer")
    assert split_dialogues(common, common + "d", "x")[1:] == ("", "d")
    with pytest.raises(BadData, match="x: the dialogues have no turn"):
        split_dialogues("\n\nHuman: a\n\nAssistant: b", "\n\nHuman: c\n\nAssistant: b", "x")


def test_the_place_of_a_node_is_what_brute_force_finds(tmp_path):
    edges, nodes = [(10, 11), (11, 12), (12, 10), (12, 13), (13, 12), (13, 13), (13, 14)], range(10, 16)
    texts = {"e": "".join(f"{a} {b}\n" for a, b in edges)}
    texts |= {"l": "node label\n" + "".join(f"{node} {node % 4}\n" for node in nodes)}
    result = read(
        tmp_path, "networks/edge_lists", texts, graphs={"Gondor": ["e", "l"]}, field="network", label="activity"
    )
    near = {node: {b for edge in edges for a, b in (edge, edge[::-1]) if a == node and b != node} for node in nodes}
    degrees = [[len(near[item]) for item in near[node]] or [0] for node in nodes]
    assert result["degree"] == [len(near[node]) for node in nodes] == [2, 2, 3, 2, 1, 0]
    assert result["neighbour_degree_max"] == list(map(max, degrees))
    assert result["neighbour_degree_min"] == list(map(min, degrees))
    assert result["neighbour_degree_mean"] == pytest.approx(list(map(np.mean, degrees)))
    assert result["triangles"] == [sum(b in near[a] for a, b in combinations(near[node], 2)) for node in nodes]
    assert result["clustering"] == [1, 1, pytest.approx(1 / 3), 0, 0, 0]
    around = [{*near[node], *(far for item in near[node] for far in near[item])} - {node} for node in nodes]
    assert result["within_two"] == list(map(len, around))
    assert result["share"][0] == 2 / 5
    assert (result["activity"], set(result["network"])) == ([node % 4 for node in nodes], {"Gondor"})


def test_a_picture_has_the_label_of_its_shape_and_the_name_of_its_texture(tmp_path):
    styled = "style-transfer-preprocessed-512/dog/"
    names = ["edges/dog/dog1.png", "filled-silhouettes/airplane/airplane10.png"]
    names += [f"{styled}dog1-airplane3.png", f"{styled}dog2-dog3.png"]
    laid(tmp_path, {name: picture(number) for number, name in enumerate(names)})
    (distribution,) = find_source("texture_shape").definition.distributions
    trees = {pin.name: open_archive(tmp_path / pin.name) for pin in distribution.trees}
    table = pa.concat_tables(load_reader("image_sets/cue_conflict")(trees, **distribution.options))
    assert {(row["kind"], row["shape"], row["texture"], row["photograph"]) for row in table.to_pylist()} == {
        ("edges", 10, "none", "dog1"),
        ("silhouettes", 0, "none", "airplane10"),
        ("cue conflict", 10, "airplane", "dog1"),
        ("no conflict", 10, "dog", "dog2"),
    }
