"""Classes that a data set of the Hub has names for keep them: in the split, in its benchmark, and back in a data set."""

from __future__ import annotations

from pathlib import Path

import pytest
from farshift import FarshiftError, load
from farshift.benchmarks.benchmark import find_benchmark
from farshift.loaders.freezing.freeze import freeze
from own_benchmark import write_benchmark

datasets = pytest.importorskip("datasets")

NAMES = ["world", "sports", "business"]
DRAFT = """
name = "news/long"
version = 1
kind = "length"
title = "Topics of longer texts"
label = "topic"
rule = "length/threshold"
parameters = { field = "text", at_most = 6 }
data = { files = ["*.parquet"], inputs = ["text"], labels = { topic = "label" } }
"""


def write(path: Path, names: list[str] = NAMES, classes=(0, 1, 2), start: int = 0) -> None:
    rows = range(start, start + 60)
    columns = {
        "text": [" ".join(f"w{row}" for _ in range(1 + row % 12)) for row in rows],
        "label": [classes[row % len(classes)] for row in rows],
    }
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=names)})
    datasets.Dataset.from_dict(columns, features).to_parquet(str(path))


@pytest.fixture
def home(tmp_path, cache, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    return tmp_path


def frozen(home: Path, draft: str = DRAFT):
    (home / "draft.toml").write_text(draft)
    return freeze(home / "draft.toml", home / "splits" / "manifests")[0]


def test_names_of_classes_come_with_the_data_and_go_back(home):
    write(home / "one.parquet")
    write(home / "two.parquet", start=60)
    manifest = frozen(home)
    assert manifest.definition.label_names == NAMES
    write_benchmark(manifest, {}, home)
    assert list(find_benchmark("news/long").task.names) == NAMES
    part = load("news/long")
    data = part.to_hf()
    assert data.features["topic"] == datasets.ClassLabel(names=NAMES)
    assert [data.features["topic"].int2str(row["topic"]) for row in data] == [
        NAMES[topic] for topic in part.observed_labels()
    ]
    data.rename_column("topic", "label").select_columns(["text", "label"]).to_parquet(str(home / "again.parquet"))
    again = frozen(home, DRAFT.replace("news", "again").replace("*.parquet", "again.parquet").replace("= 6", "= 3"))
    assert again.definition.label_names == NAMES


def test_options_of_a_table_lose_no_names(home):
    write(home / "one.parquet", classes=(0, 1, 2, -1))
    draft = DRAFT.replace("labels =", "options = { without = { label = -1 } }, labels =")
    assert frozen(home, draft).definition.label_names == NAMES


@pytest.mark.parametrize(
    ("names", "classes", "complaint"),
    [
        (NAMES[::-1], (0, 1, 2), "two.parquet and one.parquet have different names for the classes of 'label'"),
        (NAMES, (0, 1, -1), "topic has the class -1, but its ClassLabel names only 0 to 2: exclude these rows"),
    ],
)
def test_numbers_that_mean_no_or_another_class_are_refused(home, names, classes, complaint):
    write(home / "one.parquet")
    write(home / "two.parquet", names, classes, start=60)
    with pytest.raises(FarshiftError, match=complaint):
        frozen(home)
    assert not (home / "loaders" / "sources" / "news.toml").exists()
