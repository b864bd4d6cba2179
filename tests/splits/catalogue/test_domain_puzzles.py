"""Rush Hour and ARC as they are read, and the rule of levels."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.acquire.archive_files import FolderFiles
from farshift.loaders.readers.questions import PLANES, arc_tasks, encode_planes, rush_hour
from farshift.splits.rules.easy_to_hard_tasks import levels


def test_planes_mark_the_car_walls_and_the_ends_of_every_piece():
    board = "BBBooxoooCooAAoCoooooCDDxEEFFooooooo"
    planes = encode_planes(np.array([list(board.encode())], np.uint8).reshape(1, 6, 6))[0]
    named = {name: planes[number] for number, name in enumerate(PLANES)}
    where = {name: {(int(y), int(x)) for y, x in zip(*np.nonzero(plane), strict=True)} for name, plane in named.items()}
    assert where["car"] == {(2, 0), (2, 1)}
    assert where["wall"] == {(0, 5), (4, 0)}
    assert where["left end"] == {(0, 0), (2, 0), (3, 4), (4, 1), (4, 3)}
    assert where["across"] == {(0, 1)}
    assert where["right end"] == {(0, 2), (2, 1), (3, 5), (4, 2), (4, 4)}
    assert where["upper end"] == {(1, 3)}
    assert where["down"] == {(2, 3)}
    assert where["lower end"] == {(3, 3)}


@pytest.mark.parametrize("line", ["05 " + "o" * 35 + " 7", "x " + "o" * 36 + " 7", "05 " + "o" * 36])
def test_a_line_that_is_no_board_is_refused(tmp_path, line):
    (tmp_path / "boards.txt").write_text("01 " + "o" * 36 + " 5\n" + line + "\n")
    with pytest.raises(BadData, match=r"boards\.txt: line 2 is not"):
        rush_hour({"boards.txt": tmp_path / "boards.txt"})


def task(*tests: int) -> dict[str, list[dict[str, list[list[int]]]]]:
    return {
        "train": [{"input": [[1, 2]], "output": [[2], [1]]}],
        "test": [{"input": [[number]], "output": [[number, number]]} for number in tests],
    }


def test_a_question_is_the_solved_pairs_and_one_test_input_and_no_task_is_read_twice(tmp_path):
    (tmp_path / "one.json").write_text(json.dumps({"train": {"b": task(3), "a": task(4, 5)}}))
    (tmp_path / "two.json").write_text(json.dumps({"eval": {"a": task(9), "c": task(3), "d": task(6)}}))
    sets = [
        {"file": "one.json", "part": "train", "published": "one", "level": 1},
        {"file": "two.json", "part": "eval", "published": "two", "level": 2},
    ]
    files = {name: tmp_path / name for name in ("one.json", "two.json")}
    table = arc_tasks(files, sets=sets).to_pydict()
    assert table["task"] == ["a", "a", "b", "d"], "c has the content of b, and a second a the name of the first"
    assert table["answer"] == ["44", "55", "33", "66"]
    assert table["level"] == [1, 1, 1, 2]
    assert table["cells"] == [2, 2, 2, 2]
    assert table["question"][0] == "input:\n12\noutput:\n2\n1\n\ninput:\n4\noutput:"
    with pytest.raises(BadData, match=r"one\.json: not a readable file of tasks with a part 'eval'"):
        arc_tasks(files, sets=[sets[0] | {"part": "eval"}])
    with pytest.raises(BadDefinition, match=r"no file three\.json"):
        arc_tasks(files, sets=[sets[0] | {"file": "three.json"}])


def test_a_folder_of_tasks_gives_each_the_name_of_its_file_and_of_its_folder(tmp_path):
    (tmp_path / "corpus/Copy").mkdir(parents=True)
    (tmp_path / "corpus/Copy/Copy1.json").write_text(json.dumps(task(3)))
    (tmp_path / "one.json").write_text(json.dumps({"train": {"a": task(4)}}))
    sets = [
        {"file": "one.json", "part": "train", "published": "ARC", "level": 1},
        {"file": "corpus", "part": "", "published": "ConceptARC", "level": 2},
    ]
    files = {"one.json": tmp_path / "one.json", "corpus": FolderFiles(tmp_path / "corpus")}
    table = arc_tasks(files, sets=sets).to_pydict()
    assert table["task"] == ["a", "Copy1"]
    assert table["published"] == ["ARC", "ConceptARC, Copy"]
    (tmp_path / "corpus/Copy/Copy2.json").write_text("{}")
    with pytest.raises(BadData, match=r"Copy/Copy2\.json is not a task"):
        arc_tasks(files | {"corpus": FolderFiles(tmp_path / "corpus")}, sets=sets)


def test_tasks_of_an_erratum_are_left_out_and_must_be_there():
    outcome = levels(
        table_of_tasks(), field="level", easy=[1], hard=[3], task="task", id_test=2, seed="s", without=["task 2"]
    )
    assert set(outcome.part[np.isin(outcome.group, ["task 2"])]) == {""}
    assert set(outcome.part[np.isin(outcome.group, ["task 5"])]) == {"ood_test"}
    with pytest.raises(BadDefinition, match="without: no row has task = task 99"):
        levels(
            table_of_tasks(), field="level", easy=[1], hard=[3], task="task", id_test=2, seed="s", without=["task 99"]
        )


def table_of_tasks(count: int = 30) -> pa.Table:
    number = np.arange(count * 2)
    names = [f"task {position // 2}" for position in number]
    return pa.table({"row_id": number.astype(np.uint64), "level": (number // 2) % 3 + 1, "task": names})


def test_all_rows_of_a_task_go_to_one_part_and_levels_say_which():
    table = table_of_tasks()
    result = levels(table, field="level", easy=[1], hard=[3], task="task", id_test=4, seed="s")
    names, level = np.array(table["task"]), np.array(table["level"])
    assert {part: len(set(names[result.part == part])) for part in ("train", "id_test", "ood_test")} == {
        "train": 6,
        "id_test": 4,
        "ood_test": 10,
    }
    assert all(len(set(result.part[names == name])) == 1 for name in names)
    assert set(level[result.part == "ood_test"]) == {3}
    assert set(level[result.part == ""]) == {2}
    assert (result.severity == level).all()
    with pytest.raises(BadDefinition, match="id_test = 10, but only 10 tasks"):
        levels(table, field="level", easy=[1], hard=[3], task="task", id_test=10, seed="s")
