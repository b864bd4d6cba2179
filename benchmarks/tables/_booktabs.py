"""A LaTeX table for a paper: booktabs rules, heads over groups of columns, and a note beneath for all that a caption is
too short for. Needs `\\usepackage{booktabs}` and UTF-8 input, which is LaTeX's default; nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from string import ascii_lowercase

from ...core.errors import FarshiftError
from ..plot._panels import format_estimate
from ..statistics.interval import HasInterval

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
LABEL = re.compile(r"[A-Za-z0-9:./+_-]+")


@dataclass(frozen=True)
class Column:
    """A column's head, LaTeX already; `group`: what stands over it and its neighbours of the same group."""

    head: str
    group: str = ""
    number: bool = True


@dataclass
class Notes:
    """What stands beneath a table: sentences, and what marks in its cells refer to."""

    sentences: list[str]
    marked: list[str] = field(default_factory=list)

    def mark(self, text: str) -> str:
        """A mark in a cell for a note; the same mark for the same text."""
        if text not in self.marked:
            self.marked.append(text)
        return rf"\textsuperscript{{{_format_letter(self.marked.index(text))}}}"

    def written(self) -> str:
        """Plain LaTeX: sentences first, then each mark with its note."""
        marks = [rf"{self.mark(text)}\,{escape_latex(text)}" for text in self.marked]
        return " ".join([*map(escape_latex, self.sentences), *marks])


def format_table(tabulars: Sequence[str], caption: str, label: str, notes: Notes) -> str:
    """A `table` environment of one `tabular` above the other. caption: plain text. `FarshiftError` for a
    label that LaTeX cannot refer to."""
    if not LABEL.fullmatch(label):
        raise FarshiftError(f"{label!r} is no label for LaTeX: write letters, digits and : . / + _ - (tab:results)")
    head = [rf"\caption{{{escape_latex(caption)}}}", rf"\label{{{label}}}"]
    lines = [r"\begin{table}", r"\centering", *head, r"\small\setlength{\tabcolsep}{4pt}"]
    for number, text in enumerate(tabulars):
        lines += [r"\par\medskip"] * (number > 0) + [text]
    beneath = rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {notes.written()}}}"
    return "\n".join([*lines, beneath, r"\end{table}"]) + "\n"


def format_tabular(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """A `tabular` of cells that are LaTeX already; a rule under the head of each group of columns."""
    shape = "".join("r" if column.number else "l" for column in columns)
    lines = [rf"\begin{{tabular}}{{{shape}}}", r"\toprule"]
    if any(column.group for column in columns):
        over, rules, first = [], [], 1
        for group, members in groupby(columns, key=lambda column: column.group):
            last = first + len(list(members)) - 1
            if group:
                over.append(rf"\multicolumn{{{last - first + 1}}}{{c}}{{{group}}}")
                rules.append(rf"\cmidrule(lr){{{first}-{last}}}")
            else:
                over += [""] * (last - first + 1)
            first = last + 1
        lines += [_format_row(over), " ".join(rules)]
    lines += [_format_row([column.head for column in columns]), r"\midrule", *map(_format_row, rows), r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}"])


def format_value(estimate: HasInterval, percent: bool, bold: bool = False) -> str:
    """An estimate's value, in percent or as it is."""
    text = format_estimate(estimate, percent).partition(" ")[0].replace("-", "$-$")
    return rf"\textbf{{{text}}}" if bold else text


def format_interval(estimate: HasInterval, percent: bool) -> str:
    """An estimate's interval, small."""
    text = format_estimate(estimate, percent).partition(" ")[2].replace("-", "$-$")
    # A bracket that begins a cell must not be an argument of what ends the line before.
    return rf"{{\scriptsize {text}}}"


def make_slug(names: Sequence[str]) -> str:
    """A label of names: `tab:modadd97-xi35`."""
    plain = re.sub(r"[^a-z0-9.]+", "-", " ".join(dict.fromkeys(names)).lower()).strip("-.")
    return f"tab:{plain[:60].rstrip('-.') or 'results'}"


def escape_latex(text: str) -> str:
    """The text as LaTeX prints it: special characters escaped, hyphens kept from joining to a dash; accents and other
    scripts are left as UTF-8."""
    plain = "".join(SPECIAL.get(character, character) for character in text)
    return re.sub("-(?=-)", "-{}", plain)


def _format_letter(number: int) -> str:
    rest, last = divmod(number, len(ascii_lowercase))
    return (_format_letter(rest - 1) if rest else "") + ascii_lowercase[last]


def _format_row(cells: Sequence[str]) -> str:
    # After the line before, a bracket or a star would be an argument of its end.
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return f"{guard}{' & '.join(cells)} \\\\"
