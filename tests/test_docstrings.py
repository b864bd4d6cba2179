"""Every public name has an example in its docstring, and the examples of the package give what they print."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
from pathlib import Path

import farshift
import pytest
from support import ROOT

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules() -> list[str]:
    """The modules of the package whose source has an example."""
    rooms = [path for path in sorted(ROOT.iterdir()) if (path / "__init__.py").is_file() and path.name != "tests"]
    files: list[Path] = [path for room in rooms for path in sorted(room.rglob("*.py"))]
    return [
        ".".join(("farshift", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        for path in files
        if ">>> " in (text := path.read_text("utf-8"))
        and any(
            ">>> " in (ast.get_docstring(node) or "")
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        )
    ]


def test_every_public_name_has_an_example():
    without = [name for name in farshift.__all__ if ">>> " not in (inspect.getdoc(getattr(farshift, name)) or "")]
    assert without == []


@pytest.mark.parametrize("name", modules())
def test_examples_give_what_they_print(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.attempted > 0
    assert result.failed == 0
