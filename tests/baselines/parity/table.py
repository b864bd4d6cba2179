"""The table of docs/baselines.md: each algorithm that is held to released code, the largest difference, and who is not.

python -m tests.baselines.parity.table              write it into the page
python -m tests.baselines.parity.table --measure    compute ours again first, and note the differences
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from farshift.baselines.recipe import find_plugin_files

from .problems import of
from .reference import Reference, references

PAGE = Path(__file__).parents[3] / "docs" / "baselines.md"
REASON = "Held to no released numbers:"
"""How the last paragraph of the docstring of an algorithm begins that no numbers are kept for."""
BEGIN, END = "<!-- parity: begin -->\n", "<!-- parity: end -->\n"


def table(kept: list[Reference]) -> str:
    """All of them in Markdown, and the algorithms that are held to none, with the reason."""
    lines = ["| algorithm | released code | largest difference |", "|---|---|---|"]
    lines += [f"| `{one.name}` | {_code(one)} | {one.difference:.0e} |" for one in kept]
    lines += ["", "Held to none:", "", "| algorithm | why |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in unheld(kept).items()]
    return "\n".join(lines) + "\n"


def unheld(kept: list[Reference]) -> dict[str, str | None]:
    """The algorithms that are held to none, and why, as their docstrings say; None where one does not."""
    rest = sorted(set(find_plugin_files("algorithms")) - {one.algorithm for one in kept})
    return {name: reason(find_plugin_files("algorithms")[name]) for name in rest}


def reason(file: Path) -> str | None:
    """What follows REASON in the last paragraph of a file's docstring."""
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    mark, _, why = " ".join(text.split("\n\n")[-1].split()).partition(REASON)
    return why.strip() if why and not mark else None


def _code(one: Reference) -> str:
    return f"{one.repository} `{one.commit[:7]}`, `{one.code}`"


if __name__ == "__main__":
    if "--measure" in sys.argv[1:]:
        for one in references():
            one.measured(of(one)).write()
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + table(references()) + END + rest.split(END)[1], "utf-8")
