"""Definitions over data sets of the Hub with nested columns, and over many files (Super-NaturalInstructions), made small
in their layouts and pulled by the real client."""

from __future__ import annotations

import io
import json
import tomllib

import farshift as fs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift.benchmarks.adapters.openai_endpoint import from_spec
from farshift.core.errors import BadData
from farshift.core.plugins import PACKAGE
from farshift.loaders.acquire.source import find_source
from farshift.loaders.readers import records
from hub_rows import send_clients_to
from hub_server import REPOSITORY
from hub_server import serving as hub_serving
from llm_server import llm
from servers import web
from twins import measured, picture, pulled, twin, values


def omega(path, number):
    messages = [{"role": "user", "content": f"{path}: what is half of {number}?"}]
    return {"id": f"{number}", "setting_key": "s", "messages": messages, "ground_truth": f"\\frac{{{number}}}{{2}}"}


def cows(path, number):
    boxes = [[1.0, 2.0, 3.0, 4.0], [0.5, 0.0, 2.0, 1.0]][: number % 3]
    return {
        "image": {"bytes": picture(number + 50 * ("test" in path)), "path": "a.png"},
        "annotations": {"id": list(range(len(boxes))), "bbox": boxes},
    }


def science(path, number):
    labels = ["1", "2", "3", "4"] if number % 2 else ["A", "B", "C"]
    choices = {"label": labels, "text": [f"text {label}" for label in labels]}
    return {
        "question": f"question {number}",
        "choices": choices,
        "answerKey": labels[number % 3],
        "rating_quantile": number / 400,
    }


def winogrande(path, number):
    options = {"option1": "trophy", "option2": "case", "answer": str(1 + number % 2)}
    return {"sentence": f"The {number} is too big: _.", "rating_quantile": number / 400} | options


def lichess(path, number):
    moves = {"answer_san": f"Qh{1 + number % 8}#", "answer_uci": f"d1h{1 + number % 8}"}
    return {"fen": f"position {number}", "pgn": "1. e4 e5", "rating_quantile": number / 400} | moves


def subjects(path, number):
    options = {"options": [f"option {letter}" for letter in "abc"], "answer_index": number % 3}
    subject = ["law", "math", "history", "physics", "philosophy", "biology"][number % 6]
    return {"question": f"question {number}", "category": subject} | options


RATED = (science, winogrande, lichess)
"""Rows of Easy2Hard-Bench, of which the easier half is cut off."""

SETS = {
    "omega_transformative/official": (omega, {"train": 30, "ood_test": 20}, {}),
    "omega_explorative/official": (omega, {"train": 12, "id_test": 8, "ood_test": 8}, {}),
    "omega_compositional/official": (omega, {"train": 6, "ood_test": 4}, {}),
    "colo_a1_t2s/official": (cows, {"train": 18, "ood_test": 12}, {}),
    "colo_a2_s2t/official": (cows, {"train": 18, "ood_test": 12}, {}),
    "colo_b_light/official": (cows, {"train": 18, "ood_test": 12}, {}),
    "easy2hard_arc/easier_half": (science, {"train": 191, "id_test": 10, "ood_test": 199}, {"id_test": 10}),
    "easy2hard_winogrande/easier_half": (winogrande, {"train": 191, "id_test": 10, "ood_test": 199}, {"id_test": 10}),
    "easy2hard_lichess/easier_half": (lichess, {"train": 191, "id_test": 10, "ood_test": 199}, {"id_test": 10}),
    "mmlu_pro/humanities": (subjects, {"train": 158, "id_val": 21, "id_test": 21, "ood_test": 200}, {}),
}


@pytest.fixture
def small(place, monkeypatch, tmp_path):
    """Pull the small twin of a definition from a server that speaks the Hub's protocol."""

    def pull(name):
        make, parts, parameters = SETS[name]
        source = tomllib.loads((PACKAGE / f"loaders/sources/{name.split('/')[0]}.toml").read_text("utf-8"))
        mirrors, files = {}, {}
        for pin in source["distributions"][0]["files"]:
            (mirror,) = pin["mirrors"]
            path = mirror["file"].replace("*", "00000-of-00001")
            count = 400 if make in (*RATED, subjects) else (6 if "train" in path else 4) * (3 if make is cows else 1)
            buffer = io.BytesIO()
            pq.write_table(pa.Table.from_pylist([make(path, number) for number in range(count)]), buffer)
            files[path] = buffer.getvalue()
            mirrors[pin["name"]] = [mirror | {"repo": REPOSITORY}]
        with hub_serving() as hub:
            send_clients_to(hub, monkeypatch, tmp_path / "hub")
            hub.commit(files)
            split, got = pulled(twin(name, place, mirrors=mirrors, parameters=parameters))
        assert got == parts
        return split

    return pull


@pytest.mark.parametrize("name", SETS)
def test_a_definition_is_pulled_into_its_published_parts(small, name):
    assert small(name).source.definition.licence


def test_omega_has_the_first_message_as_problem_and_names_each_setting(small):
    split = small("omega_transformative/official")
    assert len(set(values(split, "ood_test", "setting"))) == 5
    assert "trans_de_moivre/test-00000-of-00001.parquet: what is half of 3?" in values(split, "ood_test", "problem")
    assert set(values(split, "ood_test", "answer")) == {f"\\frac{{{number}}}{{2}}" for number in range(4)}


def test_boxes_are_corners_and_options_are_lettered(small):
    split = small("colo_a1_t2s/official")
    assert values(split, "ood_test", "boxes") == [""] * 4 + ["1 2 4 6"] * 4 + ["1 2 4 6;0.5 0 2.5 1"] * 4
    split = small("easy2hard_arc/easier_half")
    part = split.part("ood_test").numpy(["question", "options", "answer"])
    rows = dict(zip(part["question"].tolist(), zip(part["options"], part["answer"], strict=True), strict=True))
    assert rows["question 301"] == ("A. text 1\nB. text 2\nC. text 3\nD. text 4", 1)
    assert rows["question 302"] == ("A. text A\nB. text B\nC. text C", 2)


def test_the_option_that_fills_a_blank_is_counted_from_zero_and_a_move_is_in_algebraic_notation(small):
    part = small("easy2hard_winogrande/easier_half").part("ood_test").numpy(["sentence", "answer"])
    assert dict(zip(part["sentence"], part["answer"], strict=True))["The 301 is too big: _."] == 1
    assert set(values(small("easy2hard_lichess/easier_half"), "ood_test", "answer")) == {f"Qh{n}#" for n in range(1, 9)}


def test_detections_of_ones_own_are_scored_on_cows(small, place, tmp_path):
    """Of the test's twelve pictures four have no cow, four have one and four have two; 101 recalls are read off."""
    split = small("colo_a1_t2s/official")
    truth = dict(zip(*(split.part("ood_test").numpy([field])[field] for field in ("image", "boxes")), strict=True))
    holdouts = [{"part": "train", "to": "id_test", "share": 0.5}]
    name = measured("colo_a1_t2s/official", split.manifest.name, place, holdouts=holdouts)

    def score(find):
        def detect(batch):
            known = [truth.get(item, "") for item in batch["image"]]
            return [find([[*map(float, box.split())] for box in boxes.split(";") if box]) for boxes in known]

        return fs.score(fs.evaluate(detect, on=name, seeds=1, out=tmp_path / find.__name__)).ood.value

    def all_boxes(boxes):
        return [[*box, 0.9] for box in boxes]

    def first_box(boxes):
        return [[*box, 0.9] for box in boxes[:1]]

    def wide_boxes(boxes):
        """Twice as wide: an overlap of one half, which the lowest of ten thresholds takes."""
        return [[x0, y0, 2 * x1 - x0, y1, 0.9] for x0, y0, x1, y1 in boxes]

    assert score(all_boxes) == pytest.approx(1.0)
    assert score(first_box) == pytest.approx(67 / 101), "two cows of three: recalls 0, .01 .. .66"
    assert score(wide_boxes) == pytest.approx(0.1)


def test_boolq_is_tested_on_questions_that_were_changed_and_have_an_answer(place, tmp_path):
    """The layout of its files; the first record of the contrast sets says what their keys mean."""
    rows = {"question": ["is it", "was it"], "answer": [True, False], "passage": ["It is.", "It was not."]}
    pq.write_table(pa.table(rows), tmp_path / "train.parquet")
    changed = [{"perturbed_q": "isn't it", "answer": "FALSE"}, {"perturbed_q": "left blank", "answer": ""}]
    record = {"title": "It", "paragraph": "It is.", "question": "is it so", "answer": "TRUE"}
    first = {"paragraph": "Paragraph", "perturbed_questions": [{"perturbed_q": "Perturbed Q", "answer": "New Answer"}]}
    content = {"data": [first, record | {"perturbed_questions": changed}]}
    (tmp_path / "boolq_perturbed.json").write_text(json.dumps(content), "utf-8")

    split, parts = pulled(twin("boolq_contrast/contrast", place), tmp_path)
    assert parts == {"train": 2, "id_test": 1, "ood_test": 1}
    found = {part: (values(split, part, "question"), values(split, part, "answer")) for part in parts}
    assert found == {
        "train": (["is it", "was it"], [0, 1]),
        "id_test": (["is it so"], [1]),
        "ood_test": (["isn't it"], [0]),
    }


def test_lists_of_structs_are_read_as_structs_of_lists_and_a_row_without_a_field_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"objects": [[{"bbox": [0.0, 0.0, 2.0, 2.0]}], []], "answer": ["b", "c"]}), path)
    (table,) = records.read({"a": path}, columns={"answer": "answer"}, boxes={"boxes": "objects.bbox"})
    assert table["boxes"].to_pylist() == ["0 0 2 2", ""]
    with pytest.raises(BadData, match=r"a, row 1: no text: KeyError: 'other'"):
        list(records.read({"a": path}, columns={"text": "other"}))


NAME = "natural_instructions/unseen_tasks"
TRAIN = find_source("natural_instructions").definition.distributions[0].options["train"]
FILES = [pin.name for pin in find_source("natural_instructions").definition.distributions[0].files]


def task(name, instances=6):
    """A task's file; older ones have a text where newer ones have a list."""
    definition = f"Solve {name}."
    return json.dumps(
        {
            "Definition": definition if name == FILES[0] else [definition],
            "Categories": ["Title Generation", "Other"],
            "Positive Examples": [{"input": "not", "output": "read"}],
            "Instances": [
                {"id": f"{name}-{number}", "input": f"{name} {number}", "output": ["a fine day", "a day", "a fine day"]}
                for number in range(instances)
            ],
        }
    ).encode()


@pytest.fixture
def small_tasks(place):
    with web(**{name: task(name) for name in FILES}) as site:
        mirrors = {name: [{"sort": "https", "url": f"{site.url}/{name}"}] for name in FILES}
        name = twin(NAME, place, mirrors=mirrors, options={"each": 1}, distinct={"task": 131, "published": 3})
        return pulled(name)


def test_the_test_has_the_first_instances_of_the_119_tasks_and_training_those_of_twelve_others(small_tasks):
    split, parts = small_tasks
    assert parts == {"train": 12, "id_test": 12, "ood_test": 119}
    assert set(values(split, "ood_test", "number")) == {0}
    assert set(values(split, "id_test", "number")) == {1}
    assert set(values(split, "train", "task")) == set(values(split, "id_test", "task")) == set(TRAIN)
    assert len(set(values(split, "ood_test", "task")) - set(TRAIN)) == 119
    assert set(values(split, "ood_test", "answer")) == {"a fine day | a day"}
    assert set(values(split, "ood_test", "category")) == {"Title Generation"}


def test_a_model_is_asked_with_the_definition_and_the_best_output_counts(small_tasks, place, tmp_path):
    split, _ = small_tasks
    name = measured(NAME, split.manifest.name, place)
    with llm(lambda text: "one day") as site:
        run = fs.evaluate(from_spec(f"tiny@{site.url}", {}), on=name, seeds=1, budget="quick", out=tmp_path / "run")
        prompts = set(site.prompts)
    assert fs.score(run).ood.value == pytest.approx(2 * 1 / (2 + 2)), "'one day' and 'a day' share one word of two"
    first = f"Definition: Solve {FILES[0]}.\n\nNow complete the following example -\nInput: {FILES[0]} 0\nOutput:"
    assert first in prompts
