"""Reading LaTeX tables back, strictly: whatever plain LaTeX and booktabs would not take as it is meant fails."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAMED = {"textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">"}
NAMED |= {"textbar": "|", "pm": "±", ",": "\N{NARROW NO-BREAK SPACE}"}
TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[{}$&]|.", re.DOTALL)


@dataclass
class Printed:
    """What LaTeX prints for a piece of source, and which of it is bold."""

    text: str
    bold: str


@dataclass
class Tabular:
    """The blocks of rows by title, each row a list of cells."""

    shape: str
    heads: list[str]
    blocks: dict[str, list[list[Printed]]]

    @property
    def rows(self) -> list[list[Printed]]:
        return [row for rows in self.blocks.values() for row in rows]


@dataclass
class Table:
    caption: str
    label: str
    tabular: Tabular
    note: Printed


def printed(source: str) -> Printed:
    """What a source prints that has escapes, named characters, groups, bold and `$-$` alone."""
    shown: list[str] = []
    bold: list[str] = []
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
        if token == r"\textbf":
            pending = token[1:]
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
    assert not depth and not mathematics, f"left open: {source!r}"
    assert "--" not in re.sub(r"\{\}", "x", source) or source == "--" or re.fullmatch(r"\d+--\d+", source), source
    return Printed("".join(shown), "".join(bold))


def cells(line: str) -> list[str]:
    """The cells of a row's source."""
    assert line.endswith(r" \\"), line
    assert not line.startswith(("[", "*")), f"an argument of the line before: {line!r}"
    return [cell.strip() for cell in re.split(r"(?<!\\)&", line.removesuffix(r" \\"))]


def read_tabular(lines: list[str]) -> Tabular:
    shape = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", lines[0])[1]
    assert lines[1] == r"\toprule" and lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    heads = [printed(cell).text for cell in cells(lines[2])]
    blocks: dict[str, list[list[Printed]]] = {}
    for line in lines[3:-2]:
        if line == r"\midrule":
            continue
        if spanned := re.fullmatch(rf"\\multicolumn\{{{len(shape)}\}}\{{l\}}\{{(.*)\}} \\\\", line):
            rows = blocks.setdefault(printed(spanned[1]).text, [])
        else:
            rows.append([printed(cell) for cell in cells(line)])
    assert lines.count(r"\midrule") == len(blocks)
    assert {len(heads), *(len(row) for rows in blocks.values() for row in rows)} == {len(shape)}
    return Tabular(shape, heads, blocks)


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
        result.append(Table(caption, label, read_tabular(lines[5:-2]), printed(note)))
    assert len({table.label for table in result}) == len(result), "two tables of one label"
    return result
