"""Splits over data that are the user's own: defined, not frozen, and clear about where the data are."""

from __future__ import annotations

import inspect

import pytest
from farshift.core.errors import BadDefinition, Unavailable
from farshift.core.plugins import function
from farshift.loaders.acquire.source import find_source
from farshift.loaders.freezing.freeze import freeze
from farshift.splits.assignment import PARTS
from farshift.splits.catalogue import find, listing, manifests, published_identities
from farshift.splits.manifest import assign

DEFINED = [one for one in manifests() if not one.frozen]
NAMES = [one.full_name for one in DEFINED]
UNPINNED = sorted({one.definition.source.name for one in DEFINED} - {"cifar10", "cifar100"})


def test_the_suites_that_the_field_trains_on_are_defined():
    sources = {one.definition.source.name for one in DEFINED}
    wilds = {name for name in sources if name.startswith("wilds_")}
    assert len(wilds) == 10
    assert {
        *(
            "pacs",
            "vlcs",
            "office_home",
            "terra_incognita",
            "domain_net",
            "imagenet_shifts",
            "df40",
            "colo",
            "gqa_mscg",
        ),
        *("med_mat", "math_levels", "endef_weibo", "natural_instructions", "opt_iml", "spice_forces", "easy2hard_amc"),
        *("rwds_climate", "rwds_floods", "cifar10", "cifar100"),
    } <= sources


def test_the_listing_calls_them_definitions():
    states = {item["name"]: item["state"] for item in listing()}
    assert {states[one.name] for one in DEFINED} == {"definition"}
    assert not {one.full_name for one in DEFINED} & published_identities().keys()


@pytest.mark.parametrize("name", NAMES)
def test_a_definition_fits_its_rule_and_its_source(name):
    definition = find(name).definition
    schema = find_source(definition.source.name).schema
    assert schema[definition.label].role == "label"
    rule = function("splits/rules", definition.rule, "rule")
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


@pytest.mark.parametrize("source", UNPINNED)
def test_a_source_that_is_not_pinned_says_where_it_is_published_and_what_to_do(source, cache):
    definition = find_source(source).definition
    assert (definition.rows, definition.digest) == (0, "")
    with pytest.raises(Unavailable) as refused:
        find_source(source).table()
    message = str(refused.value)
    assert definition.distributions[0].options["at"] in message
    assert "name your files with sha256 and bytes" in message
    assert "\n" not in message


def test_a_definition_is_neither_opened_nor_frozen_without_its_data(tmp_path):
    manifest = find("pacs/sketch")
    with pytest.raises(BadDefinition, match="is a definition, not yet frozen: farshift splits build"):
        manifest.rows(small_pacs(), find_source("pacs").schema)
    with pytest.raises(Unavailable, match="published at https://domaingeneralization"):
        freeze(manifest.folder / "split.toml", tmp_path)
    assert not list(tmp_path.iterdir())


def small_pacs():
    import pyarrow as pa

    domains = ["art_painting", "cartoon", "photo", "sketch"] * 3
    table = {"image": [bytes([row]) for row in range(12)], "category": ["dog"] * 12, "domain": domains}
    return pa.table(table | {"row_id": pa.array(range(12), pa.uint64()), "check": pa.array(range(12), pa.uint64())})


def test_a_held_out_domain_is_the_one_in_the_name():
    definition = find("pacs/sketch").definition
    assigned = assign(definition, small_pacs(), find_source("pacs").schema)
    found = set(zip(assigned["group"].to_pylist(), assigned["part"].to_pylist(), strict=True))
    assert found == {("art_painting", "train"), ("cartoon", "train"), ("photo", "train"), ("sketch", "ood_test")}
