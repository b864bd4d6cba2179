"""Labels that are text, in data of one's own: classes with names, from the table to the score."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift import evaluate, load
from farshift.benchmarks.benchmark import find_benchmark
from farshift.core.errors import BadDefinition, ModelError
from farshift.splits.catalogue import find_manifest

DRAFT = """
name = "pets/long"
version = 1
kind = "length"
title = "Pets in long texts"
label = "animal"
rule = "length/threshold"
parameters = { field = "text", at_most = 10 }
severity = { name = "length", unit = "words" }
data = { files = ["FILE"], inputs = ["text"], labels = ["animal"] }
benchmark = {}
"""
NAMES = ["bird", "cat", "dog"]
ROWS = [(f"{'w ' * (row % 20)}{row}", NAMES[2 - row % 3]) for row in range(200)]

IDENTITY = "1ec977a26a1418771c2be4e054ec95a4da0c2cbb55c89442b5c2a730789fc1e9"
"""Of the split, whatever the format of its files."""
FORMATS = ("pets.csv", "pets.tsv", "pets.jsonl", "pets.parquet", "wide.parquet", "coded.parquet")


def written(path: Path, rows: list[tuple[str, str]] = ROWS) -> None:
    if path.suffix == ".parquet":
        kinds = {"pets": pa.string(), "wide": pa.large_string(), "coded": pa.dictionary(pa.int32(), pa.string())}
        text, animal = zip(*rows, strict=True)
        pq.write_table(pa.table({"text": text, "animal": pa.array(animal).cast(kinds[path.stem])}), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"text": text, "animal": animal}) + "\n" for text, animal in rows))
    else:
        with path.open("w", newline="") as file:
            out = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            out.writerows([("text", "animal"), *rows])


@pytest.fixture
def home(tmp_path, cache, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    return tmp_path


def built(command, home: Path, file: str = "pets.csv", draft: str = DRAFT):
    (home / "draft.toml").write_text(draft.replace("FILE", file))
    return command("splits", "build", "draft.toml")


@pytest.fixture
def pets(command, home) -> Path:
    written(home / "pets.csv")
    assert built(command, home).returncode == 0
    return home


class Named:
    def predict(self, batch):
        return [NAMES[2 - int(text.split()[-1]) % 3] for text in batch["text"]]


class InAnArray(Named):
    def predict(self, batch):
        return np.array(super().predict(batch))


class WithHoles(Named):
    def predict(self, batch):
        return [None, *super().predict(batch)[1:]]


class Misspelt:
    def predict(self, batch):
        return ["catt"] * len(batch["text"])


@pytest.mark.parametrize("file", FORMATS)
def test_texts_that_several_rows_share_are_classes_in_the_texts_order_in_every_format(command, home, file):
    written(home / file)
    done = built(command, home, file)
    assert done.returncode == 0, done.stderr
    assert "animal 3 classes: bird, cat, dog (label)" in done.stderr
    manifest = find_manifest("pets/long")
    assert manifest.definition.label_names == NAMES
    assert manifest.identity == IDENTITY, "the same in every format"
    task = find_benchmark("pets/long").task
    assert (task.type, task.classes, task.names) == ("classification", 3, tuple(NAMES))
    part = load("pets/long", part="train").numpy()
    named = {text: NAMES[label] for text, label in zip(part["text"], part["animal"], strict=True)}
    assert named.items() <= dict(ROWS).items()


def test_a_build_tells_what_it_drops_and_where_it_writes(command, home):
    home = home / "mine"
    (home.parent / "draft.toml").write_text(
        DRAFT.replace("FILE", "pets.csv")
        .replace('labels = ["animal"]', 'labels = ["animal"], options = { if_missing = "drop" }')
        .replace("benchmark =", "drop_duplicates = true\nbenchmark =")
    )
    shared = [("w " * 9 + "same", "cat"), ("w " * 12 + "other", "dog ")] * 5
    written(home.parent / "pets.csv", [*ROWS, *shared, ("short", ""), ("", "cat")])
    done = command("splits", "build", "draft.toml", "--out", "mine/splits/manifests")
    assert done.returncode == 0, done.stderr
    assert "[data] if_missing drops 2 rows of 212" in done.stderr
    assert "pets/long: drop_duplicates drops 0 rows of train" in done.stderr
    assert "classes: bird, cat, dog, 'dog ' (label)" in done.stderr
    assert "benchmark: mine/benchmarks/definitions/pets-long.toml" in done.stdout


def test_a_table_without_rows_is_called_that(command, home):
    written(home / "pets.csv", [])
    assert "[data] pets.csv has no rows" in built(command, home).stderr


def test_show_says_what_the_classes_are_called(command, command_json, pets):
    shown = command("splits", "show", "pets/long").stdout
    assert "classes of animal: 0 bird, 1 cat, 2 dog" in shown
    assert any(f"animal: {position} ({name})" in shown for position, name in enumerate(NAMES))
    assert command_json("splits", "show", "pets/long")["fields"][1]["names"] == NAMES


@pytest.mark.parametrize("model", [Named, InAnArray, WithHoles])
def test_a_model_may_answer_by_the_names_of_classes(pets, model):
    run = evaluate(model, on="pets/long", budget="quick", seeds=1, out=pets / "run")
    table = run.predictions(named=True)
    given = table.filter(table["name"].is_valid())
    assert given.num_rows > 50
    assert {NAMES[row["prediction"]] == row["name"] for row in given.to_pylist()} == {True}
    assert "name" not in run.predictions().column_names


def test_a_name_that_is_no_class_is_refused_with_those_that_are(pets):
    with pytest.raises(
        ModelError, match=r"predict returned 'catt' for row .*, which is not one of the classes bird, cat, dog"
    ):
        evaluate(Misspelt, on="pets/long", budget="quick", seeds=1, out=pets / "run")


def test_classes_of_a_label_that_is_kept_as_text_are_refused_with_what_to_do(command, home):
    written(home / "pets.csv")
    draft = DRAFT.replace('labels = ["animal"]', 'labels = ["animal"], types = { animal = "string" }')
    draft = draft.replace("benchmark = {}", 'benchmark = { task = { type = "classification", classes = 3 } }')
    done = built(command, home, draft=draft)
    assert done.returncode == 2
    assert "the label 'animal' is text: to use it as classes, write classes = [\"animal\"] in [data]" in done.stderr
    assert not (home / "splits").exists()
    assert built(command, home, draft=draft.split("benchmark =")[0]).returncode == 0
    assert find_manifest("pets/long").definition.label_names == []
    written_by_hand = """
name = "pets/long"
split = "pets/long@1"
title = "Pets"
task = { type = "classification", inputs = ["text"], label = "animal", classes = 3 }
metrics = [{ name = "accuracy", version = 1 }]
holdouts = [{ part = "train", to = "id_test", share = 0.1 }]
views = { id = { part = "id_test" }, ood = { part = "ood_test" } }
"""
    (home / "benchmarks" / "definitions").mkdir(parents=True)
    (home / "benchmarks" / "definitions" / "pets-long.toml").write_text(written_by_hand)
    with pytest.raises(BadDefinition, match="the label 'animal' is text, not a class"):
        evaluate(Named, on="pets/long", budget="quick", seeds=1, out=home / "run")
