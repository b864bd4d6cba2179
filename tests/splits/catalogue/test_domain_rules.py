"""Rules of domain splits: held-out domains, time, published lists, languages of unequal size."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadData, BadDefinition, UnknownName
from farshift.splits.rules.domain import hold_out
from farshift.splits.rules.language_imbalance import imbalance
from farshift.splits.rules.published_list import of_numbers
from farshift.splits.rules.time import cutoff

COUNTRIES = pa.table({"row_id": np.arange(5, dtype=np.uint64), "country": ["us", "cuba", "?", "us", "iran"]})


def test_a_held_out_domain_is_the_test_and_a_dropped_one_in_no_part():
    result = hold_out(COUNTRIES, field="country", ood=["cuba", "iran"], dropped=["?"])
    assert result.part.tolist() == ["train", "ood_test", "", "train", "ood_test"]
    assert result.group.tolist() == COUNTRIES["country"].to_pylist()
    assert hold_out(COUNTRIES, field="country", ood=["iran"]).part.tolist() == ["train"] * 4 + ["ood_test"]


@pytest.mark.parametrize(
    ("domains", "complaint"),
    [
        ({"ood": ["cuba", "peru"]}, "no row has country = peru"),
        ({"ood": ["cuba"], "dropped": ["??"]}, r"no row has country = \?\?"),
        (
            {"ood": ["cuba", "iran"], "dropped": ["iran"]},
            "country = iran: in two of ood, ood_val and dropped; name it once",
        ),
    ],
)
def test_a_domain_that_no_row_has_or_that_is_named_twice_is_refused(domains, complaint):
    with pytest.raises(BadDefinition, match=complaint):
        hold_out(COUNTRIES, field="country", **domains)


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


def test_measured_numbers_are_no_domains():
    table = pa.table({"row_id": np.arange(2, dtype=np.uint64), "income": [0.5, 1.5]})
    with pytest.raises(BadDefinition, match="'income' is double, and the rule needs names: text or whole numbers"):
        hold_out(table, field="income", ood=["0.5"])


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


@pytest.mark.parametrize(
    ("changes", "error", "complaint"),
    [
        ({"id_test": 6}, BadDefinition, "id_test = 6, but only 6 rows have month in 1..3"),
        ({"field": "moth"}, UnknownName, "did you mean month"),
    ],
)
def test_a_time_split_that_cannot_be_is_refused(changes, error, complaint):
    options = {"field": "month", "first": 1, "last": 3, "id_test": 2, "seed": "s"} | changes
    with pytest.raises(error, match=complaint):
        cutoff(months(1, 2, 3, 3, 2, 1, 4), **options)


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


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"id_test": 11}, "41 meanings are needed, but 'meaning' has 40"),
        ({"low": "lost"}, "no row has language = lost"),
    ],
)
def test_an_imbalance_that_cannot_be_is_refused(changes, complaint):
    with pytest.raises(BadDefinition, match=complaint):
        said(sentences(), **changes)


def test_a_meaning_that_is_not_said_in_the_language_it_is_drawn_for_is_refused():
    with pytest.raises(BadDefinition, match=r"of 4 meanings drawn for train exist in low"):
        said(sentences().slice(0, 41), id_test=5, ood_test=6)
