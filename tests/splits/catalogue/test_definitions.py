"""Definitions: splits of public data that are frozen by their first pull. Every catalogue entry is frozen, or is
pullable from a layout that some test exercises, and has a benchmark."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pyarrow as pa
import pytest
from farshift import load
from farshift.benchmarks.benchmark import load_benchmarks
from farshift.core.errors import Unavailable
from farshift.core.plugins import load_function
from farshift.loaders.acquire.expected import CountsDiffer, check_expected
from farshift.loaders.acquire.source import find_source, load_sources
from farshift.loaders.readers import load_reader
from farshift.splits.assignment import PARTS
from farshift.splits.catalogue import find_manifest, list_manifests, list_split_records, read_published_identities
from support import ROOT, for_each

DEFINED = [item for item in list_manifests() if not item.frozen]
NAMES = [item.full_name for item in DEFINED]
SOURCES = sorted({item.definition.source.name for item in DEFINED})


OF_DEFINITIONS = {
    name: item
    for name, item in load_benchmarks().items()
    if item.definition.split in {manifest.full_name for manifest in DEFINED}
}


def test_the_ten_sets_of_wilds_are_defined():
    assert len({name for name in SOURCES if name.startswith("wilds_")}) == 10


def test_the_listing_calls_them_definitions():
    states = {item["name"]: item["state"] for item in list_split_records()}
    assert {states[entry.name] for entry in DEFINED} == {"definition"}
    assert not {entry.full_name for entry in DEFINED} & read_published_identities().keys()


def layouts():
    """The splits whose twins the tests pull: `twin("NAME", ..)` in any of them."""
    texts = [path.read_text("utf-8") for path in sorted(Path(__file__).parent.glob("test_definitions_*.py"))]
    return {name for text in texts for name in re.findall(r'"([a-z0-9_]+/[a-z0-9_]+)"', text)}


@pytest.mark.parametrize("source", SOURCES)
def test_the_layout_of_a_definitions_data_is_exercised_by_some_test(source):
    own = {item.name for item in DEFINED if item.definition.source.name == source}
    assert own & layouts()


@pytest.mark.parametrize("source", SOURCES)
def test_a_definition_says_what_it_expects_where_its_data_are_and_under_which_licence(source):
    definition = find_source(source).definition
    assert "not checked here" not in definition.licence
    assert definition.digest or definition.expected is not None
    for distribution in definition.distributions:
        assert distribution.files or distribution.trees
        assert load_reader(distribution.reader)


UNCOUNTED = {"acs_income_states", "acs_income_years", "hh_rlhf", "metashift", "nico", "sviro"}
UNCOUNTED |= {"terra_incognita", "wilds_py150", "omega_explorative", "omega_compositional", "natural_instructions"}
"""Sources of which docs/real-data.md says that no published count of rows is checked."""


def test_every_other_definition_checks_a_published_count_of_rows():
    checked = set()
    for item in DEFINED:
        expected = find_source(item.definition.source.name).definition.expected
        published = item.definition.published
        if (published and "ood_test" in published.rows) or (expected and (expected.rows or expected.values)):
            checked.add(item.definition.source.name)
    assert {item.definition.source.name for item in DEFINED} - checked == UNCOUNTED


def test_waterbirds_with_a_bird_in_another_group_differs_from_the_published_counts():
    expected = find_source("waterbirds").definition.expected
    cells = [cell for cell, rows in expected.values["published,cell"].items() for _ in range(rows)]
    cells[cells.index("train,water/land")] = "train,water/water"
    published, cell = zip(*(each.split(",") for each in cells), strict=True)
    with pytest.raises(CountsDiffer, match="train,water/land: 56 expected, 55 found"):
        check_expected(expected, pa.table({"published": published, "cell": cell}), "waterbirds")


def test_every_entry_of_the_catalogue_is_frozen_or_can_be_pulled_and_has_a_benchmark():
    measured = {item.definition.split for item in load_benchmarks().values()}
    known = list_manifests()
    newest = {item.name: item.full_name for item in known}
    assert sorted(set(newest.values()) - measured) == []
    pullable = {item.full_name for item in known if not item.frozen}
    assert pullable == {item.full_name for item in known if not item.definition.identity}
    assert {item.definition.source.name for item in known if not item.frozen} == set(SOURCES)


def test_what_nobody_has_an_address_for_is_wanted_and_not_listed():
    expected = (ROOT / "docs/wanted.md").read_text("utf-8")
    for name in ("DF40", "COLO", "ImageNet-O", "CLEVR-CoGenT", "Wild-Time"):
        assert f"| {name}" in expected
    assert not {name for name in load_sources() if name in ("df40", "colo", "imagenet_o")}


@for_each(OF_DEFINITIONS)
def test_a_benchmark_of_a_definition_views_and_selects_on_parts_of_its_split(name):
    benchmark = OF_DEFINITIONS[name]
    split = find_manifest(benchmark.definition.split).definition
    assert benchmark.metrics
    parts = set(split.parameters.get("parts", {}).values()) or {"train", "ood_test", "id_val", "id_test"}
    parts |= {holdout.to for holdout in benchmark.definition.holdouts}
    assert {view.part for view in benchmark.definition.views.values()} <= parts
    assert {"ood_val", "id_val"} & set(benchmark.definition.protocol.selection) <= parts


@pytest.mark.parametrize("name", NAMES)
def test_a_definition_fits_its_rule_and_its_source(name):
    definition = find_manifest(name).definition
    schema = find_source(definition.source.name).schema
    assert schema[definition.label].role == "label"
    rule = load_function("splits/rules", definition.rule, "rule")
    bound = inspect.signature(rule).bind(None, **definition.parameters)
    named = {
        bound.arguments[key] for key in ("field", "group", "severity", "given", "annotator") if key in bound.arguments
    }
    named |= set(bound.arguments.get("factors", []))
    assert named
    assert all(schema[field].role == "meta" for field in named), "a rule reads what no model is shown"
    parts = definition.parameters.get("parts")
    if parts:
        assert "train" in parts.values()
        assert "ood_test" in parts.values()
        assert set(parts.values()) <= set(PARTS)


def test_a_definition_is_not_opened_without_its_data(tmp_path, monkeypatch, cache):
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    with pytest.raises(
        Unavailable,
        match="camelyon17_v1.0 is not available: .*not tried .offline.*farshift splits pull NAME --data FOLDER",
    ):
        load("wilds_camelyon17/official")
    assert not list((tmp_path / "home").rglob("*.toml"))
