"""Tables of people, flights and sounds: the published counts of the real ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from farshift import load
from farshift.benchmarks.benchmark import find_benchmark
from farshift.core.errors import Unavailable
from farshift.loaders.acquire.source import find_source


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
