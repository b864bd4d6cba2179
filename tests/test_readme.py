"""The README's four jobs, run as printed, in order, by a new user in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT


def blocks(page: str, first: str = "", last: str = "") -> list[tuple[str, str]]:
    """("python", code) and ("shell", command) of a page, or of its section from `first` to `last`, in order."""
    text = (ROOT / page).read_text()
    section = text[text.index(first) : text.index(last) if last else None]
    result = []
    for match in re.finditer(r"```python\n([\s\S]*?)```|^    (farshift .*)$", section, re.MULTILINE):
        code, command = match.groups()
        result.append(("python", code) if code else ("shell", command))
    return result


def jobs() -> list[tuple[str, str]]:
    return blocks("README.md", "### Download a split", "## Good to know")


def run_as_printed(content: list[tuple[str, str]], folder: Path, file: str) -> list[str]:
    """Run blocks in order, in a folder; one that defines a class is written to `file`. Returns what each printed."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    printed = []
    for sort, text in content:
        if sort == "python" and "class " in text:
            (folder / file).write_text(text)
            continue
        command = [sys.executable, "-c", text] if sort == "python" else ["sh", "-ec", text]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (text, done.stderr)
        printed.append(done.stdout)
    return printed


def test_the_readme_shows_every_job_in_commands():
    commands = " ".join(content for sort, content in jobs() if sort == "shell")
    for job in ("splits pull", "evaluate", "submit", "compare", "board verify"):
        assert f"farshift {job}" in commands


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_pages_link_to_what_exists_and_have_no_gaps(page):
    path = ROOT / page
    text = path.read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert "://" in link or (path.parent / link).exists(), link
    assert not re.search(r"\b(TODO|FIXME|QUICKSTART_[A-Z]+)\b", text)


@pytest.mark.slow
def test_the_readme_runs_as_printed(tmp_path):
    printed = run_as_printed(jobs(), tmp_path, "my_model.py")
    assert "'command':" in printed[2]
    assert "verified" in "".join(printed)
    assert "lstm minus Copycat on scan/length" in printed[-1]
