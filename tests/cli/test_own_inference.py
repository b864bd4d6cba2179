"""What a draft infers is held against what follows: labels, their classes, their task, views, and declared flaws."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift import load
from farshift.benchmarks.benchmark import find_benchmark
from farshift.splits.catalogue import find_manifest
from farshift.splits.manifest import Manifest

ROWS = 600
WORDS = ("cat", "dog", "emu")
Build = Callable[..., Any]


def site(row: int) -> str:
    return "ABCD"[row % 4 if row % 7 else 0]


@pytest.fixture
def build(command, tmp_path, cache, monkeypatch) -> Build:
    """Builds the split `pets/<name>` over columns that stand beside an input `x` and the `site`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))

    def run(name: str, columns: dict[str, Sequence[Any]], *, parquet=False, data="", meta=(), **said: str):
        count = len(next(iter(columns.values())))
        table = {
            "x": [row * 7919 % 10007 / 10007 for row in range(count)],
            **columns,
            "site": [site(row) for row in range(count)],
        }
        file = tmp_path / f"{name}.{'parquet' if parquet else 'csv'}"
        if parquet:
            pq.write_table(pa.table(table), file)
        else:
            with file.open("w", newline="") as out:
                csv.writer(out).writerows([list(table), *zip(*table.values(), strict=True)])
        keys = {
            "name": f'"pets/{name}"',
            "version": "1",
            "kind": '"domain"',
            "title": '"Pets of another site"',
            "label": f'"{next(iter(columns))}"',
            "rule": '"domain/hold_out"',
            "parameters": '{ field = "site", ood = ["D"] }',
            "benchmark": "{}",
            "source": f'{{ name = "{name}" }}',
        } | said
        labels = json.dumps([column for column in columns if column not in meta])
        roles = f'inputs = ["x"], labels = {labels}, meta = {json.dumps(["site", *meta])}'
        keys["data"] = f'{{ files = ["{file.name}"], {roles}{data} }}'
        (tmp_path / f"{name}.toml").write_text("".join(f"{key} = {value}\n" for key, value in keys.items()))
        return command("splits", "build", f"{name}.toml")

    return run


NOISE = {"kind": '"corrupted-label"', "rule": '"noise_published/share"'}
GIVEN = '{ label = "clean", given = "given", train = 0.75, seed = "s" }'


def frozen(name: str) -> Manifest:
    return find_manifest(f"pets/{name}")


def wrong_labels(name: str) -> int:
    return frozen(name).audit()["noise"]["train"]["wrong"]


def test_labels_that_share_a_text_share_one_numbering_so_that_a_rule_compares_them(build):
    clean = [WORDS[1:][row % 2] for row in range(ROWS)]
    given = [("cat" if row % 20 == 0 else word) for row, word in enumerate(clean)]
    for parquet in (False, True):
        name = f"shared{int(parquet)}"
        done = build(name, {"clean": clean, "given": given}, parquet=parquet, parameters=GIVEN, **NOISE)
        assert done.returncode == 0, done.stderr
        assert 0 < wrong_labels(name) <= ROWS // 20
        assert find_benchmark(f"pets/{name}").task.names == WORDS
        assert "the label 'clean' has classes without training rows" not in done.stderr


def test_a_meta_field_that_a_rule_compares_with_the_label_has_its_numbering(build):
    clean = [WORDS[row % 3] for row in range(ROWS)]
    columns = {"clean": clean, "given": [("emu" if word == "cat" else word) for word in clean]}
    classes = ', classes = ["clean", "given"]'
    done = build("meta", columns, data=classes, meta=["given"], parameters=GIVEN, **NOISE)
    assert done.returncode == 0, done.stderr
    part = load("pets/meta", part="train")
    assert wrong_labels("meta") == (part.true_labels() == WORDS.index("cat")).sum()
    maps = ', options = { maps = { clean = ["cat", "dog", "emu"], given = ["dog", "emu"] } }'
    done = build("mapped", columns, data=maps, meta=["given"], parameters=GIVEN, **NOISE)
    assert "labels of 'given' to 'clean', but their classes are numbered differently" in done.stderr


def test_labels_whose_classes_are_numbered_apart_are_refused_with_one_list_for_both(build, tmp_path):
    clean = [WORDS[row % 3] for row in range(ROWS)]
    columns = {"clean": clean, "given": [word.title() for word in clean]}
    done = build("apart", columns, parameters=GIVEN, **NOISE)
    assert done.returncode == 2
    assert "labels of 'given' to 'clean', but their classes are numbered differently" in done.stderr
    assert 'options = { maps = { clean = ["cat", "dog", "emu", "Cat"' in done.stderr
    assert not (tmp_path / "splits").exists()
    alike = ", ".join(f'["{word}", "{word.title()}"]' for word in WORDS)
    columns["given"][:40] = ["Dog"] * 40
    maps = f", options = {{ maps = {{ clean = [{alike}], given = [{alike}] }} }}"
    done = build("together", columns, data=maps, parameters=GIVEN, **NOISE)
    assert done.returncode == 0, done.stderr
    assert 0 < wrong_labels("together") <= 27
    turned = ", options = { maps = { clean = { cat = 0, dog = 1, emu = 2 }, given = { Cat = 0, cat = 1, dog = 0 } } }"
    columns["given"] = [word if word != "emu" else "Cat" for word in clean]
    done = build("turned", columns, data=turned, parameters=GIVEN, **NOISE)
    assert "but their classes are numbered differently (cat, dog, emu; Cat, cat, dog)" in done.stderr
    columns["given"] = [WORDS.index(word) for word in clean[1:]] + [2]
    done = build("counted", columns, parameters=GIVEN, **NOISE)
    assert "the integers of 'given' are taken as the classes of 'clean': 0 cat, 1 dog, 2 emu" in done.stderr


def test_a_label_that_is_text_is_no_match_for_classes_and_the_line_makes_classes_of_it(build):
    clean = [WORDS[row % 3] for row in range(ROWS)]
    columns = {"clean": clean, "given": [f"typo {row}" if row % 3 == 0 else word for row, word in enumerate(clean)]}
    done = build("typos", columns, parameters=GIVEN, **NOISE)
    assert done.returncode == 2
    assert "'clean' is int64, and 'given' is string: they are compared" in done.stderr
    classes = ', classes = ["clean", "given"]'
    assert classes[2:] in done.stderr
    done = build("typed", columns, data=classes, parameters=GIVEN, **NOISE)
    assert done.returncode == 0, done.stderr
    assert 100 < wrong_labels("typed") < 200


def test_labels_that_no_rule_compares_may_be_numbered_apart(build):
    columns = {"kind": [WORDS[row % 3] for row in range(ROWS)], "size": ["ab"[row % 2] for row in range(ROWS)]}
    assert build("both", columns, parameters='{ field = "size", ood = [1] }'.replace("[1]", '["1"]')).returncode == 0
    assert find_benchmark("pets/both").task.names == WORDS


def test_a_benchmark_on_wrong_labels_has_the_views_of_those_that_are_shipped(build, command):
    noise = '{ label = "y", classes = 3, rate = RATE, train = 450, seed = "s", draw = 1 }'
    output = {"kind": '"corrupted-label"', "rule": '"noise/symmetric_exclusive"'}
    columns = {"y": [WORDS[row % 3] for row in range(ROWS)]}
    done = build("noise", columns, parameters=noise.replace("RATE", "0.4"), **output)
    assert done.returncode == 0, done.stderr
    result, shipped = (find_benchmark(name).definition for name in ("pets/noise", "optdigits/pair_flip_20_draw1"))
    assert (result.views, result.protocol, result.holdouts) == (shipped.views, shipped.protocol, shipped.holdouts)
    benchmark = find_benchmark("pets/noise")
    part, truth = benchmark.view("ood")
    assert part.corrupted.all()
    assert (truth != part.observed_labels()).all()
    assert len(part) > 100
    assert command("benchmarks", "show", "pets/noise").returncode == 0
    done = build("all_wrong", columns, parameters=noise.replace("RATE", "1.0"), **output)
    assert done.returncode == 0, done.stderr
    assert set(find_benchmark("pets/all_wrong").definition.views) == {"id", "ood", "restored", "memorised"}


@pytest.mark.parametrize("parquet", [False, True])
def test_noise_over_truth_values_names_what_makes_classes_of_them(build, parquet):
    output = {"kind": '"corrupted-label"', "rule": '"noise/symmetric_exclusive"'}
    output["parameters"] = '{ label = "y", classes = 2, rate = 0.4, train = 450, seed = "s", draw = 1 }'
    columns = {"y": [row % 2 == 0 for row in range(ROWS)]}
    refused = build("truth", columns, parquet=parquet, **output)
    assert refused.returncode == 2
    assert 'classes = ["y"] in [data] makes the classes 0 (false) and 1 (true) of them' in refused.stderr
    done = build("truth", columns, parquet=parquet, data=', classes = ["y"]', **output)
    assert done.returncode == 0, done.stderr
    part, _ = find_benchmark("pets/truth").view("ood")
    assert len(part) > 100
    assert part.corrupted.all()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([22345678901 + row % 2 for row in range(ROWS)], 'classes = ["y"] in [data] numbers the values that occur'),
        (
            [row * 7919 % 431 + 100 for row in range(ROWS)],
            "benchmark = { task = { classes = 531 } } treats them as classes",
        ),
        ([row % 25 for row in range(60)], "25 different whole numbers in 60 rows, up to 24"),
        ([row % 2 * 2 - 1 for row in range(ROWS)], "has the class -1: classes are integers from 0; classes = "),
    ],
)
def test_whole_numbers_that_hardly_are_classes_are_refused_with_what_to_say(build, values, told):
    done = build("numbers", {"y": values})
    assert done.returncode == 2
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("farshift: error:"))
    assert told in line
    assert "y makes no task by default" in done.stderr


@pytest.mark.parametrize("parquet", [False, True])
def test_what_the_refusal_of_whole_numbers_says_makes_a_benchmark(build, parquet):
    zips = [22345678901 + 98765432 * (row % 2) for row in range(ROWS)]
    assert build("zips", {"y": zips}, parquet=parquet, data=', classes = ["y"]').returncode == 0
    assert find_benchmark("pets/zips").task.names == ("22345678901", "22444444333")
    prices = [row * 7919 % 431 + 100 for row in range(ROWS)]
    assert build("prices", {"y": prices}, parquet=parquet, data=', types = { y = "float64" }').returncode == 0
    assert find_benchmark("pets/prices").task.type == "regression"
    done = build("many", {"y": prices}, parquet=parquet, benchmark="{ task = { classes = 531 } }")
    assert done.returncode == 0, done.stderr
    assert find_benchmark("pets/many").task.classes == 531
    assert re.search(r"has classes without rows: 0, 1, 2, .* and \d+ more", done.stderr)


def test_many_classes_that_all_occur_need_no_word(build):
    assert build("classes", {"y": [row % 120 for row in range(ROWS)]}).returncode == 0
    assert find_benchmark("pets/classes").task.classes == 120


def test_classes_that_training_lacks_are_named(build):
    words = [WORDS[row % 2] if site(row) != "D" else "emu" for row in range(ROWS)]
    done = build("lacking", {"y": words})
    assert done.returncode == 0, done.stderr
    assert re.search(r"'y' has classes without training rows \(\d+ rows of ood_test\): emu", done.stderr)
    done = build("lacking_numbers", {"y": [WORDS.index(word) for word in words]})
    assert re.search(r"'y' has classes without training rows \(\d+ rows of ood_test\): 2", done.stderr)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            {"label_names": '["cat", "dog"]'},
            "'y' has, or is assigned by the rule, the class 2, but 2 classes have names (cat, dog)",
        ),
        ({"label_names": '["cat", "cat", "dog"]'}, "label_names: a name occurs twice"),
        ({"benchmark": "{ task = { classes = 2 } }"}, "has class 2, but the task has 2 classes"),
        (
            {"benchmark": '{ task = { type = "sequence" } }'},
            'to keep it as text, write types = { y = "string" } in [data]',
        ),
        ({"benchmark": '{ metrics = ["rmse"] }'}, "the metric rmse cannot score classification tasks"),
        ({"benchmark": '{ views = { id = { part = "id_test" }, ood = { part = "ood_val" } } }'}, "'ood_val'"),
    ],
)
def test_what_is_declared_has_to_be_what_occurs(build, tmp_path, said, told):
    done = build("declared", {"y": [row % 3 for row in range(ROWS)]}, **said)
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "benchmarks").exists()


def test_declared_classes_without_a_row_are_named_and_names_are_those_of_the_task(build):
    numbers = {"y": [row % 3 for row in range(ROWS)]}
    done = build("names", numbers, label_names='["cat", "dog", "emu", "yak"]')
    assert done.returncode == 0, done.stderr
    assert "'y' has classes without rows: yak" in done.stderr
    named = '{ task = { names = ["cat", "dog", "emu"] } }'
    assert build("named", numbers, benchmark=named).returncode == 0
    assert find_benchmark("pets/named").task.names == WORDS


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (("0", "1", "2", "3+"), ("0", "1", "2", "3+")),
        (("1", "2", "3", "10"), ("1", "2", "3", "10")),
        (("0.5", "1.5"), ("0.5", "1.5")),
    ],
)
def test_a_few_texts_that_many_rows_share_are_classes_numbers_among_them_or_not(build, texts, names):
    done = build("texts", {"y": [texts[row // 4 % len(texts)] for row in range(ROWS)]}, parquet=True)
    assert done.returncode == 0, done.stderr
    assert find_benchmark("pets/texts").task.names == names
    assert f"y {len(texts)} classes: {', '.join(names)} (label)" in done.stderr
    assert f"y makes a classification task of {len(texts)} classes" in done.stderr


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["five", *("01"[row % 2] for row in range(ROWS))], "'five' among its numbers"),
        ([("0", "1", "NA")[row % 3] for row in range(ROWS)], "'NA' among its numbers"),
        ([f"{row} words" for row in range(ROWS)], "600 distinct texts in 600 rows"),
    ],
)
@pytest.mark.parametrize("parquet", [False, True])
def test_text_that_is_no_class_says_why_and_what_makes_classes(build, texts, why, parquet):
    done = build("sequences", {"y": texts}, parquet=parquet)
    assert f'y makes a sequence task ({why}: classes = ["y"] turns them into classes)' in done.stderr


def test_a_refusal_for_flaws_gives_the_line_that_declares_them_all(build, command, tmp_path):
    columns = {"y": [WORDS[row % 3] for row in range(ROWS)], "job": ["ab"[row % 2] for row in range(ROWS)]}
    path = tmp_path / "flawed.toml"
    build("flawed", columns)
    draft = path.read_text().replace('inputs = ["x"], labels = ["y", "job"]', 'inputs = ["job"], labels = ["y"]')
    draft = draft.replace('ood = ["D"]', 'ood = ["D"], id_test = 0.2, seed = "s"').replace("flawed", "flaws")
    path.write_text(draft.replace("flaws.csv", "flawed.csv"))
    done = command("splits", "build", path)
    assert done.returncode == 2
    assert "shares inputs between parts: " in done.stderr
    assert re.search(r"both parts of train/id_test .*both parts of train/ood_test", done.stderr)
    line = done.stderr.rstrip().partition("if this is intended, add to the draft: ")[2]
    assert re.fullmatch(r'declared = \{ duplicates = \{ "train/id_test" = [12], "train/ood_test" = [12] \} \}', line)
    refused = path.read_text()
    path.write_text(f"{refused}{line}\n")
    assert command("splits", "build", path).returncode == 0
    assert sorted(frozen("flaws").definition.declared.duplicates) == ["train/id_test", "train/ood_test"]


def test_training_rows_that_stand_in_a_test_can_be_dropped(build, command, tmp_path):
    build("pairs", {"y": [WORDS[row % 3] for row in range(ROWS)]})
    heading, *lines = (tmp_path / "pairs.csv").read_text().splitlines()
    far = [line for line in lines if line.endswith("D")][:5]
    copies = [f"{line.partition(',')[0]},cat,A" for line in far]
    (tmp_path / "shared.csv").write_text("\n".join([heading, *lines, *copies]) + "\n")
    path = tmp_path / "shared.toml"
    path.write_text((tmp_path / "pairs.toml").read_text().replace("pairs", "shared"))
    refused = command("splits", "build", path).stderr
    assert (
        "5 inputs in both parts of train/ood_test (none are declared); add to the draft: drop_duplicates = true"
        in refused
    )
    path.write_text(f"drop_duplicates = true\n{path.read_text()}")
    assert command("splits", "build", path).returncode == 0
    assert command("splits", "verify", "pets/shared").returncode == 0
    assert load("pets/shared", "train").row_ids.tolist() == load("pets/pairs", "train").row_ids.tolist()
    assert len(load("pets/shared", "ood_test")) == len(load("pets/pairs", "ood_test"))
