"""A LaTeX table with booktabs rules: needs `\\usepackage{booktabs}`, and UTF-8 input, which is LaTeX's default."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..scoring.record import Score
from ._grid import grid

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # In the classic font encoding these are other characters.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def render(records: Sequence[Score]) -> str:
    """A `table` environment: caption, then one line of source per row."""
    table = grid(records)
    score = [name in table.numbers for name in table.columns]
    rows = [
        [cell.replace("-", "$-$") if number else escaped(cell) for cell, number in zip(row, score, strict=True)]
        for row in table.rows
    ]
    return written(escaped(table.caption), "".join("lr"[each] for each in score), table.columns, rows)


def written(caption: str, shape: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A `table` environment of booktabs rules around cells that are LaTeX already; shape: of its columns (lrr)."""
    lines = [
        r"\begin{table}",
        r"\centering",
        r"\small",
        rf"\caption{{{caption}}}",
        rf"\begin{{tabular}}{{{shape}}}",
        r"\toprule",
        _row(head),
        r"\midrule",
        *map(_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """The text as LaTeX prints it: special characters escaped, hyphens kept from joining to a dash; accents and other
    scripts are left as UTF-8."""
    plain = "".join(SPECIAL.get(character, character) for character in text)
    return re.sub("-(?=-)", "-{}", plain)


def _row(cells: Sequence[str]) -> str:
    # After the line before, a bracket or a star would be an argument of its end.
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return f"{guard}{' & '.join(cells)} \\\\"
