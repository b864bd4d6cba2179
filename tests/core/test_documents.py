"""TOML and JSON of others, and the bounds on all files of others, which docs/security.md lists."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from farshift.core import limits
from farshift.core.documents import BadDocument, parse_json, parse_toml, read_json, read_toml
from farshift.core.errors import BadDefinition
from farshift.core.settings import Settings, read_settings
from support import ROOT

DEPTH = limits.DOCUMENT_DEPTH


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = " + "[" * 30_000, "it is nested over 100 deep"),
        ("x = " + "[" * (DEPTH + 1) + "]" * (DEPTH + 1), "it is nested over 100 deep"),
        (".".join("x" * 30_000) + " = 1", "it is nested over 100 deep"),
        ('a = 1\n[ "x\\"y" . ' + " . ".join(["'x.y'"] * 30_000) + "]", "it is nested over 100 deep"),
        ("x = {" + ".".join("x" * 30_000) + " = 1}", "it is nested over 100 deep"),
        ("x = 0x" + "f" * 65, "it has an integer of over 256 bits"),
        ("x = " + "9" * 5000, "Exceeds the limit"),
        ("x = ", "Invalid value"),
    ],
)
def test_toml_beyond_the_bounds_is_one_line(text, reason):
    with pytest.raises(BadDocument, match=rf"^{reason}[^\n]*$"):
        parse_toml(text)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[" * 30_000, "it is nested over 100 deep"),
        ('{"x":' * (DEPTH + 1) + "1" + "}" * (DEPTH + 1), "it is nested over 100 deep"),
        (r'["\ud800"]', r"\\ud800 is not a character"),
        (r'{"\udfff x": 1}', r"\\udfff is not a character"),
        (b'["\xed\xa0\x80"]', "'utf-8' codec can't decode"),
        (b"\xff\xfe\xfd", "'utf-16-le' codec|'utf-16' codec|'utf-8' codec"),
        ("9" * 5000, "Exceeds the limit"),
        ("{", "Expecting property name"),
        ("[]", "it is not an object"),
    ],
)
def test_json_beyond_the_bounds_is_one_line(content, reason):
    with pytest.raises(BadDocument, match=rf"^(?:{reason})[^\n]*$"):
        parse_json(content, dict)
    with pytest.raises(BadDocument, match=rf"^a\.json cannot be read as JSON: (?:{reason})[^\n]*$"):
        parse_json(content, dict, "a.json")


def test_what_is_within_the_bounds_is_read():
    assert parse_toml(".".join("x" * DEPTH) + " = 'a.b'")
    assert parse_toml('x = "' + "a. b. " * 1000 + '"')
    assert parse_json("[" * DEPTH + "]" * DEPTH)
    assert parse_json(r'["\ud83d\ude00"]') == ["😀"]
    assert parse_json(r'["\ud800"]', surrogates=True) == ["\ud800"]


def test_a_file_that_does_not_end_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("farshift.core.documents.DOCUMENT_BYTES", 10)
    (tmp_path / "a").write_text("x = 1  # and more")
    with pytest.raises(BadDefinition, match="a: not valid TOML: it has over 10 bytes"):
        read_toml(tmp_path / "a")
    with pytest.raises(BadDocument, match="it has over 10 bytes"):
        read_json(tmp_path / "a")


def test_no_file_of_others_is_parsed_beside_these_bounds():
    """What this process wrote itself, or its parent handed over, may be."""
    own = r"to_canonical_json|\.line\(\)|environ|argv|request|messages|lines\]|by_heading"
    rooms = ("core", "splits", "loaders", "benchmarks", "baselines", "leaderboard", "cli")
    lines = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for room in rooms
        for path in (ROOT / room).rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"\b(json|tomllib)\.loads?\(", line) and not re.search(own, line)
    }
    assert {line for line in lines if not line.startswith("core/documents.py:")} == set()


def test_the_page_on_security_lists_every_bound():
    page = (ROOT / "docs/security.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| ([\d,]+(?: MiB)?)", page, re.MULTILINE))
    bounds = {name: value for name, value in vars(limits).items() if name.isupper() and name != "MIB"}
    sizes = {name: f"{value // limits.MIB:,} MiB" for name, value in bounds.items() if name.endswith("_BYTES")}
    assert rows == {name: f"{value:,}" for name, value in bounds.items()} | sizes


VARIABLES = {f"FARSHIFT_{field.name.upper()}" for field in fields(Settings)}
SET_BY_ITSELF = {"FARSHIFT_SERVED_BOARD"}
"""Set by a process for its children, never by a user."""


def test_the_page_of_settings_lists_each_variable():
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(FARSHIFT_\w+)` ", page, re.M)) == VARIABLES


def test_no_other_variable_is_read():
    rooms = ("core", "splits", "loaders", "benchmarks", "baselines", "leaderboard", "cli")
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    named = {name for path in files for name in re.findall(r'"(FARSHIFT_[A-Z_]+)"', path.read_text("utf-8"))}
    assert named - SET_BY_ITSELF <= VARIABLES
    assert not [path for path in files if re.search(r"environ\.get\(\"FARSHIFT_", path.read_text("utf-8"))]


def test_values_are_folders_flags_and_lists(monkeypatch, tmp_path):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    settings = read_settings()
    assert (settings.cache, settings.offline, settings.path) == (tmp_path / "farshift", False, [])
    assert (settings.verify, settings.github) == ("open", "https://github.com")
    for name, text in {"OFFLINE": "1", "DEBUG": "0", "PATH": "/a:/b", "ACCEPT": "X 1, Y"}.items():
        monkeypatch.setenv(f"FARSHIFT_{name}", text)
    settings = read_settings()
    assert (settings.offline, settings.debug) == (True, False)
    assert (settings.path, settings.accept) == ([Path("/a"), Path("/b")], ["X 1", "Y"])
