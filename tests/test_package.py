"""The package as others install it, and the rules of its house."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT

FLOORS = ["core", "cli", "splits", "loaders", "benchmarks", "baselines", "leaderboard"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCES = [path for room in FLOORS for path in sorted((ROOT / room).rglob("*.py"))]


def forbidden(path: Path) -> Iterator[str]:
    """What a file uses of Python's random, of pickle and its like, and of hash, eval and exec."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        yield from {"random", "pickle", "dill", "joblib"} & {name.split(".")[0] for name in names}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("hash", "eval", "exec"):
            yield node.func.id


def test_no_file_uses_python_s_random_pickle_or_hash():
    found = {str(path.relative_to(ROOT)): used for path in SOURCES if (used := list(forbidden(path)))}
    assert found == {}


def test_every_package_is_listed():
    on_disk = {
        ".".join(("farshift", *path.parent.relative_to(ROOT).parts))
        for room in FLOORS
        for path in (ROOT / room).rglob("__init__.py")
    }
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == on_disk | {"farshift"}


def test_core_dependencies_are_light_and_torch_is_pinned_by_the_constraints():
    names = {re.match(r"[a-z0-9-]+", item)[0] for item in PROJECT["project"]["dependencies"]}
    promised = {"numpy", "pyarrow", "pydantic", "typer", "rich", "huggingface-hub"}
    assert names == promised | {"filelock", "httpx2", "tomli-w"}
    assert {"train", "stream", "board", "ray", "all", "dev"} <= PROJECT["project"]["optional-dependencies"].keys()
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().splitlines()
    assert "torchvision" not in (ROOT / "pyproject.toml").read_text()


def test_the_suite_is_small_enough_to_ship():
    manifests = sum(path.stat().st_size for path in (ROOT / "splits" / "manifests").rglob("*") if path.is_file())
    assert manifests < 30e6


@pytest.mark.slow
def test_wheel_and_sdist_build_and_install_in_a_clean_environment(tmp_path):
    """As a stranger: build both, install each in a new environment with core dependencies only, use it from elsewhere."""
    tree = tmp_path / "tree"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", tmp_path / "dist", tree], check=True, capture_output=True
    )
    made = sorted(path.suffix for path in (tmp_path / "dist").iterdir())
    assert made == [".gz", ".whl"]
    for archive in (tmp_path / "dist").iterdir():
        home = tmp_path / archive.suffix[1:]
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([home / "bin" / "pip", "install", "--quiet", archive], check=True)
        environment = os.environ | {"FARSHIFT_CACHE": str(home / "cache"), "FARSHIFT_OFFLINE": "1"}
        code = (
            "import farshift, importlib.util as u; part = farshift.load('scan/length', part='ood_test'); "
            "class_ = type('M', (), {'predict': lambda self, batch: batch['command']}); "
            "print(len(part), farshift.score(farshift.evaluate(class_(), on='scan/length', seeds=1))['ood']['value'], "
            "u.find_spec('torch'))"
        )
        done = subprocess.run(
            [home / "bin" / "python", "-c", code],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            check=False,
        )
        assert done.stdout.split() == ["3920", "0.0", "None"], done.stderr
        command = [home / "bin" / "farshift", "splits", "list", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
        assert "scan/length" in done.stdout
        refused = subprocess.run(
            [home / "bin" / "farshift", "quickstart"],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            check=False,
        )
        assert refused.returncode == 2
        assert "pip install 'farshift[train,board]'" in refused.stderr
