"""LaTeX tables for a paper: booktabs rules, a block of rows for each benchmark, and a note below the table. They
require only `\\usepackage{booktabs}` and UTF-8 input, which is LaTeX's default."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...core.errors import FarshiftError
from ..plot._panels import make_panels
from ..scoring.record import Score
from .markdown import SCORES, format_caption, format_cells, list_columns

OPTIONS = ("caption", "label", "leaders")

TIED = (
    "Bold: the best OOD score of a benchmark and those that do not differ significantly from it (max-t over all pairs, "
    "paired rows, 5 %)."
)

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # In the OT1 font encoding these are other characters.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
LABEL = re.compile(r"[A-Za-z0-9:./+_-]+")


def render(
    records: Sequence[Score], *, caption: str = "", label: str = "", leaders: Sequence[bool] | None = None
) -> str:
    """Render a `table` environment: a block of rows for each set of comparable records, with the columns of the
    Markdown table; models are in order of first appearance.

    leaders: for each record whether its OOD score is bold (`comparison.compare.find_leaders`). Raises
    `FarshiftError` if records of one identity have different metrics."""
    bold = {id(record) for record, leads in zip(records, leaders or [False] * len(records), strict=True) if leads}
    names = [name for name in list_columns(records) if name not in ("benchmark", "kind", "metric", "selection")]
    panels, blocks = make_panels(records), []
    for panel in panels:
        rows = []
        for model, record in zip(panel.names, panel.records, strict=True):
            cells = {name: escape_latex(text) for name, text in (format_cells(record) | {"model": model}).items()}
            cells |= {name: cells[name].replace("-", "$-$") or "--" for name in SCORES}
            if id(record) in bold:
                cells["OOD"] = rf"\textbf{{{cells['OOD']}}}"
            rows.append([cells[name] for name in names])
        blocks.append((f"{panel.title}, {panel.metric}", rows))
    titles = [panel.title for panel in panels]
    note = " ".join([*([TIED] if bold else []), format_caption(records)])
    tabular = format_tabular(names, [name in SCORES for name in names], blocks)
    return format_table(tabular, caption or f"Scores on {', '.join(titles)}.", label or _make_label(titles), note)


def format_table(tabular: str, caption: str, label: str, note: str) -> str:
    """Format a `table` environment; caption and note are plain text. Raises `FarshiftError` for an invalid label."""
    if not LABEL.fullmatch(label):
        raise FarshiftError(f"invalid LaTeX label {label!r}: use letters, digits and : . / + _ - (such as tab:results)")
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(caption)}}}",
        rf"\label{{{label}}}",
        r"\small\setlength{\tabcolsep}{4pt}",
        tabular,
        rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {escape_latex(note)}}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def format_tabular(
    heads: Sequence[str], numbers: Sequence[bool], blocks: Sequence[tuple[str, Sequence[Sequence[str]]]]
) -> str:
    """Format a `tabular` with a rule above each block of rows, whose cells are already LaTeX. Heads and the titles of
    blocks are plain text; `numbers`: which columns are right-aligned."""
    shape = "".join("r" if number else "l" for number in numbers)
    lines = [rf"\begin{{tabular}}{{{shape}}}", r"\toprule", _format_row([escape_latex(head) for head in heads])]
    for title, rows in blocks:
        lines += [
            r"\midrule",
            rf"\multicolumn{{{len(heads)}}}{{l}}{{{escape_latex(title)}}} \\",
            *map(_format_row, rows),
        ]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _format_row(cells: Sequence[str]) -> str:
    # A bracket or a star would be parsed as an argument of the preceding line break.
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return f"{guard}{' & '.join(cells)} \\\\"


def _make_label(names: Sequence[str]) -> str:
    """Return a label derived from names, such as `tab:modadd97-xi35`."""
    plain = re.sub(r"[^a-z0-9.]+", "-", " ".join(dict.fromkeys(names)).lower()).strip("-.")
    return f"tab:{plain[:60].rstrip('-.') or 'results'}"


def escape_latex(text: str) -> str:
    """Escape a text for LaTeX: special characters are escaped, and hyphens do not join to a dash; accents and other
    scripts remain UTF-8."""
    plain = "".join(SPECIAL.get(character, character) for character in text)
    return re.sub("-(?=-)", "-{}", plain)
