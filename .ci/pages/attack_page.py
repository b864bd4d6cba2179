"""docs/attacks.md: the attacks that tests carry out, read from their marks `@pytest.mark.attack(who, what)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from markdown_text import format_table, join_page

ROOT = Path(__file__).parents[2]
ATTACKERS = {
    "entrant": "someone who submits to a board",
    "operator": "someone who runs a board",
    "visitor": "someone who reads a board or sends requests to its server",
    "host": "someone who controls another machine, a server or the network",
    "disk": "no attacker, but a faulty disk, a crash or a full file system",
}
"""Who may attack, in the order of the page."""
INTRODUCTION = """
The test suite carries out each of these attacks and checks that it fails; `make attack` runs only these tests and
prints the result of each. The guarantees and their limits: [security](security.md).
"""


def build_attack_page() -> str:
    """The page: one table per attacker, with the test files that carry out each attack."""
    attacks = list_marked_attacks(ROOT / "tests")
    blocks = []
    for who, description in ATTACKERS.items():
        rows = [
            (what, ", ".join(f"`{file}`" for file in sorted(files)))
            for (attacker, what), files in sorted(attacks.items())
            if attacker == who
        ]
        blocks += [f"## {who.capitalize()}: {description}", format_table(("attack", "tests"), rows)]
    return join_page(
        "# Attacks in the test suite",
        INTRODUCTION,
        *blocks,
    )


def list_marked_attacks(tests: Path) -> dict[tuple[str, str], set[str]]:
    """The test files, relative to the folder above `tests`, that carry out each attack (who, what)."""
    attacks: dict[tuple[str, str], set[str]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        text = path.read_text("utf-8")
        for who, what in _find_marks(text) if "mark.attack" in text else ():
            if who not in ATTACKERS:
                raise ValueError(f"{path}: {who!r} is none of {', '.join(ATTACKERS)}")
            attacks.setdefault((who, what), set()).add(path.relative_to(tests.parent).as_posix())
    return attacks


def _find_marks(text: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.attack":
            who, what = map(ast.literal_eval, node.args)
            yield who, what
