"""The README's four jobs, run as printed, in order, by a new user in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT


def blocks() -> list[tuple[str, str]]:
    """("python", code) and ("shell", command) of the section on the four jobs, in order."""
    text = (ROOT / "README.md").read_text()
    section = text[text.index("### Download a split") : text.index("## Good to know")]
    found = []
    for match in re.finditer(r"```python\n([\s\S]*?)```|^    (farshift .*)$", section, re.MULTILINE):
        code, command = match.groups()
        found.append(("python", code) if code else ("shell", command))
    return found


def test_the_readme_shows_every_job_in_commands():
    commands = " ".join(content for sort, content in blocks() if sort == "shell")
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
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    printed = []
    for sort, content in blocks():
        if sort == "python" and "class " in content:
            (tmp_path / "my_model.py").write_text(content)
            continue
        command = [sys.executable, "-c", content] if sort == "python" else ["sh", "-ec", content]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (content, done.stderr)
        printed.append(done.stdout)
    assert "'command':" in printed[2]
    assert "verified" in "".join(printed)
    assert "lstm minus Copycat on scan/length" in printed[-1]
