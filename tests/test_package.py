"""The package as others install it, the rules of its house, and what it says of itself to GitHub and to those who cite it."""

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
import yaml
from farshift.cli import machine
from support import ROOT, parse_file

FLOORS = ["core", "cli", "splits", "loaders", "benchmarks", "baselines", "leaderboard"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCES = [path for room in FLOORS for path in sorted((ROOT / room).rglob("*.py"))]


def forbidden(path: Path) -> Iterator[str]:
    """What a file uses of Python's random, of pickle and its like, and of hash, eval and exec."""
    for node in ast.walk(parse_file(path)):
        names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        yield from {"random", "pickle", "dill", "joblib"} & {name.split(".")[0] for name in names}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("hash", "eval", "exec"):
            yield node.func.id


def test_no_file_uses_python_s_random_pickle_or_hash():
    result = {str(path.relative_to(ROOT)): used for path in SOURCES if (used := list(forbidden(path)))}
    assert result == {}


def test_every_package_is_listed():
    on_disk = {
        ".".join(("farshift", *path.parent.relative_to(ROOT).parts))
        for room in FLOORS
        for path in (ROOT / room).rglob("__init__.py")
    }
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == on_disk | {"farshift"}


def imported(path: Path) -> set[str]:
    """The top-level packages that a file imports anywhere in it, by their names in code."""
    result = set()
    for node in ast.walk(parse_file(path)):
        if isinstance(node, ast.Import):
            result |= {name.name.split(".")[0] for name in node.names}
        if isinstance(node, ast.ImportFrom) and not node.level:
            result.add((node.module or "").split(".")[0])
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "importorskip":
            result.add(str(ast.literal_eval(node.args[0])).split(".")[0])
    return result - set(sys.stdlib_module_names)


def declared(*extras: str) -> set[str]:
    """The packages that the named extras bring, or the core dependencies where none is named, by their names in code."""
    project = PROJECT["project"]
    lists = [project["optional-dependencies"][extra] for extra in extras] or [project["dependencies"]]
    names = set()
    for item in (item for items in lists for item in items):
        name, inner = re.match(r"([a-z0-9-]+)(?:\[([a-z0-9,]+)\])?", item).groups()
        if name == "farshift":
            names |= declared(*inner.split(","))
        else:
            names.add(IN_CODE.get(name, name.replace("-", "_")))
    return names


IN_CODE = {"scikit-learn": "sklearn", "pillow": "PIL", "pyyaml": "yaml"}
BOOSTING = {"xgboost", "lightgbm", "catboost"}
LOADED_BY_OTHERS = {"psycopg", "s3fs"} | BOOSTING
"""SQLAlchemy loads the driver that a ledger's address names, fsspec the one of its files', a recipe its estimator."""
NOT_WITH_US = {"inspect_ai", "griffe", "mkdocstrings_handlers"}
"""A runner with an environment of its own (requirements-interop.txt), and what makes the documentation site."""
COMMANDS = {"build", "codespell", "flask", "flask_cors", "mypy", "ruff", "xdist"}
"""What the Makefile calls, or moto's server, and nothing here imports."""


def test_every_dependency_of_the_package_is_imported_and_every_import_declared():
    users = sorted(set(PROJECT["project"]["optional-dependencies"]) - {"dev", "docs"})
    used = set().union(*(imported(path) for path in [ROOT / "__init__.py", ROOT / "__main__.py", *SOURCES]))
    assert used - NOT_WITH_US == (declared() | declared(*users)) - LOADED_BY_OTHERS


def test_what_only_tests_import_is_for_development():
    drivers = (
        ROOT / "tests" / "baselines" / "parity" / "drivers"
    )  # they import a clone of others' code, and no test them
    files = [path for path in (ROOT / "tests").rglob("*.py") if not path.is_relative_to(drivers)]
    helpers = {path.stem for path in (*files, *(ROOT / ".ci" / "pages").glob("*.py"))} | {
        path.name for path in (ROOT / "tests").iterdir() if path.is_dir()
    }
    used = set().union(*map(imported, files)) - helpers - NOT_WITH_US - {"farshift"}
    own = {
        IN_CODE.get(name, name.removeprefix("pytest-").replace("-", "_"))
        for name in (re.match(r"[a-z0-9-]+", item)[0] for item in PROJECT["project"]["optional-dependencies"]["dev"])
        if name != "farshift"
    }
    assert used - declared() - declared("all") - BOOSTING == own - COMMANDS


def test_core_dependencies_are_light_and_torch_is_pinned_by_the_constraints():
    names = {re.match(r"[a-z0-9-]+", item)[0] for item in PROJECT["project"]["dependencies"]}
    promised = {"numpy", "scipy", "pyarrow", "pydantic", "typer", "rich", "huggingface-hub"}
    assert names == promised | {"filelock", "fsspec", "httpx2", "tomli-w"}
    assert {"train", "stream", "board", "ray", "all", "dev"} <= PROJECT["project"]["optional-dependencies"].keys()
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().splitlines()
    assert "torchvision" not in (ROOT / "pyproject.toml").read_text()


def test_doctor_looks_for_what_is_declared():
    assert {name.replace("-", "_") for name in machine._CORE} == declared()
    of_use = PROJECT["project"]["optional-dependencies"].keys() - {"all", "quickstart", "docs", "dev"}
    assert machine._EXTRAS.keys() == of_use
    for extra, names in machine._EXTRAS.items():
        assert {IN_CODE.get(name, name) for name in names} == declared(extra)


def test_doctor_finds_a_package_by_its_module_whatever_the_distribution(tmp_path, monkeypatch):
    for name in machine._EXTRAS["boosting"]:
        (tmp_path / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert {check["check"]: check["ok"] for check in machine.check_machine()}["extra boosting"]


def test_the_suite_is_small_enough_to_ship():
    manifests = sum(path.stat().st_size for path in (ROOT / "splits" / "manifests").rglob("*") if path.is_file())
    assert manifests < 30e6


@pytest.mark.slow
def test_wheel_and_sdist_build_and_install_in_a_clean_environment(tmp_path):
    """As a new user: build both, install each in a new environment with core dependencies only, use it from elsewhere."""
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
    built = sorted(path.suffix for path in (tmp_path / "dist").iterdir())
    assert built == [".gz", ".whl"]
    for archive in (tmp_path / "dist").iterdir():
        home = tmp_path / archive.suffix[1:]
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([home / "bin" / "pip", "install", "--quiet", archive], check=True)
        environment = os.environ | {"FARSHIFT_CACHE": str(home / "cache"), "FARSHIFT_OFFLINE": "1"}
        code = (
            "import farshift, importlib.util as u; part = farshift.load('scan/length', part='ood_test'); "
            "class_ = type('M', (), {'predict': lambda self, batch: batch['command']}); "
            "print(len(part), farshift.score(farshift.evaluate(class_(), on='scan/length', seeds=1)).ood.value, "
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
        assert "pip install 'farshift[quickstart]'" in refused.stderr


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["project"]["version"]
    assert citation["repository-code"] == PROJECT["project"]["urls"]["Source"]


def test_continuous_integration_runs_what_a_contributor_runs():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert ".ci/run" in commands
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = re.findall(r"^make ([a-z-]+)", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    matrix = [item["target"] for item in workflow["jobs"]["tests"]["strategy"]["matrix"]["include"]]
    assert called
    assert {*called, *matrix} <= targets
