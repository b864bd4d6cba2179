"""A home for the small twins of definitions."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def place(request, tmp_path, monkeypatch, cache) -> Path:
    """A home of definitions, and a home of nobody's yet; the test's module says which licences are `ACCEPTED`."""
    folder = tmp_path / "definitions"
    folder.mkdir()
    monkeypatch.setenv("FARSHIFT_PATH", str(folder))
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FARSHIFT_ACCEPT", getattr(request.module, "ACCEPTED", ""))
    return folder
