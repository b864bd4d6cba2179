"""`farshift cache`: what the commands say, and the exit codes they end with."""

from __future__ import annotations

from pathlib import Path

import pytest
from farshift import load
from support import one_line_error


@pytest.fixture
def pulled(cache: Path) -> Path:
    load("modadd97/xi35")
    return cache


def source(cache: Path) -> Path:
    (path,) = (cache / "sources").glob("*.arrow")
    return path


def test_list_tells_what_lies_there_and_how_much(pulled, farshift, farshift_json):
    output = farshift_json("cache", "list", FARSHIFT_CACHE_LIMIT="10GB")
    assert [entry["kind"] for entry in output["entries"]] == ["sources", "splits"]
    assert (output["cache"], output["limit"]) == (str(pulled), 10**10)
    assert output["bytes"] == sum(entry["bytes"] for entry in output["entries"]) > source(pulled).stat().st_size
    shown = farshift("cache", "list").stdout
    assert source(pulled).name in shown
    assert shown.splitlines()[-1].endswith("no limit (FARSHIFT_CACHE_LIMIT=10GB sets one)")
    assert farshift("cache", "list", FARSHIFT_CACHE_LIMIT="10GB").stdout.rstrip().endswith(", limit 10.0 GB")


def test_verify_ends_with_1_where_a_file_changed_and_says_what_to_do(pulled, command, command_json):
    assert command("cache", "verify").stdout == f"{pulled}: 2 of 2 files intact\n"
    assert command_json("cache", "verify")["verified"] is True
    path = source(pulled)
    path.write_bytes(path.read_bytes()[:-1])
    done = command("cache", "verify")
    assert done.returncode == 1
    first, last = done.stdout.splitlines()
    assert first.startswith(f"changed: {path}; remove {path}.ok: ")
    assert last == f"{pulled}: 1 of 2 files intact"


def test_clear_says_what_it_removed_and_how_much(pulled, command, command_json):
    size = command_json("cache", "list")["bytes"]
    assert command_json("cache", "clear", "--older-than", "1")["removed"] == []
    tried = command_json("cache", "clear", "--all", "--dry-run")
    assert (tried["dry_run"], tried["bytes"], len(tried["removed"])) == (True, size, 2)
    first, last = command("cache", "clear", "--kind", "sources").stdout.splitlines()
    assert first.startswith("removed: sources/modadd97-v1-")
    assert last.startswith(f"{pulled}: 1 entry, ")
    assert last.endswith(" removed")
    assert command_json("cache", "clear", "--all")["removed"][0]["kind"] == "splits"
    assert command_json("cache", "list")["bytes"] == 0
    assert len(load("modadd97/xi35")) == 4704


def test_wrong_usage_is_one_line(cache, farshift):
    cases = {
        ("clear",): "give what to clear: --kind KIND, --older-than DAYS, or --all",
        ("clear", "--kind", "source"): "no kind of cache entry named 'source': did you mean sources",
        ("clear", "--older-than", "soon"): "Invalid value for '--older-than'",
    }
    for arguments, output in cases.items():
        assert output in one_line_error(farshift("cache", *arguments))
    for command in (("cache", "list"), ("splits", "pull", "modadd97/xi35")):
        refused = one_line_error(farshift(*command, FARSHIFT_CACHE_LIMIT="much"))
        assert "FARSHIFT_CACHE_LIMIT: 'much' is not a size: write for example 10GB" in refused
