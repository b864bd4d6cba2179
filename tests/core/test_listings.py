"""Listings: typed records that are counted and sliced, shown as escaped HTML, and handed to pandas."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field

import farshift as fs
import pytest
from farshift.core.errors import MissingExtra, UnknownName
from farshift.core.listings import Listing, has_words, render_table


@dataclass(frozen=True)
class Fruit:
    name: str
    rows: dict[str, int] = field(default_factory=dict)

    def to_dict(self):
        return asdict(self)


FRUITS = Listing([Fruit(f"fruit {n}", {"train": n}) for n in range(300)], "fruit", lambda one: {"name": one.name})


def test_a_listing_is_a_sequence_whose_slices_are_listings():
    assert len(FRUITS) == 300
    assert FRUITS[7] == Fruit("fruit 7", {"train": 7})
    assert [item.name for item in FRUITS[298:]] == ["fruit 298", "fruit 299"]
    assert isinstance(FRUITS[:2], Listing)
    assert FRUITS[:2] == Listing([*FRUITS[:2]], "fruit", lambda one: {"name": one.name})


def test_its_repr_is_short():
    assert repr(FRUITS).splitlines()[0] == "300 fruits"
    assert len(repr(FRUITS).splitlines()) == 10
    assert repr(FRUITS[:1]) == "1 fruit\n  fruit 0"


def test_all_text_in_html_is_escaped():
    nasty = "<script>alert('&')</script>"
    result = Listing([Fruit(nasty)], nasty, lambda one: {nasty: one.name})._repr_html_()
    assert "<script>" not in result
    assert result.count("&lt;script&gt;") == 3
    assert "<b>" not in render_table([{"a": "<b>"}], "<b>", "<b>")


def test_html_of_a_long_listing_has_its_first_records():
    assert FRUITS._repr_html_().count("<tr>") == 201
    assert "300 fruits, the first 200 here" in FRUITS._repr_html_()


def test_a_data_frame_has_a_row_for_each_record_and_a_column_for_each_nested_value():
    frame = FRUITS[:3].to_pandas()
    assert [*frame.columns] == ["name", "rows.train"]
    assert frame["rows.train"].tolist() == [0, 1, 2]


def test_without_pandas_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"farshift\[notebook\]"):
        FRUITS.to_pandas()


def test_words_are_all_wanted_in_any_order_and_case():
    assert has_words("digits SCAN", "Scan", "of digits")
    assert not has_words("digits scan", "scan")
    assert has_words("", "anything")


def test_a_plural_finds_the_singular_and_a_short_word_begins_a_word():
    assert has_words("images", "an image")
    assert has_words("time", "over time") and has_words("time", "spam/timely")
    assert not has_words("time", "amazon_sentiment")
    assert has_words("mnist", "qmnist"), "longer words may be anywhere"


@pytest.mark.parametrize("search", ["length generalisation", "noisy labels", "label noise", "medical tables"])
def test_a_need_in_the_words_of_the_field_finds_benchmarks(search):
    assert len(fs.benchmarks(search)) > 5


def test_splits_are_found_by_each_trait():
    every = fs.splits()
    assert {item.modality for item in every} == {"array", "audio", "image", "tabular", "text"}
    for name in ("kind", "source", "modality", "generated", "state"):
        value = getattr(every[0], name)
        assert [*fs.splits(**{name: value})] == [item for item in every if getattr(item, name) == value]
    assert {item.source for item in fs.splits("spoken digits", modality="audio")} == {"spoken_digits"}
    assert all("MIT" in item.licence for item in fs.splits(licence="MIT") if item.licence)


def test_benchmarks_are_found_as_their_splits_are():
    result = fs.benchmarks("digits", modality="audio", kind="domain", generated=False)
    assert {item.source for item in result} == {"spoken_digits"}
    assert [item.name for item in fs.benchmarks("SCAN", suite="core", kind="length")] == ["scan/length"]
    assert fs.benchmarks(source="scan")[0].to_dict()["metrics"][0] == "exact_match@1"
    assert "wilds_camelyon17/official" in {item.name for item in fs.benchmarks("medical definition")}
    assert {item.prompt for item in fs.benchmarks("llm")} == {True}


def test_baselines_and_results_are_found():
    assert {item.algorithm for item in fs.baselines(algorithm="coral")} == {"coral"}
    on = fs.baselines(on="scan/length")
    assert {item.name for item in on} == {item.model for item in fs.results(on="scan/length")}
    scores = [item.ood.value for item in fs.results(on="scan/length")]
    assert scores == sorted(scores, reverse=True)
    assert {item.model for item in fs.results(baseline="lstm")} == {"lstm"}
    assert "ood.value" in fs.results(on="scan/length").to_pandas().columns


@pytest.mark.parametrize(
    ("function", "asked"),
    [
        (fs.splits, {"kind": "shape"}),
        (fs.splits, {"modality": "smell"}),
        (fs.splits, {"state": "frozne"}),
        (fs.splits, {"source": "scna"}),
        (fs.benchmarks, {"suite": "croe"}),
        (fs.benchmarks, {"kind": "shape"}),
        (fs.baselines, {"network": "lstn"}),
        (fs.results, {"on": "scan/lenght"}),
    ],
)
def test_what_there_is_not_is_refused_by_name(function, asked):
    with pytest.raises(UnknownName):
        function(**asked)


def test_a_package_is_callable_after_a_plain_import():
    import farshift.splits

    assert farshift.splits("scan", kind="length")[0].name == "scan/length"
