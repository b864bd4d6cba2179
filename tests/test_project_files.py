"""What the project says of itself to people, to GitHub and to those who cite it."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml
from support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("name", ["CITATION.cff", ".pre-commit-config.yaml"])
def test_the_files_for_other_tools_are_there_and_readable(name):
    assert yaml.safe_load((ROOT / name).read_text())


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_what_github_reads_is_readable(path):
    assert yaml.safe_load(path.read_text())


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]


def test_continuous_integration_runs_what_a_contributor_runs():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert ".ci/run" in commands
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = re.findall(r"^make ([a-z-]+)", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    matrix = [item["target"] for item in workflow["jobs"]["tests"]["strategy"]["matrix"]["include"]]
    assert called
    assert {*called, *matrix} <= targets


def test_hooks_use_the_tools_of_the_environment():
    hooks = [
        hook
        for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
        for hook in repo["hooks"]
    ]
    assert {hook["id"] for hook in hooks} == {"ruff", "ruff-format", "codespell", "end-of-file"}
    assert all(hook["entry"].startswith(".venv/bin/") for hook in hooks if hook["language"] == "system")
