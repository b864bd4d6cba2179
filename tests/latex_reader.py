"""Reading LaTeX tables back, strictly: whatever plain LaTeX and booktabs would not take as it is meant fails."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAMED = {"textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">"}
NAMED |= {"textbar": "|", "pm": "±", ",": "\N{NARROW NO-BREAK SPACE}"}
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[{}$&]|.", re.DOTALL)


@dataclass
class Printed:
    """What LaTeX prints for a piece of source, and which of it is bold, and raised."""

    text: str
    bold: str
    raised: str


@dataclass
class Tabular:
    shape: str
    groups: list[tuple[str, int, int]]
    heads: list[str]
    rows: list[list[Printed]]


@dataclass
class Table:
    caption: str
    label: str
    tabulars: list[Tabular]
    note: Printed


def printed(source: str) -> Printed:
    """What a source prints that has escapes, named characters, groups, sizes, bold, raised marks and `$-$` alone."""
    shown: list[str] = []
    bold, raised = [], []
    depth: list[str] = []
    pending, mathematics = "", False
    tokens = TOKEN.findall(source)
    position = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        if token == "{":
            depth.append(pending)
            pending = ""
            continue
        assert not pending, f"\\{pending} without its argument in {source!r}"
        if token == "}":
            assert depth, f"a brace too many in {source!r}"
            depth.pop()
            continue
        if token == "$":
            mathematics = not mathematics
            continue
        if token in (r"\textbf", r"\textsuperscript"):
            pending = token[1:]
            continue
        if token in (r"\scriptsize", r"\footnotesize"):
            # The blank after a command ends it.
            position += position < len(tokens) and tokens[position] == " "
            continue
        if token.startswith("\\"):
            name = token[1:]
            assert name in NAMED or name in "&%$#_{}", f"{token} in {source!r}"
            text = NAMED.get(name, name)
        else:
            assert token not in "&%#_^~<>|\n", f"bare {token!r} in {source!r}"
            text = token
        assert not mathematics or text in "-±", f"{text!r} as mathematics in {source!r}"
        shown.append(text)
        if "textbf" in depth:
            bold.append(text)
        if "textsuperscript" in depth:
            raised.append(text)
    assert not depth and not mathematics, f"left open: {source!r}"
    assert "--" not in re.sub(r"\{\}", "x", source) or source == "--" or re.fullmatch(r"\d+--\d+", source), source
    return Printed("".join(shown), "".join(bold), "".join(raised))


def cells(line: str) -> list[str]:
    """The cells of a row's source."""
    assert line.endswith(r" \\"), line
    assert not line.startswith(("[", "*")), f"an argument of the line before: {line!r}"
    return [cell.strip() for cell in re.split(r"(?<!\\)&", line.removesuffix(r" \\"))]


def read_tabular(lines: list[str]) -> Tabular:
    shape = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", lines[0])[1]
    assert lines[1] == r"\toprule" and lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    assert lines.count(r"\midrule") == 1
    middle = lines.index(r"\midrule")
    head, groups = lines[2:middle], []
    if len(head) == 3:
        at, spans = 1, []
        for cell in cells(head[0]):
            spanned = re.fullmatch(r"\\multicolumn\{(\d+)\}\{c\}\{(.*)\}", cell)
            if spanned:
                spans.append((printed(spanned[2]).text, at, at + int(spanned[1]) - 1))
            else:
                assert cell == ""
            at += int(spanned[1]) if spanned else 1
        assert at - 1 == len(shape), "the groups are as wide as the columns"
        groups = spans
        ruled = re.findall(r"\\cmidrule\(lr\)\{(\d+)-(\d+)\}", head[1])
        assert " ".join(rf"\cmidrule(lr){{{first}-{last}}}" for first, last in ruled) == head[1]
        assert [(int(first), int(last)) for first, last in ruled] == [(first, last) for _, first, last in spans]
    heads = [printed(cell).text for cell in cells(head[-1])]
    rows = [[printed(cell) for cell in cells(line)] for line in lines[middle + 1 : -2]]
    assert {len(heads), *map(len, rows)} == {len(shape)}, "every row has a cell for each column"
    return Tabular(shape, groups, heads, rows)


def read_tables(text: str) -> list[Table]:
    """The `table` environments of a text, which holds nothing else."""
    result = []
    for part in re.split(r"(?m)(?<=^\\end\{table\}$)\n+", text.strip()):
        lines = part.splitlines()
        assert lines[:2] == [r"\begin{table}", r"\centering"] and lines[-1] == r"\end{table}"
        caption = printed(re.fullmatch(r"\\caption\{(.*)\}", lines[2])[1]).text
        label = re.fullmatch(r"\\label\{([A-Za-z0-9:./+_-]+)\}", lines[3])[1]
        assert lines[4] == r"\small\setlength{\tabcolsep}{4pt}"
        note = re.fullmatch(r"\\par\\smallskip\\parbox\{\\linewidth\}\{\\footnotesize (.*)\}", lines[-2])[1]
        tabulars, left = [], lines[5:-2]
        while left:
            if tabulars:
                assert left.pop(0) == r"\par\medskip"
            end = left.index(r"\end{tabular}") + 1
            tabulars.append(read_tabular(left[:end]))
            left = left[end:]
        assert tabulars
        result.append(Table(caption, label, tabulars, printed(note)))
    labels = [table.label for table in result]
    assert len(set(labels)) == len(labels), "two tables of one label"
    for table in result:
        used = [cell.raised for each in table.tabulars for row in each.rows for cell in row if cell.raised]
        assert set(used) == set(re.findall("[a-z]", table.note.raised)), (
            "every mark has its note, and every note a mark"
        )
    return result
