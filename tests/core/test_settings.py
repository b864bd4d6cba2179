"""All environment variables of Farshift are fields of one object, and rows of one page."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from farshift.core.settings import Settings, read_settings
from support import ROOT

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
