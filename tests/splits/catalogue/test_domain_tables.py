"""Tables of people, flights and sounds: what the reader makes of a CSV, and the published counts of the real ones."""

from __future__ import annotations

import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.core.errors import BadData, BadDefinition, Unavailable
from farshift.loaders.acquire.source import find_source
from farshift.loaders.readers.csv_table import read
from farshift.loaders.split import load

TEXT = "name,age,kind,score,score\nann, 3 ,a,1.5,9\nbob,40,b,-2,9\ncid,?,a,7,9\ndan,5, B,20,9\n"
KINDS = {"kind": ["a", ["b", "B"]]}


def some(tmp_path: Path, text: str = TEXT, name: str = "people.csv") -> dict[str, Path]:
    (tmp_path / name).write_text(text)
    return {name: tmp_path / name}


def test_columns_become_fields_of_the_stated_types(tmp_path):
    table = read(
        some(tmp_path),
        missing=["?"],
        texts={"who": "name"},
        named={"told": {"kind": {"a": "first", "b": "second", "B": "second"}}},
        numbers={"years": "age"},
        whole={"old": "age"},
        tensor={"both": ["age", "score"]},
        categories={"code": KINDS},
        above={"high": {"score": 1.5}},
        origin={"from": {"people.csv": "here"}},
    )
    assert table.to_pydict() == {
        "who": ["ann", "bob", "dan"],
        "told": ["first", "second", "second"],
        "years": [3.0, 40.0, 5.0],
        "old": [3, 40, 5],
        "both": [[3.0, 1.5], [40.0, -2.0], [5.0, 20.0]],
        "code": [0, 1, 1],
        "high": [0, 0, 1],
        "from": ["here"] * 3,
    }
    assert str(table["both"].type) == "fixed_size_list<item: float>[2]"


def test_rows_are_kept_by_value_and_by_range_and_a_value_that_no_field_needs_may_be_missing(tmp_path):
    files = some(tmp_path)
    assert read(files, missing=["?"], texts={"who": "name"}).num_rows == 4
    kept = read(files, missing=["?"], texts={"who": "name"}, without={"kind": ["b"]}, between={"age": [3, 5]})
    assert kept["who"].to_pylist() == ["ann", "dan"]


def test_a_file_without_a_header_a_head_to_skip_and_a_zip_archive_are_read(tmp_path):
    files = some(tmp_path, "ann,3\nbob,40\n", "a.csv") | some(tmp_path, "| a note\ncid,5\n", "b.csv")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.write(tmp_path / "b.csv", "b.csv")
    files = {"a.csv": files["a.csv"], "b.zip": tmp_path / "b.zip"}
    origin = {"file": {"a.csv": "first", "b.zip": "second"}}
    table = read(files, names=["name", "age"], skip={"b.zip": 1}, whole={"age": "age"}, origin=origin)
    assert table.to_pydict() == {"age": [3, 40, 5], "file": ["first", "first", "second"]}


def test_a_sample_is_drawn_by_place_and_a_smaller_one_is_part_of_a_larger(tmp_path):
    files = some(tmp_path, "n\n" + "".join(f"{number}\n" for number in range(500)))
    few, many = (
        read(files, whole={"n": "n"}, sample={"rows": rows, "seed": "s"})["n"].to_pylist() for rows in (50, 400)
    )
    assert len(set(many)) == 400
    assert set(few) < set(many)
    assert few == sorted(few), "the file's order"
    with pytest.raises(BadDefinition, match="a sample of 501 out of 500 rows"):
        read(files, whole={"n": "n"}, sample={"rows": 501, "seed": "s"})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"texts": {"who": "nam"}}, r"no column 'nam' among name, age, kind, score, score"),
        ({"numbers": {"years": "name"}}, "column 'name': Failed to parse"),
        ({"whole": {"score": "score"}}, "column 'score' holds numbers that are not whole"),
        ({"categories": {"code": {"kind": ["a", "b"]}}}, "column 'kind' holds 'B', which is none of its levels"),
    ],
)
def test_a_table_that_is_not_what_its_definition_says_is_refused(tmp_path, options, complaint):
    with pytest.raises(BadData, match=rf"people\.csv: {complaint}"):
        read(some(tmp_path), **options)


def test_a_file_that_is_no_table_is_refused(tmp_path):
    with pytest.raises(BadData, match=r"people\.csv: not a readable CSV"):
        read(some(tmp_path, "a,b\n1,2,3\n"), texts={"a": "a"})


def pulled(name: str):
    try:
        return find_source(name).table()
    except Unavailable as error:
        pytest.skip(str(error))


def test_adult_is_the_published_files():
    table = pulled("adult")
    assert Counter(table["published"].to_pylist()) == {"train": 32561, "test": 16281}
    assert Counter(table["income"].to_pylist()) == {0: 37155, 1: 11687}


def test_people_of_unknown_birthplace_are_on_neither_side():
    births = Counter(pulled("adult")["country_name"].to_pylist())
    train, test = (Counter(find_split_groups("adult/country", part)) for part in ("train", "ood_test"))
    assert train == {"United-States": births["United-States"]}
    assert test == {country: rows for country, rows in births.items() if country not in ("United-States", "?")}
    assert births["?"] == 857


def test_compas_is_the_rows_of_the_published_analysis():
    table = pulled("compas")
    assert table.num_rows == 6172
    assert Counter(table["race_name"].to_pylist())["African-American"] == 3175
    assert Counter(table["race_name"].to_pylist())["Caucasian"] == 2103
    assert Counter(table["sex_name"].to_pylist()) == {"Male": 4997, "Female": 1175}


def test_vowels_are_six_frames_of_eleven_words_of_each_speaker():
    table = pulled("vowel")
    pairs = Counter(zip(table["speaker"].to_pylist(), table["vowel"].to_pylist(), strict=True))
    assert len(pairs) == 15 * 11
    assert set(pairs.values()) == {6}
    sexes = set(zip(table["speaker"].to_pylist(), table["sex"].to_pylist(), strict=True))
    women = set(find_split_groups("vowel/women", "ood_test"))
    assert women == {speaker for speaker, sex in sexes if sex == "female"}


def find_split_groups(name: str, part: str) -> list[str]:
    return load(name, part=part).arrow()["group"].to_pylist()


def test_the_writers_of_the_pen_digits_are_split_as_published():
    """The counts by digit of UCI's own description of pendigits.tra and pendigits.tes."""
    pulled("pendigits")
    for part, published in (
        ("train", [780, 779, 780, 719, 780, 720, 720, 778, 719, 719]),
        ("ood_test", [363, 364, 364, 336, 364, 335, 336, 364, 336, 336]),
    ):
        assert np.bincount(load("pendigits/writers", part=part).numpy(["digit"])["digit"]).tolist() == published


def test_a_flight_is_late_from_the_sixteenth_minute_on_and_airports_and_carriers_are_their_codes():
    table = pulled("flights")
    assert table.num_rows == 60000
    assert 0.2 < np.mean(table["late"].to_numpy()) < 0.27
    for code, name, count in (("origin", "origin_name", 3), ("carrier", "carrier_name", 16)):
        pairs = set(zip(table[code].to_pylist(), table[name].to_pylist(), strict=True))
        assert len(pairs) == count
        assert sorted(number for number, _ in pairs) == list(range(count))


@pytest.mark.parametrize(
    "name",
    [
        "adult/women",
        "adult/race",
        "adult/country",
        "compas/women",
        "flights/origin_lga",
        "flights/carrier_b6",
        "flights/after_june",
    ],
)
def test_the_highest_number_of_a_category_stands_in_training(name):
    """A one-hot input made from the training rows has room for every category of the test."""
    benchmark = find_benchmark(name)
    pulled(benchmark.manifest.definition.source.name)
    fields = [field for field in benchmark.task.inputs if benchmark.split.source.schema[field].type == "int64"]
    train = benchmark.part("train").numpy(fields)
    assert fields
    for part in ("id_test", "ood_test"):
        rows = benchmark.part(part).numpy(fields)
        assert all(rows[field].max() <= train[field].max() for field in fields)
