"""`farshift splits` in words: what people read where programs take `--json`."""

from __future__ import annotations

import re

import farshift as fs
import numpy as np
import pyarrow.parquet as pq
import pytest
from farshift.cli.splits import BEST_KNOWN
from support import one_line_error


def test_an_audit_has_a_line_for_each_value_and_no_python(command, command_json):
    output = command("splits", "audit", "modadd97/xi35").stdout.splitlines()
    measured = command_json("splits", "audit", "modadd97/xi35")
    rows = ", ".join(f"{part} = {count}" for part, count in measured["rows"].items())
    assert {"split: modadd97/xi35@1", f"why: {measured['why']}", f"rows: {rows}"} <= set(output)
    assert "    across: train/id_test = 0" in output
    assert not any("{" in line for line in output)


def test_what_a_split_leaves_empty_is_not_shown(command):
    output = command("splits", "show", "scan/length").stdout.splitlines()
    assert '    group_words: ["and", "after"]' in output
    assert "group: name = conjunction" in output
    assert not any(line.startswith(("declared", "ships_rows")) for line in output)


def test_a_definition_says_that_its_data_are_to_be_brought(command, command_json):
    name = next(item["name"] for item in command_json("splits", "list") if item["state"] == "definition")
    output = command("splits", "show", name).stdout.splitlines()
    assert output[-1].startswith("a definition, not yet frozen: its rows are pinned on the first pull")


def test_a_list_without_words_is_an_overview_of_a_screen(command):
    lines = command("splits", "list").stdout.splitlines()
    assert lines[1].split() == ["families", "array", "audio", "image", "tabular", "text"]
    assert len(lines) <= 24
    (known,) = [line for line in lines if line.startswith("best known: ")]
    assert known.removeprefix("best known: ").split(", ") == list(BEST_KNOWN)
    assert re.search(r"\d+ families \(\d+ manifests\) over \d+ sources; search by words", lines[-1])
    assert "scan/length@1" in command("splits", "list", "scan").stdout


def test_the_list_has_a_line_for_each_family_and_with_all_one_for_each_manifest(command, command_json):
    result = command_json("splits", "list", "--kind", "corrupted-label")
    families = {item["family"] for item in result}
    sources = {item["source"] for item in result}
    counted = f"{len(families)} families ({len(result)} manifests) over {len(sources)} sources"
    folded = command("splits", "list", "--kind", "corrupted-label").stdout
    every = command("splits", "list", "--kind", "corrupted-label", "--all").stdout
    assert folded.splitlines()[-1] == f"{counted}; --all lists each manifest"
    assert every.splitlines()[-1] == counted
    assert len(folded.splitlines()) == len(families) + 2 < len(result) == every.count("@1 ")
    assert " mnist/pair_flip?rate=20,40,45&draw=1,2,3,4,5 " in folded
    assert " mnist/pair_flip_45_draw5@1 " in every


def test_older_versions_of_a_split_are_in_the_line_of_the_newest(command):
    folded = command("splits", "list", "--kind", "easy-to-hard").stdout
    assert " arc_agi/version_2@2 and 1 older " in folded
    assert " arc_agi/version_2@1 " not in folded


def test_a_benchmark_gives_the_rows_that_its_protocol_trains_on(command, tmp_path):
    given = ("--part", "train", "--to", "parquet", "--out")
    plain = command("splits", "export", "vowel/speakers", *given, tmp_path / "plain.parquet")
    assert plain.returncode == 0 and "--benchmark vowel/speakers exports the rows" in plain.stderr
    done = command("splits", "export", "--benchmark", "vowel/speakers", *given, tmp_path / "train.parquet")
    assert done.returncode == 0 and "holds rows out" not in done.stderr
    benchmark = fs.benchmark("vowel/speakers")
    held_out = [benchmark.load(name).row_ids for name in ("id_test", "id_val")]
    ids = [pq.read_table(tmp_path / f"{name}.parquet")["row_id"].to_pylist() for name in ("plain", "train")]
    assert sorted([*ids[1], *np.concatenate(held_out).tolist()]) == ids[0] == fs.load("vowel/speakers").row_ids.tolist()
    with pytest.raises(fs.FarshiftError, match="no part of vowel/speakers named 'test': "):
        benchmark.load("test")
    assert "name a split, or a benchmark" in one_line_error(command("splits", "export", *given, tmp_path / "x"))
    held = ("--part", "id_test", "--to", "webdataset", "--out", tmp_path / "held")
    done = command("splits", "export", "--benchmark", "vowel/speakers", *held)
    assert done.stdout.startswith("vowel/speakers@1, id_test: ")
    assert (tmp_path / "held" / "vowel-speakers-id_test-000000.tar").is_file()
