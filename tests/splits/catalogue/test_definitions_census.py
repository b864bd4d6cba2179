"""TableShift's tasks over the census, and the census over years, in their real layouts, made small."""

from __future__ import annotations

import pytest
from farshift.core.errors import BadData
from farshift.loaders.acquire.source import find_source
from twins import csv, laid, pulled, twin, values, zipped

INCOME = "COW ENG FER HINS1 HINS2 HINS3 HINS4 NWLA NWLK OCCP POBP RELP WKHP WKW WRK AGEP SEX ST MAR CIT RAC1P SCHL"
UNEMPLOYED = "ENG POBP RELP WKHP WKW WRK OCCP DIS ESP MIG MIL ANC NATIVITY DEAR DEYE DREM DPHY FER AGEP SEX ST MAR CIT RAC1P SCHL"


def states(source, rows):
    """A zip for each state of the source's files, with `rows` for the number of the state."""
    (distribution,) = find_source(source).definition.distributions
    return {pin.name: zipped({f"psam_p{n:02}.csv": rows(n)}) for n, pin in enumerate(distribution.files)}


def test_incomes_of_all_states_are_tested_in_new_england(place, tmp_path):
    names = [*INCOME.split(), "DIVISION", "PINCP", "PWGTP"]

    def rows(state):
        output = dict.fromkeys(names, 1) | {"ST": state, "DIVISION": state % 10, "PWGTP": 5}
        people = [output | {"AGEP": 20 + n, "WKHP": 40, "PINCP": 50000 + 4000 * n} for n in range(4)]
        people += [output | {"AGEP": 16, "WKHP": 40, "PINCP": 60000}, output | {"AGEP": 40, "WKHP": "", "PINCP": 60000}]
        people[0]["ENG"] = ""
        return csv(",".join(["RT", *names]), [["P", *person.values()] for person in people])

    data = laid(tmp_path / "data", states("acs_income_divisions", rows))
    split, parts = pulled(twin("acs_income_divisions/new_england", place), data)
    assert sum(parts.values()) == 51 * 4
    assert parts["ood_test"] == 5 * 4
    assert values(split, "ood_test", "rich") == [0] * 10 + [1] * 10
    assert values(split, "ood_test", "eng") == [0.0] * 5 + [1.0] * 15


def test_unemployment_is_tested_on_people_without_a_diploma(place, tmp_path):
    names = [*UNEMPLOYED.split(), "DIVISION", "ESR"]

    def rows(state):
        output = dict.fromkeys(names, 1) | {"ST": state, "AGEP": 30}
        people = [
            output | {"SCHL": f"{level:02}" if level < 10 else level, "ESR": 3 if level % 2 else 6, "WKW": state}
            for level in (1, 9, 15, 16, 24)
        ]
        people += [output | {"AGEP": 62}, output | {"AGEP": 17}]
        return csv(",".join(["RT", *names]), [["P", *person.values()] for person in people])

    data = laid(tmp_path / "data", states("acs_unemployment", rows))
    split, parts = pulled(twin("acs_unemployment/no_diploma", place), data)
    assert parts["ood_test"] == 51 * 3
    assert parts["train"] + parts["id_val"] + parts["id_test"] == 51 * 2
    assert values(split, "ood_test", "unemployed") == [1] * 51 * 3
    assert set(values(split, "train", "schooling")) == {"diploma"}


def years(rows):
    head = "RT,AGEP,COW,SCHL,MAR,OCCP,POBP,RELP,WKHP,SEX,RAC1P,PINCP,PWGTP"
    files = {}
    for year in range(2014, 2019):
        people = [("P", 20 + n, 1, 16, 1, 4720, 6, 0, 40, 1, 1, 40000 + 5000 * n, year) for n in range(rows)]
        people.append(("P", 30, 1, 16, 1, 4720, 6, 0, 40, 1, 1, 90, 5))
        name = f"ss{year % 100}pca.csv" if year < 2017 else "psam_p06.csv"
        files[f"{year}_csv_pca.zip"] = zipped({name: csv(head, people), "ACS_README.pdf": b"pdf"})
    return files


def test_incomes_of_a_year_are_tested_on_later_years(place, tmp_path):
    data = laid(tmp_path / "data", years(8))
    split, parts = pulled(twin("acs_income_years/from_2014", place, parameters={"id_test": 2}), data)
    assert parts == {"train": 6, "id_test": 2, "ood_test": 32}
    assert set(values(split, "ood_test", "year")) == {2015, 2016, 2017, 2018}
    assert sum(values(split, "ood_test", "rich")) == 4 * 5


def test_a_census_file_without_a_column_is_named(place, tmp_path):
    files = years(8)
    files["2016_csv_pca.zip"] = zipped({"ss16pca.csv": csv("RT,AGEP,PINCP", [("P", 30, 50000)])})
    with pytest.raises(BadData, match="ss16pca.csv"):
        pulled(twin("acs_income_years/from_2014", place, parameters={"id_test": 2}), laid(tmp_path / "data", files))
