"""Every rule says what it does and what its parameters mean, and the command prints it."""

from __future__ import annotations

import json
import tomllib

import pytest
from farshift.core.errors import UnknownName
from farshift.core.plugins import load_function
from farshift.core.text import write_inline
from farshift.splits.catalogue import list_manifests
from farshift.splits.manifest import check_parameters, load_rule
from farshift.splits.rule_docs import SHARED, find_rule, format_example, list_rules

OWN = '''
"""Mine: rows by their number."""

from farshift.splits.assignment import Assignment


def by_number(table, *, field: str, below: int = 7) -> Assignment:
    """Rows below a number train.

    Parameters:
        field: the number.
        below: the first that is tested.
    """
    return Assignment(part=None)
'''


@pytest.fixture(scope="module")
def known():
    return list_rules()


def test_every_rule_says_what_it_does_and_what_each_parameter_means(known):
    assert len(known) >= 45
    without = [name for name, rule in known.items() if len(rule.what) < 40]
    unsaid = [f"{name}: {item.name}" for name, rule in known.items() for item in rule.parameters if not item.what]
    assert (without, unsaid) == ([], [])


def test_every_rule_has_an_example_that_it_takes(known):
    for name, rule in known.items():
        example = tomllib.loads("\n".join(format_example(rule)))
        given = example["parameters"] | ({"files": {}} if any(item.name == "files" for item in rule.parameters) else {})
        check_parameters(load_function("splits/rules", name, "rule"), given, name)


def test_every_rule_that_a_split_of_the_catalogue_names_is_known_with_that_split(known):
    for manifest in list_manifests():
        load_rule(manifest.definition)
        rule = known[manifest.definition.rule]
        assert manifest.definition.kind in rule.kinds
        assert rule.splits


def test_what_a_parameter_means_everywhere_is_said_once_and_is_used(known):
    names = {item.name for rule in known.values() for item in rule.parameters}
    assert set(SHARED) <= names


def test_types_and_defaults_are_those_of_the_function():
    rule = find_rule("time/before")
    result = {item.name: (item.type, item.default) for item in rule.parameters}
    assert result["until"] == ("str", "")
    assert result["period"] == ("str", '"month"')
    assert result["id_test"] == ("float", "0.0")
    with pytest.raises(UnknownName, match="did you mean time/before"):
        find_rule("time/befor")


def test_values_are_written_as_toml_reads_them():
    value = {"a": [1, "x", True], "b c": {"1": 0.4}}
    assert tomllib.loads(f"value = {write_inline(value)}")["value"] == value


def test_rules_are_listed_searched_and_shown(farshift, farshift_json, tmp_path, monkeypatch):
    assert {rule["name"] for rule in farshift_json("splits", "rules", "time")} == {
        "time/before",
        "time/cutoff",
        "time/periods",
    }
    assert [rule["name"] for rule in farshift_json("splits", "rules", "glicko-2")] == ["difficulty/glicko2_rating"]
    assert "no rule has 'nonesuch'" in farshift("splits", "rules", "nonesuch").stderr
    (tmp_path / "splits" / "rules").mkdir(parents=True)
    (tmp_path / "splits" / "rules" / "mine.py").write_text(OWN)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    shown = farshift("splits", "rules", "mine/by_number").stdout
    assert "below       int    7          the first that is tested." in shown
    assert json.loads(farshift("splits", "rules", "mine/by_number", "--json").stdout)["splits"] == []
