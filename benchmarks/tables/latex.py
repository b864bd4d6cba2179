"""LaTeX tables for a paper: booktabs rules, headers over groups of columns, and a note below the table. They require
only `\\usepackage{booktabs}` and UTF-8 input, which is LaTeX's default."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from ...core.errors import FarshiftError
from ..plot._panels import Panel, describe_incomparable, describe_intervals, format_estimate, make_panels
from ..scoring.record import Score
from ..statistics.interval import Estimate, HasInterval, is_measured
from ..statistics.ranks import format_letter
from .markdown import BIASED, format_seeds

OPTIONS = ("caption", "label", "leaders")

PAGE, LETTER, NUMBER = 397.0, 4.6, 47.0
"""In points: the width of a page (5.5 inches), and approximate widths of a letter and of a column of numbers."""

OVERLAP = (
    "Bold: the best OOD score of a benchmark and those whose intervals overlap with that of the best (not a test)."
)
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


@dataclass(frozen=True)
class Cell:
    """A model's value on a benchmark, None if it is missing. remark: the text of its footnote."""

    estimate: HasInterval | None
    bold: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Block:
    """A benchmark, or another set of comparable scores: its column headers, and the cells of each model."""

    panel: Panel
    heads: tuple[str, ...]
    models: Mapping[str, tuple[Cell, ...]]


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
        return rf"\textsuperscript{{{format_letter(self.marked.index(text))}}}"

    def written(self) -> str:
        """Return the note as LaTeX: the sentences, then each footnote with its mark."""
        marks = [rf"{self.mark(text)}\,{escape_latex(text)}" for text in self.marked]
        return " ".join([*map(escape_latex, self.sentences), *marks])


def render(
    records: Sequence[Score], *, caption: str = "", label: str = "", leaders: Sequence[bool] | None = None
) -> str:
    """Render a `table` environment with ID, OOD, gap and, if available, the worst group's score of each benchmark, as
    many side by side as fit the page width; a note explains the brackets, bold type and marks. With several benchmarks
    intervals are below the values. Models are in order of first appearance.

    leaders: for each record whether its OOD score is bold (`comparison.find_leaders`); by default those whose intervals
    overlap with that of the best. Raises `FarshiftError` if records of one identity have different metrics."""
    panel_list = make_panels(records)
    bold = None if leaders is None else {id(leader) for leader, leads in zip(records, leaders, strict=True) if leads}
    blocks = [_make_block(panel, bold) for panel in panel_list]
    has_several = any(len(panel.records) > 1 for panel in panel_list)
    full = sorted({len(record.seeds) for record in records if len(record.seeds) >= record.protocol_seeds})
    sentences = [
        (OVERLAP if leaders is None else TIED) if has_several else "",
        f"Brackets: {describe_intervals(records)}.",
        "Gaps are in percentage points." if any(panel.percent for panel in panel_list) else "",
        BIASED if any(record.worst_group for record in records) else "",
        f"Seeds: {', '.join(map(str, full))}." if full else "",
        describe_incomparable(records),
    ]
    notes = Notes([_format_metrics(panel_list), *filter(None, sentences)])
    tabulars = [_format_part(part, len(blocks) > 1, notes) for part in _split_by_width(blocks)]
    titles = [panel.title for panel in panel_list]
    return format_table(tabulars, caption or f"Scores on {_join_names(titles)}.", label or _make_label(titles), notes)


def _make_block(panel: Panel, bold: set[int] | None) -> Block:
    by_name = dict(zip(panel.names, panel.records, strict=True))
    measured = {name: member.ood for name, member in by_name.items() if is_measured(member.ood)}
    lead = find_best_names(measured, panel.records[0].better)
    worst = any(record.worst_group for record in panel.records)
    models = {}
    for name, record in by_name.items():
        few = f"{format_seeds(record)} seeds." if len(record.seeds) < record.protocol_seeds else ""
        leads = name in lead if bold is None else id(record) in bold
        cells = [Cell(_get_measured(record.id)), Cell(_get_measured(record.ood), leads, few)]
        cells.append(Cell(_get_measured(record.gap)))
        if worst:
            group = record.worst_group
            remark = "" if group is None else f"{group.group}, of {len(group.groups)} groups."
            cells.append(Cell(None if group is None else group.estimate, remark=remark))
        models[name] = tuple(cells)
    heads = ("ID", "OOD", "gap", *(["worst group"] if worst else []))
    return Block(panel, heads, models)


def _get_measured(estimate: object) -> Estimate | None:
    return estimate if isinstance(estimate, Estimate) else None


def find_best_names(blocks: Mapping[str, HasInterval], better: str) -> frozenset[str]:
    """Return the models whose intervals overlap with that of the best; none if there is only one model."""
    if len(blocks) < 2:
        return frozenset()
    sign = -1 if better == "lower" else 1
    first = max(blocks.values(), key=lambda block: sign * block.value)
    return frozenset(name for name, block in blocks.items() if block.low <= first.high and first.low <= block.high)


def _split_by_width(blocks: Sequence[Block]) -> list[list[Block]]:
    """Split the blocks, in order, into parts that fit the page width; each part has at least one block."""
    parts: list[list[Block]] = []
    for block in blocks:
        neighbours = [*(parts[-1] if parts else []), block]
        names = max(len(name) for neighbour in neighbours for name in neighbour.models)
        fits = LETTER * names + NUMBER * sum(len(neighbour.heads) for neighbour in neighbours) <= PAGE
        if parts and fits:
            parts[-1] = neighbours
        else:
            parts.append([block])
    return parts


def _format_part(blocks: Sequence[Block], stacked: bool, notes: Notes) -> str:
    columns = [Column("model", number=False)]
    columns += [Column(head, escape_latex(block.panel.title)) for block in blocks for head in block.heads]
    rows = []
    for name in dict.fromkeys(name for block in blocks for name in block.models):
        cells = [(block, cell) for block in blocks for cell in block.models.get(name, [Cell(None)] * len(block.heads))]
        numbers, ends = [], []
        for block, cell in cells:
            number, end = "--", ""
            if cell.estimate is not None:
                text = format_estimate(cell.estimate, block.panel.percent).replace("-", "$-$")
                number, _, end = text.partition(" ")
                # A bracket at the start of a cell must not be parsed as an argument of the preceding line break.
                end = rf"{{\scriptsize {end}}}"
                number = rf"\textbf{{{number}}}" if cell.bold else number
                number += notes.mark(cell.remark) if cell.remark else ""
            numbers.append(number)
            ends.append(end)
        if stacked:
            rows += [[escape_latex(name), *numbers], ["", *ends]]
        else:
            rows.append([escape_latex(name), *(" ".join(both).strip() for both in zip(numbers, ends, strict=True))])
    return format_tabular(columns, rows)


def _format_metrics(panels: Sequence[Panel]) -> str:
    """Describe the metrics: `accuracy (%).`, or `accuracy (%): a, b; mae, lower is better: c.`"""
    titles: dict[str, list[str]] = {}
    for panel in panels:
        titles.setdefault(panel.metric, []).append(panel.title)
    if len(titles) == 1:
        return f"Metric: {panels[0].metric}."
    return f"Metrics: {'; '.join(f'{metric}: {_join_names(names)}' for metric, names in titles.items())}."


def _join_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


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


def _make_label(names: Sequence[str]) -> str:
    """Return a label derived from names, such as `tab:modadd97-xi35`."""
    plain = re.sub(r"[^a-z0-9.]+", "-", " ".join(dict.fromkeys(names)).lower()).strip("-.")
    return f"tab:{plain[:60].rstrip('-.') or 'results'}"


def escape_latex(text: str) -> str:
    """Escape a text for LaTeX: special characters are escaped, and hyphens do not join to a dash; accents and other
    scripts remain UTF-8."""
    plain = "".join(SPECIAL.get(character, character) for character in text)
    return re.sub("-(?=-)", "-{}", plain)


def _format_row(cells: Sequence[str]) -> str:
    # A bracket or a star would be parsed as an argument of the preceding line break.
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return f"{guard}{' & '.join(cells)} \\\\"
