"""Rules of held-out domains, time, published lists, languages of unequal size, scaffolds and cells."""

from __future__ import annotations

import re
import sys
from collections import Counter
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadData, BadDefinition, MissingExtra, UnknownName
from farshift.loaders.split import open_split
from farshift.splits.catalogue import list_manifests
from farshift.splits.rules import scaffold
from farshift.splits.rules.domain import hold_out
from farshift.splits.rules.language_imbalance import imbalance
from farshift.splits.rules.published_list import of_numbers
from farshift.splits.rules.subpopulation import cells
from farshift.splits.rules.time import cutoff, periods
from hypothesis import given
from hypothesis import strategies as st

COUNTRIES = pa.table({"row_id": np.arange(5, dtype=np.uint64), "country": ["us", "cuba", "?", "us", "iran"]})


def test_a_held_out_domain_is_the_test_and_a_dropped_one_in_no_part():
    result = hold_out(COUNTRIES, field="country", ood=["cuba", "iran"], dropped=["?"])
    assert result.part.tolist() == ["train", "ood_test", "", "train", "ood_test"]
    assert result.group.tolist() == COUNTRIES["country"].to_pylist()
    assert hold_out(COUNTRIES, field="country", ood=["iran"]).part.tolist() == ["train"] * 4 + ["ood_test"]


def test_what_several_rows_are_made_of_does_not_train_and_test():
    photographs = [f"dog{number}" for number in range(20)]
    kinds = pa.table(
        {
            "row_id": np.arange(60, dtype=np.uint64),
            "kind": ["edges"] * 20 + ["silhouettes"] * 20 + ["textured"] * 20,
            "photograph": photographs * 3,
        }
    )
    result = hold_out(kinds, field="kind", ood=["textured"], id_val=0.1, id_test=0.4, seed="s", apart="photograph")
    of_part = {part: {photographs[row % 20] for row in np.flatnonzero(result.part == part)} for part in result.part}
    assert {part: len(names) for part, names in of_part.items()} == {
        "train": 10, "id_val": 2, "id_test": 8, "ood_test": 10, "": 10,
    }  # fmt: skip
    assert of_part["ood_test"] == of_part["id_val"] | of_part["id_test"]
    assert of_part["train"] == of_part[""]
    assert set(np.flatnonzero(result.part == "train") // 20) == {0, 1}


@pytest.mark.parametrize("ood", [[2018, 2019], ["2018", "2019"]])
def test_domains_may_be_whole_numbers_such_as_years_or_hospitals(ood):
    years = pa.table({"row_id": np.arange(4, dtype=np.uint64), "year": [2016, 2018, 2019, 2018]})
    result = hold_out(years, field="year", ood=ood)
    assert result.part.tolist() == ["train", "ood_test", "ood_test", "ood_test"]
    assert result.group.tolist() == ["2016", "2018", "2019", "2018"]
    with pytest.raises(BadDefinition, match="no row has year = 2020"):
        hold_out(years, field="year", ood=[2020])


def months(*values: int) -> pa.Table:
    return pa.table({"row_id": np.arange(len(values), dtype=np.uint64), "month": list(values)})


def test_what_came_until_a_date_trains_what_came_later_is_the_test():
    table = months(0, 1, 2, 3, 3, 2, 1, 4, 5, 6)
    result = cutoff(table, field="month", first=1, last=3, id_test=2, seed="s")
    assert result.part[[7, 8, 9]].tolist() == ["ood_test"] * 3
    assert result.part[0] == "", "before the first period"
    assert Counter(result.part[1:7].tolist()) == {"train": 4, "id_test": 2}
    assert result.severity.tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 2, 3]
    assert result.group.tolist() == ["0", "1", "2", "3", "3", "2", "1", "4", "5", "6"]


def points(*rows: tuple[int, int]) -> pa.Table:
    flat = pa.array(np.array(rows, np.uint8).ravel())
    return pa.table({"points": pa.FixedSizeListArray.from_arrays(flat, 2), "label": list(range(len(rows)))})


def listed(tmp_path, text: str, table: pa.Table):
    (tmp_path / "rows.csv").write_text(text)
    return of_numbers(table, field="points", files={"rows.csv": tmp_path / "rows.csv"}, listed="yes", rest="no")


def test_rows_on_a_published_list_are_the_test(tmp_path):
    result = listed(tmp_path, "3, 4,9\n\n5,6,7\n", points((1, 2), (3, 4), (5, 6)))
    assert result.part.tolist() == ["train", "ood_test", "ood_test"]
    assert result.group.tolist() == ["no", "yes", "yes"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("3,5\n", "line 1 matches 0 rows"),
        ("1,2\n", "line 1 matches 2 rows"),
        ("3,4\nx,4\n", "line 2 does not begin with 2 whole numbers"),
    ],
)
def test_a_list_whose_lines_are_not_one_row_each_is_refused(tmp_path, text, complaint):
    with pytest.raises(BadData, match=rf"rows\.csv: {complaint}"):
        listed(tmp_path, text, points((1, 2), (1, 2), (3, 4)))


def sentences(count: int = 40) -> pa.Table:
    meanings = [f"m{number}" for number in range(count)] * 2
    languages = ["high"] * count + ["low"] * count
    return pa.table({"row_id": np.arange(2 * count, dtype=np.uint64), "language": languages, "meaning": meanings})


SHARES = {"train": {"high": 20, "low": 4}, "id_test": 5, "ood_test": 6}


def said(table: pa.Table, **changes):
    options = {"language": "language", "meaning": "meaning", "high": "high", "low": "low", "seed": "s"} | SHARES
    return imbalance(table, **(options | changes))


def test_each_meaning_is_trained_in_one_language_and_none_of_the_tests_in_any():
    table = sentences()
    result = said(table)
    language, meaning = np.array(table["language"]), np.array(table["meaning"])
    stored = result.part != ""
    assert Counter(zip(result.part[stored].tolist(), language[stored].tolist(), strict=True)) == {
        ("train", "high"): 20,
        ("train", "low"): 4,
        ("id_test", "high"): 5,
        ("ood_test", "low"): 6,
    }
    assert len(set(meaning[stored].tolist())) == 35, "no meaning twice"
    assert (result.group == language).all()


def test_the_draw_knows_the_meanings_and_not_the_order_of_the_rows():
    table = sentences()
    order = np.random.default_rng(0).permutation(table.num_rows)
    assert (said(table.take(order)).part == said(table).part[order]).all()


def test_the_largest_scaffolds_train_and_one_that_does_not_fit_goes_on():
    # 100 rows: at most 80 train, at most 90 train or validate
    assert scaffold._fill_parts([50, 29, 8, 3, 1, 1, 1, 7], 0.8, 0.1).tolist() == [
        "train", "train", "ood_val", "ood_val", "train", "ood_test", "ood_test", "ood_test",
    ]  # fmt: skip


def test_molecules_of_one_scaffold_stay_together_in_any_order(monkeypatch):
    monkeypatch.setattr(scaffold, "_compute_scaffold", lambda smiles: smiles[0])
    smiles = [letter + str(number) for letter, count in (("A", 8), ("B", 1), ("C", 1)) for number in range(count)]
    result = scaffold.murcko(pa.table({"smiles": smiles}), field="smiles")
    assert dict(zip(smiles, zip(result.part.tolist(), result.group.tolist(), strict=True), strict=True)) == {
        **{f"A{number}": ("train", "0") for number in range(8)},
        "B0": ("ood_val", "1"),
        "C0": ("ood_test", "2"),
    }
    back = scaffold.murcko(pa.table({"smiles": smiles[::-1]}), field="smiles")
    assert back.part.tolist() == result.part.tolist()[::-1]


def test_scaffolds_need_rdkit_and_the_shipped_splits_do_not(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(MissingExtra, match=r"scaffolds of molecules .* 'farshift\[molecules\]'"):
        scaffold.murcko(pa.table({"smiles": ["C"]}), field="smiles")
    shipped = [item for item in list_manifests() if item.definition.rule == "scaffold/murcko"]
    assert shipped
    assert all(item.definition.ships_rows and (item.folder / "rows.parquet").exists() for item in shipped)
    with pytest.raises(BadDefinition, match="shares of the rows, below 1 together"):
        scaffold.murcko(pa.table({"smiles": ["C"]}), field="smiles", train=0.9, ood_val=0.1)


def hours(count=1000):
    return pa.table({"row_id": np.arange(count, dtype=np.uint64), "hour": np.arange(count)})


def test_whole_periods_are_tested_and_later_ones_are_the_shift():
    result = periods(hours(), field="hour", per=24, first=2, last=29, gap=1, id_test=0.25, id_val=0.1, seed="s")
    period = np.arange(1000) // 24
    parts = {number: set(result.part[period == number].tolist()) for number in range(42)}
    assert all(len(names) == 1 for names in parts.values())
    assert parts[0] == parts[1] == parts[30] == {""}
    assert all(parts[number] == {"ood_test"} for number in range(31, 42))
    named = [next(iter(parts[number])) for number in range(2, 30)]
    assert (named.count("id_test"), named.count("id_val"), named.count("train")) == (7, 3, 18)
    assert result.severity[period == 33].tolist() == [4] * 24
    assert result.severity[period <= 29].max() == 0
    assert result.group[25] == "1"


def test_a_chain_tests_the_next_period_alone_and_trains_on_observed_rows():
    table = hours(100).append_column("form", pa.array(["observed", "counterfactual"] * 50))
    for last in range(1, 9):
        part = periods(table, field="hour", per=10, last=last, tests=1, trains={"form": ["observed"]}).part
        hour = np.arange(100)
        assert (part == np.select([hour < 10 * last + 10, hour < 10 * last + 20], ["train", "ood_test"], "")).sum() == (
            100 - 5 * (last + 1)
        )
        assert set(part[(hour < 10 * last + 10) & (hour % 2 == 1)].tolist()) == {""}


def test_the_order_of_rows_does_not_matter():
    table = hours()
    order = np.random.default_rng(0).permutation(1000)
    options = {"field": "hour", "per": 10, "last": 50, "id_test": 0.2, "seed": "s"}
    assert periods(table.take(order), **options).part.tolist() == periods(table, **options).part[order].tolist()


def table(count: int = 400) -> pa.Table:
    number = np.arange(count)
    colours = np.array(["red", "green"])[number // 2 % 2].tolist()
    return pa.table({"row_id": number.astype(np.uint64), "label": number % 2, "colour": colours, "x": number // 8})


def drawn(rows: pa.Table, train: dict[str, int], ood_test: dict[str, int] = MappingProxyType({}), **more):
    return cells(rows, label="label", attribute="colour", train=train, ood_test=ood_test, seed="s", **more)


CELLS = ("0/green", "0/red", "1/green", "1/red")
counts = st.fixed_dictionaries(dict.fromkeys(CELLS, st.integers(0, 50)))


@given(counts, counts)
def test_each_part_has_the_stated_number_of_rows_of_each_cell(train, ood_test):
    result = drawn(table(), train, ood_test)
    for part, expected in (("train", train), ("ood_test", ood_test)):
        got = Counter(result.group[result.part == part].tolist())
        assert got == {cell: count for cell, count in expected.items() if count}
    assert set(result.group.tolist()) == set(CELLS)


@given(counts, counts)
def test_the_test_of_a_cell_is_the_same_whatever_trains(train, other):
    test = dict.fromkeys(CELLS, 20)
    first, second = drawn(table(), train, test), drawn(table(), other, test)
    assert ((first.part == "ood_test") == (second.part == "ood_test")).all()


def test_of_rows_that_are_alike_only_the_first_is_used():
    rows = table()
    result = drawn(rows, dict.fromkeys(CELLS, 30), dict.fromkeys(CELLS, 20), distinct=["label", "colour", "x"])
    used = rows.filter(result.part != "")
    alike = list(zip(used["label"].to_pylist(), used["colour"].to_pylist(), used["x"].to_pylist(), strict=True))
    assert len(alike) == len(set(alike)) == 200
    first = {}
    for position, kind in enumerate(zip(*(rows[name].to_pylist() for name in ("label", "colour", "x")), strict=True)):
        first.setdefault(kind, position)
    assert set(used["row_id"].to_pylist()) <= set(first.values())


FRACTIONS = pa.table({"row_id": np.arange(2, dtype=np.uint64), "income": [0.5, 1.5]})
UNTIL = {"field": "month", "first": 1, "last": 3, "id_test": 2, "seed": "s"}
SPELT = UNTIL | {"field": "moth"}
MONTHS = months(1, 2, 3, 3, 2, 1, 4)
TWICE = {"field": "country", "ood": ["cuba", "iran"], "dropped": ["iran"]}
ODD = [
    (hold_out, COUNTRIES, {"field": "country", "ood": ["cuba", "peru"]}, "no row has country = peru"),
    (hold_out, COUNTRIES, {"field": "country", "ood": ["cuba"], "dropped": ["??"]}, "no row has country = ??"),
    (hold_out, COUNTRIES, TWICE, "country = iran: in two of ood, ood_val and dropped; name it once"),
    (hold_out, FRACTIONS, {"field": "income", "ood": ["0.5"]}, "'income' is double, and the rule needs names: text or"),
    (cutoff, MONTHS, UNTIL | {"id_test": 6}, "id_test = 6, but only 6 rows have month in 1..3"),
    (cutoff, MONTHS, SPELT, "did you mean month"),
    (said, sentences(), {"id_test": 11}, "41 meanings are needed, but 'meaning' has 40"),
    (said, sentences(), {"low": "lost"}, "no row has language = lost"),
    (said, sentences().slice(0, 41), {"id_test": 5, "ood_test": 6}, "of 4 meanings drawn for train exist in low"),
    (periods, hours(), {"field": "hour", "per": 0, "last": 1}, "a period has at least one step"),
    (periods, hours(), {"field": "hour", "per": 1, "last": 1, "id_test": 0.6, "id_val": 0.5}, "below 1 together"),
    (periods, hours(), {"field": "hour", "per": 1, "last": 1, "first": 5}, "no row has hour in the periods"),
    (drawn, table(), {"train": {"0/red": 101}}, "101 rows of the cell 0/red are needed, but there are 100"),
    (drawn, table(), {"train": {"0/blue": 1}}, "no cell named '0/blue'"),
    (drawn, table(), {"train": {"0/red": 1}, "distinct": ["y"]}, "no field named 'y'"),
]


@pytest.mark.parametrize(("rule", "rows", "options", "complaint"), ODD, ids=[complaint for *_, complaint in ODD])
def test_parameters_that_the_rows_do_not_allow_are_refused(rule, rows, options, complaint):
    with pytest.raises((BadDefinition, UnknownName), match=re.escape(complaint)):
        rule(rows, **options)


def test_tasks_of_split_digits_are_two_classes_each_and_the_first_is_tested():
    split = open_split("split_digits/first_task")
    train, test = (split.part(part).numpy(["digit", "task"]) for part in ("train", "ood_test"))
    assert {(int(digit) // 2, task) for digit, task in zip(train["digit"], train["task"], strict=True)} == {
        (number, f"{2 * number} and {2 * number + 1}") for number in range(5)
    }
    assert set(train["digit"]) == set(range(10))
    assert set(test["digit"]) == {0, 1}
