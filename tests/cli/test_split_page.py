"""What `farshift splits show` says around a manifest: fields, origins, benchmarks, examples. Nothing is downloaded."""

from __future__ import annotations

import json

import farshift as fs
import pytest
from farshift.baselines.running.recorded_scores import read_recorded_scores
from farshift.cli.split_page import collect_related_facts
from farshift.loaders.acquire import fetch
from farshift.splits.catalogue import find_manifest, list_manifests


def test_a_split_is_shown_with_its_fields_origins_benchmarks_and_the_best_recorded_result(command, command_json):
    result = command_json("splits", "show", "scan/length")
    assert [field["name"] for field in result["fields"]] == ["command", "actions"]
    assert result["origins"][0] == "generated locally (scan)"
    (over,) = result["benchmarks"]
    assert over["benchmark"] == "scan/length"
    assert over["best"]["ood"]["value"] == max(item.ood.value for item in read_recorded_scores("scan/length").values())
    shown = command("splits", "show", "scan/length").stdout
    assert f"best recorded OOD: {over['best']['model']} " in shown
    assert 'group_words: ["and", "after"]' in shown, "as TOML has it, to be copied"


def test_every_split_is_listed_and_shown_with_the_licence_of_its_rows(command, command_json):
    listed = command_json("splits", "list")
    assert [item["name"] for item in listed if not item["licence"]] == []
    assert command_json("splits", "show", "pacs/sketch")["licence"] == "None stated; for research"
    assert "licence: None stated; for research\n" in command("splits", "show", "pacs/sketch").stdout


def test_an_example_row_is_shown_only_of_rows_that_are_at_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE", str(tmp_path / "cache"))
    assert "example_rows" not in collect_related_facts(find_manifest("scan/length"))
    part = fs.load("scan/length", "ood_test")
    examples = collect_related_facts(find_manifest("scan/length"))["example_rows"]
    assert set(examples) == {"train", "ood_test"}
    assert examples["ood_test"]["command"] == part[0]["command"]
    assert all(len(value) <= 72 for row in examples.values() for value in row.values())


def test_a_definition_says_whose_licence_is_to_be_accepted_and_where_its_files_are():
    by_source = {manifest.definition.source.name: manifest for manifest in list_manifests() if not manifest.frozen}
    requested = [collect_related_facts(manifest) for manifest in by_source.values()]
    assert any("accept" in result for result in requested)
    assert all(result["origins"] for result in requested)


@pytest.fixture(autouse=True)
def no_download(monkeypatch):
    def refused(*_):
        raise AssertionError("a file was asked for")

    monkeypatch.setattr(fetch, "fetch_file", refused)


def test_what_is_printed_of_a_wide_table_fits_a_screen(command):
    shown = command("splits", "show", "heart_disease/cleveland").stdout
    fields = json.loads(command("splits", "show", "heart_disease/cleveland", "--json").stdout)["fields"]
    assert len(fields) > 12
    assert f"and {len(fields) - 12} more" in shown
