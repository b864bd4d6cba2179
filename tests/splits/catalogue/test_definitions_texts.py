"""Texts, problems and commands in their real layouts, made small."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift.core.errors import BadData
from twins import laid, pulled, tar, twin, values, zipped

ACCEPTED = "CC BY-NC 4.0"
"""The licences that `place` agrees to."""


def jsonl(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def parquet(**columns):
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def multinli():
    labels = ["entailment", "neutral", "contradiction", "-"]
    files = {"multinli_1.0/README.txt": b"read me", "__MACOSX/multinli_1.0/._README.txt": b"x"}
    for name, genre, rows in (
        ("train", "fiction", 12),
        ("dev_matched", "fiction", 8),
        ("dev_mismatched", "letters", 8),
    ):
        files[f"multinli_1.0/multinli_1.0_{name}.jsonl"] = jsonl(
            {
                "annotator_labels": ["neutral"],
                "genre": genre,
                "gold_label": labels[number % (3 if name == "train" else 4)],
                "sentence1": f'He said "{name} {number}".',
                "sentence2": f"It is {number}.",
                "pairID": f"{number}e",
            }
            for number in range(rows)
        )
    return {"multinli_1.0.zip": zipped(files)}


def test_multinli_is_tested_on_other_genres_without_pairs_that_nobody_agreed_on(place, tmp_path):
    split, parts = pulled(twin("multinli/mismatched", place), laid(tmp_path / "data", multinli()))
    assert parts == {"train": 12, "id_test": 6, "ood_test": 6}
    assert values(split, "ood_test", "relation") == [0, 0, 1, 1, 2, 2]
    assert set(values(split, "ood_test", "genre")) == {"letters"}


def test_hans_has_two_answers_where_multinli_has_three(place, tmp_path):
    head = "gold_label\tsentence1_binary_parse\tsentence1\tsentence2\tpairID\theuristic\tsubcase\ttemplate\n"
    lines = [
        f'{("entailment", "non-entailment")[n % 2]}\t( x )\tThe "doctor" ran {n} .\tHe ran .\tex{n}\t'
        f"{('lexical_overlap', 'subsequence', 'constituent')[n % 3]}\tcase\ttemp{n}\n"
        for n in range(12)
    ]
    files = multinli() | {"heuristics_evaluation_set.txt": (head + "".join(lines)).encode()}
    split, parts = pulled(twin("hans/heuristics", place), laid(tmp_path / "data", files))
    assert parts == {"train": 12, "id_test": 6, "ood_test": 12}
    assert values(split, "ood_test", "follows") == [0] * 6 + [1] * 6
    assert values(split, "train", "follows") == [0] * 4 + [1] * 8
    assert set(values(split, "ood_test", "heuristic")) == {"lexical_overlap", "subsequence", "constituent"}


def test_anli_is_three_rounds(place, tmp_path):
    files = {}
    for number in "123":
        for part, rows in (("train", 6), ("dev", 3), ("test", 3)):
            files[f"anli_v1.0/R{number}/{part}.jsonl"] = jsonl(
                {
                    "uid": f"{number}{part}{row}",
                    "context": f"In round {number}, {part} {row}.",
                    "hypothesis": f"It is {row}.",
                    "label": "enc"[row % 3],
                    "reason": "",
                }
                for row in range(rows)
            )
    split, parts = pulled(twin("anli/last_round", place), laid(tmp_path / "data", {"anli_v1.0.zip": zipped(files)}))
    assert parts == {"train": 12, "id_val": 6, "id_test": 6, "ood_val": 3, "ood_test": 3}
    assert values(split, "ood_test", "relation") == [0, 1, 2]


def test_paws_is_two_archives_of_one_layout(place, tmp_path):
    def table(part, rows=6):
        lines = [f'{n}\tThe "{part}" of {n}\tOf {n} the " {part}\t{n % 2}' for n in range(rows)]
        return ("id\tsentence1\tsentence2\tlabel\n" + "\n".join(lines) + "\n").encode()

    final = {f"final/{part}.tsv": table(part) for part in ("train", "dev", "test")}
    data = laid(tmp_path / "data", {
        "paws_wiki_labeled_swap.tar.gz": tar({"swap/train.tsv": table("swap")}),
        "paws_wiki_labeled_final.tar.gz": tar(final),
    })  # fmt: skip
    split, parts = pulled(twin("paws_wiki/swapped", place), data)
    assert parts == {"train": 6, "ood_val": 6, "ood_test": 6}
    assert 'The "test" of 1' in values(split, "ood_test", "first")


def cfq():
    words = [f"w{n}" for n in range(8)]
    rows, parts = [], {"trainIdxs": [], "devIdxs": [], "testIdxs": []}
    for item in range(8):
        for other in range(8):
            far = (other - item) % 8
            for entity in range(6):
                rows.append(f"Did M{entity} {words[item]} {words[other]} M1")
                parts["trainIdxs" if far < 4 else "testIdxs" if far > 4 else "devIdxs"].append(len(rows) - 1)
    rows.append("Did M0 stay")
    dataset = [
        {"question": "of entities", "questionPatternModEntities": row, "sparqlPatternModEntities": f"SELECT {row}"}
        for row in rows
    ]
    names = ("mcd1", "mcd2", "mcd3", *(f"{kind}_split" for kind in (
        "question_complexity", "question_pattern", "query_complexity", "query_pattern", "random")))  # fmt: skip
    files = {f"cfq/splits/{name}.json": json.dumps(parts).encode() for name in names}
    return files | {"cfq/dataset.json": json.dumps(dataset).encode()}


@pytest.mark.parametrize("name", ["cfq/mcd1", "cfq/mcd2", "cfq/mcd3"])
def test_cfq_has_a_file_of_places_for_each_split(place, tmp_path, name):
    split, parts = pulled(twin(name, place), laid(tmp_path / "data", {"cfq.tar.gz": tar(cfq())}))
    assert parts == {"train": 192, "ood_val": 48, "ood_test": 144}
    assert "unseen pair" in split.manifest.audit()["why"]


def test_a_split_with_places_that_no_question_has_is_refused(place, tmp_path):
    files = cfq() | {"cfq/splits/mcd1.json": json.dumps({"trainIdxs": [0, 700]}).encode()}
    with pytest.raises(BadData, match="not in the form of cfq: index 700"):
        pulled(twin("cfq/mcd1", place), laid(tmp_path / "data", {"cfq.tar.gz": tar(files)}))


@pytest.mark.parametrize(
    ("name", "folder", "longest"),
    [("clutrr_23/longer", "gen_train23_test2to10", 3), ("clutrr_234/longer", "gen_train234_test2to10", 4)],
)
def test_clutrr_is_tested_on_longer_chains(place, tmp_path, name, folder, longest):
    head = ",id,story,query,target,target_text,clean_story,proof_state,f_comb,task_name,genders,task_split\r\n"

    def table(part, lengths, marked=False):
        rows = [
            f'{n},{part}{n},"[Ann], of {part} {n},\n came.","(\'Ann\', \'Bo{n}\')",{n % 21},x,x,"[]",a-b,task_1.{length},a,{part}\r\n'
            for n, length in enumerate(lengths)
        ]
        return ("\ufeff" * marked + head + "".join(rows)).encode()

    known = list(range(2, longest + 1))
    files = {
        "train.csv": table("train", known * 3, marked=True),
        "validation.csv": table("train", known[:1], marked=True),
        "test.csv": table("test", [*range(2, 11)]),
    }
    split, parts = pulled(twin(name, place), laid(tmp_path / folder, files))
    assert parts == {"train": 3 * len(known), "id_val": 1, "id_test": len(known), "ood_test": 9 - len(known)}
    assert values(split, "ood_test", "length") == list(range(longest + 1, 11))
    assert values(split, "ood_test", "query")[0] == f"('Ann', 'Bo{len(known)}')"
    assert "training reaches severity" in split.manifest.audit()["why"]


def pcfg(name, train, test):
    files = {}
    for part, lines in (("train", train), ("test", test)):
        files[f"{name}_{part}.src"] = "".join(f"{line}\n" for line in lines).encode()
        files[f"{name}_{part}.tgt"] = "".join(f"{line.split()[-1]}\n" for line in lines).encode()
    return files


def test_pcfg_is_longer_by_functions_in_the_productivity_test(place, tmp_path):
    files = pcfg(
        "productivity",
        [f"copy reverse A{n} B1" for n in range(8)],
        [f"copy echo swap_first_last C{n}" for n in range(4)],
    )
    split, parts = pulled(twin("pcfg_productivity/official", place), laid(tmp_path / "data", files))
    assert parts == {"train": 8, "ood_test": 4}
    assert set(values(split, "train", "functions")) == {2}
    assert set(values(split, "ood_test", "functions")) == {3}
    files["productivity_test.tgt"] = b"one\n"
    with pytest.raises(BadData, match="not in the form of parallel_lines"):
        pulled(twin("pcfg_systematicity/official", place), laid(tmp_path / "other", {
            name.replace("productivity", "systematicity"): content for name, content in files.items()}))  # fmt: skip


def test_pcfg_has_pairs_of_functions_that_training_never_shows(place, tmp_path):
    train = [f"{item} A1 A2 , echo {n}" for item in ("swap_first_last", "repeat") for n in ("A1", "A2", "A3")]
    test = [f"swap_first_last repeat {n} , echo A1" for n in ("A1", "A2", "A3")]
    split, parts = pulled(
        twin("pcfg_systematicity/official", place), laid(tmp_path / "data", pcfg("systematicity", train, test))
    )
    assert parts == {"train": 6, "ood_test": 3}
    assert "0 of 1 groups of ood_test are in training" in split.manifest.audit()["why"]


LONGER = "target_lengths"
SKILLS = ["visual", "visual_easier", "situational_1", "situational_2", "contextual", "adverb_1", "adverb_2"]


@pytest.mark.parametrize("name", [
    "gscan/visual", "gscan/visual_easier", "gscan/situational_1", "gscan/situational_2", "gscan/contextual",
    "gscan/adverb_1", "gscan/adverb_2",
])  # fmt: skip
def test_gscan_is_one_json_with_a_list_for_each_part(place, tmp_path, name):
    def examples(part):
        return [
            {"command": f"walk,to,a,{part},{n}", "target_commands": "walk,walk", "situation": {"grid_size": 6, "n": n}}
            for n in range(3)
        ]

    output = {"grid_size": 6, "examples": {part: examples(part) for part in ("train", "dev", "test", *SKILLS, "other")}}
    files = {"compositional_splits/dataset.txt": json.dumps(output).encode()}
    data = laid(tmp_path / "data", {"compositional_splits.zip": zipped(files)})
    split, parts = pulled(twin(name, place), data)
    assert parts == {"train": 3, "id_val": 3, "id_test": 3, "ood_test": 3}
    assert values(split, "ood_test", "command")[0] == f"walk to a {name.split('/')[1]} 0"
    assert values(split, "train", "situation")[0] == '{"grid_size":6,"n":0}'


def test_gscan_s_longer_sequences_are_longer_than_all_others(place, tmp_path):
    def examples(part, actions):
        return [
            {"command": f"walk,to,{part},{n}", "target_commands": ",".join(["walk"] * actions), "situation": {"n": n}}
            for n in range(3)
        ]

    lists = {part: examples(part, 4 if part == LONGER else 3) for part in ("train", "dev", "test", LONGER)}
    files = {"target_length_split/dataset.txt": json.dumps({"examples": lists}).encode()}
    data = laid(tmp_path / "data", {"target_length_split.zip": zipped(files)})
    split, parts = pulled(twin("gscan_length/official", place), data)
    assert parts == {"train": 3, "id_val": 3, "id_test": 3, "ood_test": 3}
    assert values(split, "ood_test", "actions") == ["walk walk walk walk"] * 3
    assert values(split, "ood_test", "length") == [4, 4, 4]


def test_sentiment_of_a_later_year_is_lines_of_tweets_and_lines_of_labels(place, tmp_path):
    files = {}
    for part in ("train", "val", "test"):
        files[f"sentiment/{part}_text.txt"] = "".join(f"Tweet {n} of {part} \u2028 day \n" for n in range(6)).encode()
        files[f"sentiment/{part}_labels.txt"] = "".join(f"{n % 3}\n" for n in range(6)).encode()
    split, parts = pulled(twin("tweeteval_sentiment/later", place), laid(tmp_path / "data", files))
    assert parts == {"train": 6, "id_test": 6, "ood_test": 6}
    assert values(split, "ood_test", "sentiment") == [0, 0, 1, 1, 2, 2]
    assert "Tweet 0 of test \u2028 day" in values(split, "ood_test", "text")


def test_math_has_a_file_for_each_problem(place, tmp_path):
    files = {}
    for part in ("train", "test"):
        for subject in ("algebra", "geometry"):
            for level in range(6):
                name = f"Level {level}" if level else "Level ?"
                output = {
                    "problem": f"{part} {subject} {level}?",
                    "level": name,
                    "type": subject.title(),
                    "solution": f"So $\\boxed{{{level}}}$.",
                }
                files[f"MATH/{part}/{subject}/{level}.json"] = json.dumps(output).encode()
    split, parts = pulled(
        twin("math_levels/three_to_five", place), laid(tmp_path / "data", {"MATH.tar": tar(files, mode="w")})
    )
    assert parts == {"train": 6, "id_test": 6, "ood_test": 4}
    assert values(split, "ood_test", "answer") == ["4", "4", "5", "5"]


def test_gsm_plus_is_tested_on_perturbed_problems(place, tmp_path):
    def problems(part, rows):
        return jsonl({"question": f"{part} {n}?", "answer": f"It is <<1+1=2>>2.\n#### {n},000"} for n in range(rows))

    solutions = jsonl({"question": "test 0?", "ground_truth": "x"} for _ in range(0))
    plus = jsonl(
        {
            "question": f"perturbed {n}?",
            "solution": "So.",
            "answer": str(n) if n < 7 else "None",
            "perturbation_type": ("critical thinking", "numerical variation")[n % 2],
            "seed_question": "test 0?",
        }
        for n in range(8)
    )
    data = laid(tmp_path / "data", {
        "train.jsonl": problems("train", 6),
        "test.jsonl": problems("test", 3),
        "example_model_solutions.jsonl": solutions,
        "test-00000-of-00001.jsonl": plus,
    })  # fmt: skip
    split, parts = pulled(twin("gsm_plus/perturbed", place), data)
    assert parts == {"train": 6, "id_test": 3, "ood_test": 8}
    assert values(split, "id_test", "answer") == ["0000", "1000", "2000"]
    assert set(values(split, "ood_test", "perturbation")) == {"critical thinking", "numerical variation"}


@pytest.mark.parametrize(
    ("split", "file", "field"),
    [
        ("easy2hard_gsm8k/easier_half", "E2H-GSM8K-eval.parquet", "question"),
        ("easy2hard_amc/easier_half", "E2H-AMC-eval.parquet", "problem"),
    ],
)
def test_easy2hard_trains_on_the_easier_half(split, file, field, place, tmp_path):
    content = parquet(
        **{field: [f"{n} apples?" for n in range(40)]},
        answer=[f"so #### {n}" for n in range(40)],
        rating_quantile=[n / 39 for n in range(40)],
        rating=[float(n) for n in range(40)],
    )
    data = laid(tmp_path / "data", {file: content})
    frozen, parts = pulled(twin(split, place, parameters={"id_test": 5}), data)
    assert parts == {"train": 15, "id_test": 5, "ood_test": 20}
    assert min(values(frozen, "ood_test", "rating_quantile")) > 0.5
