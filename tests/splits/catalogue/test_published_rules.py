"""Rules that take published parts, lists, labels and grades of hardness, on tables small enough to see through."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadData, BadDefinition, UnknownName
from farshift.splits.rules import grades, noise_human, noise_published, published
from farshift.splits.rules.easy_to_hard_tasks import levels
from hypothesis import given
from hypothesis import strategies as st

TEXTS = pa.table({"text": ["up", "go up", "go up and go up", "up a hill", "goes up", "run up"]})
TEXT_PARTS = {"field": "text", "parts": {"a.txt": "train", "b.txt": "ood_test"}, "pattern": "row: (?P<row>.+)"}


@pytest.fixture
def files(tmp_path):
    def write(**contents):
        for name, content in contents.items():
            (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return {name: tmp_path / name for name in contents}

    return write


def test_rows_go_where_published_files_list_them(files):
    listed = files(**{"a.txt": "row: up\nrow: go up\n", "b.txt": "row: run up\n"})
    outcome = published.texts(TEXTS, files=listed, **TEXT_PARTS)
    assert outcome.part.tolist() == ["train", "train", "", "", "", "ood_test"]


@pytest.mark.parametrize(
    ("line", "change", "error", "complaint"),
    [
        ("row: go down", {}, BadData, "b.txt, line 2: no row is 'go down'"),
        ("row: up", {}, BadData, "b.txt, line 2: 'up' is listed for train and for ood_test"),
        ("go up", {}, BadData, "b.txt: line 2 does not match the pattern: 'go up'"),
        ("", {"parts": {"c": "train"}}, BadDefinition, "names the file c, but `files` has a.txt, b.txt"),
    ],
)
def test_a_list_that_does_not_fit_the_rows_is_refused(files, line, change, error, complaint):
    listed = files(**{"a.txt": "row: up\nrow: go up\n", "b.txt": f"row: run up\n{line}"})
    with pytest.raises(error, match=re.escape(complaint)):
        published.texts(TEXTS, files=listed, **TEXT_PARTS | change)


NUMBERS = pa.table({"number": [0, 1, 2, 3], "words": [4, 5, 5, 9]})
BY_NUMBER = {"field": "number", "parts": {"train": "train", "test": "ood_test"}}


def test_rows_go_where_their_number_is_listed_and_may_have_to_be_beyond_training(files):
    outcome = published.numbers(NUMBERS, files=files(lists={"train": [2], "test": [3, 0]}), **BY_NUMBER)
    assert outcome.part.tolist() == ["ood_test", "", "train", "ood_test"]
    beyond = {"files": files(lists={"train": [0, 1], "test": [2, 3]}), "beyond_training": True, **BY_NUMBER}
    outcome = published.numbers(NUMBERS, severity="words", **beyond)
    assert outcome.part.tolist() == ["train", "train", "", "ood_test"]
    with pytest.raises(BadDefinition, match="beyond_training needs a severity"):
        published.numbers(NUMBERS, **beyond)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"train": [0], "test": [7]}, "lists, test: no row is 7"),
        ({"train": [0], "test": [0]}, "lists, test: 0 is listed for train and for ood_test"),
        ({"train": [0]}, "lists has the lists train, but `parts` names test, train"),
        ("{", "lists is not JSON"),
    ],
)
def test_lists_that_do_not_fit_the_rows_are_refused(files, content, complaint):
    with pytest.raises(BadData, match=re.escape(complaint)):
        published.numbers(NUMBERS, files=files(lists=content), **BY_NUMBER)


ORIGINS = pa.table(
    {
        "origin": ["train", "dev", "gen", "gen", "spare"],
        "type": ["easy", "easy", "deep", "odd", "odd"],
        "depth": [0, 0, 7, 1, 2],
        "copies": [1, 2, 1, 1, 1],
        "half": [0.5] * 5,
    }
)
PARTS = {"train": "train", "dev": "id_val", "gen": "ood_test"}


def test_rows_go_where_their_published_part_goes():
    outcome = published.parts(ORIGINS, field="origin", parts=PARTS, group="type", severity="depth", weight="copies")
    assert outcome.part.tolist() == ["train", "id_val", "ood_test", "ood_test", ""]
    assert outcome.group.tolist() == ORIGINS["type"].to_pylist()
    assert outcome.severity.tolist() == ORIGINS["depth"].to_pylist()
    assert outcome.weight.tolist() == [1, 2, 1, 1, 1]
    outcome = published.parts(ORIGINS, field="origin", parts=PARTS, only={"gen": {"type": ["deep"]}})
    assert outcome.part.tolist() == ["train", "id_val", "ood_test", "", ""], "restricts one part alone"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"parts": PARTS | {"test": "id_test"}}, "no row has origin = test"),
        ({"only": {"gen": {"type": ["deeper"]}}}, "no row has type = deeper"),
        ({"only": {"spare": {"type": ["odd"]}}}, "only: spare is not a key of `parts`"),
        ({"group": "half"}, "field 'half' is double, and the rule needs names: text or whole numbers"),
        ({"severity": "type"}, "field 'type' is string, and the rule needs numbers"),
        ({"field": "orign"}, "no field named 'orign': did you mean origin"),  # codespell:ignore orign
    ],
)
def test_parts_that_the_rows_do_not_have_are_refused(change, complaint):
    with pytest.raises((BadDefinition, UnknownName), match=re.escape(complaint)):
        published.parts(ORIGINS, **({"field": "origin", "parts": PARTS} | change))


measures = st.lists(st.integers(0, 9), min_size=20, max_size=60)


@given(measures, st.integers(0, 4), st.integers(1, 5))
def test_what_lies_between_easy_and_hard_is_validation(values, easy, gap):
    origin = ["train" if k % 2 else "test" for k in range(len(values))]
    options = {"easy_at_most": easy, "hard_at_least": easy + gap, "part": "origin", "train": "train", "test": "test"}
    outcome = grades.published(pa.table({"steps": values, "origin": origin}), field="steps", **options)
    for value, where, part in zip(values, origin, outcome.part.tolist(), strict=True):
        tested = "id_test" if value <= easy else "ood_test" if value >= easy + gap else "ood_val"
        assert part == (tested if where == "test" else "train" if value <= easy else "")


def numbered(values, **columns):
    return pa.table({"hard": values, "row_id": pa.array(range(len(values)), pa.uint64())} | columns)


GRADED = {"field": "hard", "easy_at_most": 1, "hard_at_least": 2, "id_test": 1, "seed": "a"}


@given(measures.filter(lambda values: sum(value <= 4 for value in values) > 3))
def test_the_in_distribution_test_is_drawn_from_the_easy_rows_alone(values):
    outcome = grades.drawn(numbered(values), **GRADED | {"easy_at_most": 4, "hard_at_least": 7, "id_test": 3})
    counts = Counter(outcome.part.tolist())
    assert (counts["id_test"], counts["train"]) == (3, sum(value <= 4 for value in values) - 3)
    assert all((value <= 4) == (part in ("train", "id_test")) for value, part in zip(values, outcome.part, strict=True))
    assert all((value >= 7) == (part == "ood_test") for value, part in zip(values, outcome.part, strict=True))
    assert outcome.severity.tolist() == values and outcome.group is None


def test_grades_are_drawn_by_seed_among_the_rows_that_meet_conditions_and_grouped_by_a_field():
    table = numbered([0] * 40 + [9] * 5)
    item, again, other = (grades.drawn(table, **GRADED | {"seed": seed, "id_test": 10}).part.tolist() for seed in "aab")
    assert item == again != other
    table = numbered([0, 0, 0, 9, 9], origin=["a", "a", "b", "a", "b"])
    outcome = grades.drawn(table, **GRADED | {"id_test": 0}, only={"origin": ["a"]}, group="origin")
    assert outcome.part.tolist() == ["train", "train", "", "ood_test", ""]
    assert outcome.group.tolist() == ["a", "a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"hard_at_least": 1}, "hard: easy_at_most = 1 must lie below hard_at_least = 1"),
        ({"id_test": 4}, "id_test = 4, but only 4 rows have hard <= 1"),
        ({"only": {"origin": ["c"]}}, "no row has origin = c"),
    ],
)
def test_grades_that_cannot_be_are_refused(change, complaint):
    with pytest.raises(BadDefinition, match=re.escape(complaint)):
        grades.drawn(numbered([0, 0, 1, 1, 9], origin=["a"] * 5), **(GRADED | change))


def test_all_rows_of_a_task_go_to_one_part_and_levels_say_which():
    number = np.arange(60)
    names, level = np.array([f"task {position // 2}" for position in number]), (number // 2) % 3 + 1
    table = pa.table({"row_id": number.astype(np.uint64), "level": level, "task": names.tolist()})
    options = {"field": "level", "easy": [1], "hard": [3], "task": "task", "id_test": 4, "seed": "s"}
    result = levels(table, **options)
    counts = {part: len(set(names[result.part == part])) for part in ("train", "id_test", "ood_test")}
    assert counts == {"train": 6, "id_test": 4, "ood_test": 10}
    assert all(len(set(result.part[names == name])) == 1 for name in names)
    assert (set(level[result.part == "ood_test"]), set(level[result.part == ""])) == ({3}, {2})
    assert (result.severity == level).all()
    result = levels(table, **options, without=["task 2"])
    assert (set(result.part[names == "task 2"]), set(result.part[names == "task 5"])) == ({""}, {"ood_test"})
    with pytest.raises(BadDefinition, match="id_test = 10, but only 10 tasks"):
        levels(table, **options | {"id_test": 10})
    with pytest.raises(BadDefinition, match="without: no row has task = task 99"):
        levels(table, **options, without=["task 99"])


def noisy(true, told):
    return pa.table({"tags": true, "distant": told, "origin": ["train", "train", "dev", "test"]})


RELABELLED = {"label": "tags", "given": "distant", "field": "origin"}
RELABELLED |= {"parts": {"train": "train", "dev": "id_val", "test": "id_test"}}


@pytest.mark.parametrize(
    ("true", "told"), [(["O B", "O", "B", "O"], ["O O", "O", "", ""]), ([1, 0, 1, 0], [0, 0, -1, -1])]
)
def test_published_noise_overrides_the_training_labels_that_differ_and_no_others(true, told):
    outcome = noise_published.relabelled(noisy(true, told), **RELABELLED)
    assert outcome.part.tolist() == ["train", "train", "id_val", "id_test"]
    assert np.ma.getmaskarray(outcome.label).tolist() == [False, True, True, True]
    assert outcome.label[0] == told[0]


def test_a_share_of_the_rows_trains_with_the_labels_as_first_published():
    ids = pa.array(np.arange(4, dtype=np.uint64))
    table = noisy(["O B"] * 4, ["O O", "O B", "O O", "O B"]).append_column("row_id", ids)
    outcome = noise_published.share(table, label="tags", given="distant", train=0.5, seed="s")
    trained = outcome.part == "train"
    assert (trained.sum(), set(outcome.part[~trained])) == (2, {"id_test"})
    assert (~np.ma.getmaskarray(outcome.label)).tolist() == (trained & [True, False, True, False]).tolist()


def test_published_noise_is_a_label_of_the_same_kind():
    with pytest.raises(BadDefinition, match="'tags' is string, and 'distant' is int64"):
        noise_published.relabelled(noisy(["O"] * 4, [0] * 4), **RELABELLED)
    with pytest.raises(BadDefinition, match="no field 'crowd'"):
        noise_published.relabelled(noisy(["O"] * 4, ["O"] * 4), **RELABELLED | {"given": "crowd"})


PEOPLE = {"label": "object", "given": "worst", "classes": 10}


@pytest.fixture
def annotated() -> pa.Table:
    """Sixty training rows, of which each third label is wrong, by six people; and twenty test rows of no one."""
    row = np.arange(80)
    worst = np.where(row % 3 == 0, (row + 1) % 10, row % 10)
    return pa.table(
        {
            "row_id": row.astype(np.uint64),
            "object": row % 10,
            "worst": np.where(row < 60, worst, -1),
            "published": np.where(row < 60, "train", "test").tolist(),
            "worker": [str(number // 5 % 6) if number < 60 else "" for number in row.tolist()],
        }
    )


def test_training_labels_are_the_people_s_and_test_labels_true(annotated):
    outcome = noise_human.annotated(annotated, train={"published": "train"}, **PEOPLE)
    assert outcome.part.tolist() == ["train"] * 60 + ["id_test"] * 20
    assert np.flatnonzero(~np.ma.getmaskarray(outcome.label)).tolist() == list(range(0, 60, 3))
    assert np.array_equal(outcome.label.data[:60], annotated["worst"].to_numpy()[:60])
    with pytest.raises(BadDefinition, match=r"labels of 'worst' run from -1 to -1"):
        noise_human.annotated(annotated, train={"published": "test"}, **PEOPLE)


def test_no_annotator_stands_on_both_sides(annotated):
    settings = PEOPLE | {"annotator": "worker", "seed": "test", "train": {"published": "train"}}
    outcome = noise_human.annotators_apart(annotated, share=0.5, **settings)
    sides = {part: set(outcome.group[outcome.part == part].tolist()) for part in ("train", "ood_test", "id_test")}
    assert (len(sides["train"]), len(sides["ood_test"]), sides["id_test"]) == (3, 3, {"none"})
    assert not sides["train"] & sides["ood_test"]
    changed = ~np.ma.getmaskarray(outcome.label)
    assert changed[outcome.part == "train"].any() and not changed[outcome.part != "train"].any()
    with pytest.raises(BadDefinition, match="share = 1"):
        noise_human.annotators_apart(annotated, share=1, **settings)
