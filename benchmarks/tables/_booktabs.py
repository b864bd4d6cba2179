"""A LaTeX table for a paper: booktabs rules, headers over groups of columns, and a note below the table. Requires only
`\\usepackage{booktabs}` and UTF-8 input, which is LaTeX's default."""

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
    # In the OT1 font encoding these are other characters.
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
LABEL = re.compile(r"[A-Za-z0-9:./+_-]+")


@dataclass(frozen=True)
class Column:
    """A column: its header, already LaTeX; `group`: the header shared with neighbouring columns of the same group."""

    head: str
    group: str = ""
    number: bool = True


@dataclass
class Notes:
    """The note below a table: sentences, and the footnotes that cells refer to."""

    sentences: list[str]
    marked: list[str] = field(default_factory=list)

    def mark(self, text: str) -> str:
        """Return the footnote mark for a text; the same text always has the same mark."""
        if text not in self.marked:
            self.marked.append(text)
        return rf"\textsuperscript{{{_format_letter(self.marked.index(text))}}}"

    def written(self) -> str:
        """Return the note as LaTeX: the sentences, then each footnote with its mark."""
        marks = [rf"{self.mark(text)}\,{escape_latex(text)}" for text in self.marked]
        return " ".join([*map(escape_latex, self.sentences), *marks])


def format_table(tabulars: Sequence[str], caption: str, label: str, notes: Notes) -> str:
    """Format a `table` environment with the `tabular`s one above the other. caption: plain text. Raises `FarshiftError`
    for an invalid LaTeX label."""
    if not LABEL.fullmatch(label):
        raise FarshiftError(f"invalid LaTeX label {label!r}: use letters, digits and : . / + _ - (such as tab:results)")
    head = [rf"\caption{{{escape_latex(caption)}}}", rf"\label{{{label}}}"]
    lines = [r"\begin{table}", r"\centering", *head, r"\small\setlength{\tabcolsep}{4pt}"]
    for number, text in enumerate(tabulars):
        lines += [r"\par\medskip"] * (number > 0) + [text]
    beneath = rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {notes.written()}}}"
    return "\n".join([*lines, beneath, r"\end{table}"]) + "\n"


def format_tabular(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """Format a `tabular` of cells that are already LaTeX, with a rule under the header of each group of columns."""
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
    """Format an estimate's value, in percent if `percent`."""
    text = format_estimate(estimate, percent).partition(" ")[0].replace("-", "$-$")
    return rf"\textbf{{{text}}}" if bold else text


def format_interval(estimate: HasInterval, percent: bool) -> str:
    """Format an estimate's interval, in small type."""
    text = format_estimate(estimate, percent).partition(" ")[2].replace("-", "$-$")
    # A bracket at the start of a cell must not be parsed as an argument of the preceding line break.
    return rf"{{\scriptsize {text}}}"


def make_slug(names: Sequence[str]) -> str:
    """Return a label derived from names, such as `tab:modadd97-xi35`."""
    plain = re.sub(r"[^a-z0-9.]+", "-", " ".join(dict.fromkeys(names)).lower()).strip("-.")
    return f"tab:{plain[:60].rstrip('-.') or 'results'}"


def escape_latex(text: str) -> str:
    """Escape a text for LaTeX: special characters are escaped, and hyphens do not join to a dash; accents and other
    scripts remain UTF-8."""
    plain = "".join(SPECIAL.get(character, character) for character in text)
    return re.sub("-(?=-)", "-{}", plain)


def _format_letter(number: int) -> str:
    rest, last = divmod(number, len(ascii_lowercase))
    return (_format_letter(rest - 1) if rest else "") + ascii_lowercase[last]


def _format_row(cells: Sequence[str]) -> str:
    # A bracket or a star would be parsed as an argument of the preceding line break.
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return f"{guard}{' & '.join(cells)} \\\\"
