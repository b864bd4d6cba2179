"""The floors of the house: which file may import which, read from the import statements themselves."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from support import ROOT, parse_file

FLOORS = ("core", "splits", "loaders", "benchmarks", "baselines", "leaderboard", "cli")
MAY_USE = {
    "core": {"core"},
    "splits": {"core", "splits"},
    "loaders": {"core", "splits", "loaders"},
    "benchmarks": {"core", "splits", "loaders", "benchmarks"},
    "baselines": {"core", "splits", "loaders", "benchmarks", "baselines"},
    "leaderboard": {"core", "splits", "loaders", "benchmarks", "leaderboard"},
    "cli": set(FLOORS),
}


def files() -> list[Path]:
    """Every Python file of the package, relative to its root; Alembic's migrations are not part of it."""
    result = [path.relative_to(ROOT) for room in FLOORS for path in sorted((ROOT / room).rglob("*.py"))]
    return [path for path in result if "migrations" not in path.parts]


def imported(statement: ast.ImportFrom, file: Path, known: frozenset[Path]) -> set[Path]:
    """The files that a relative import names: a module, or the package whose name it takes."""
    base = file.parts[: len(file.parts) - statement.level]
    result = set()
    for name in statement.names:
        position = (*base, *(statement.module or "").split(".")) if statement.module else base
        for parts in ((*position, name.name), position):
            module, package = Path(*parts).with_suffix(".py") if parts else Path(), Path(*parts, "__init__.py")
            if target := next((path for path in (module, package) if path in known), None):
                result.add(target)
                break
    return result


@cache
def graph() -> dict[Path, set[Path]]:
    """Which file imports which: at import, in functions, and for types alike."""
    known = frozenset(files())
    result: dict[Path, set[Path]] = {}
    for file in files():
        tree = parse_file(ROOT / file)
        statements = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
        result[file] = {other for node in statements for other in imported(node, file, known)} - {file}
    return result


def circles(edges: dict[Path, set[Path]]) -> list[list[Path]]:
    """The groups of files that import each other in circles (strongly connected components; Tarjan 1972)."""
    number: dict[Path, int] = {}
    low: dict[Path, int] = {}
    waiting: list[Path] = []
    result = []

    def visit(file: Path) -> None:
        number[file] = low[file] = len(number)
        waiting.append(file)
        for other in sorted(edges[file]):
            if other not in number:
                visit(other)
            if other in waiting:
                low[file] = min(low[file], low[other])
        if low[file] == number[file]:
            group = waiting[waiting.index(file) :]
            del waiting[waiting.index(file) :]
            if len(group) > 1:
                result.append(sorted(group))

    for file in sorted(edges):
        if file not in number:
            visit(file)
    return result


def test_imports_inside_the_package_are_relative():
    for file in files():
        for node in ast.walk(parse_file(ROOT / file)):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not any(name.split(".")[0] == "farshift" for name in names), f"{file}: absolute import"


def test_imports_run_downward():
    upward = [
        f"{file} imports {other}"
        for file, others in graph().items()
        for other in sorted(others)
        if other.parts[0] not in MAY_USE[file.parts[0]]
    ]
    assert upward == []


def test_no_files_import_each_other_in_circles():
    assert circles(graph()) == []


def test_the_root_holds_two_python_files():
    assert sorted(path.name for path in ROOT.glob("*.py")) == ["__init__.py", "__main__.py"]


@pytest.mark.parametrize(
    ("room", "most"),
    [("core", 20), ("splits", 10), ("loaders", 5), ("benchmarks", 12), ("baselines", 8), ("leaderboard", 8)],
)
def test_a_room_shows_its_work_in_folders(room, most):
    assert len(list((ROOT / room).glob("*.py"))) <= most
