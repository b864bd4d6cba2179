"""Sentences and logical forms in the format of COGS and SLOG: sentence TAB logical form TAB type, one row per line.

Depths of recursion are computed from the logical form: how many sentential complements (`cp_depth`), prepositional
phrases (`pp_depth`) and relative clauses (`rc_depth`) are nested, and the greatest of the three (`depth`). Kim and
Linzen 2020 (arXiv 2010.05465), section 3.2; Li et al. 2023 (SLOG, arXiv 2310.15040), 2.1.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData, BadDefinition

if TYPE_CHECKING:
    import pyarrow as pa

_KINDS = ("cp", "pp", "rc")
_LINKS = {
    "cp": re.compile(r"\. ccomp \( x _ (\d+) , x _ (\d+) \)"),
    "pp": re.compile(r"\. nmod \. \w+ \( x _ (\d+) , x _ (\d+) \)"),
}


def read(
    files: dict[str, Path],
    *,
    parts: dict[str, str],
    notation: str,
    archives: dict[str, dict[str, str]] | None = None,
) -> pa.Table:
    """Fields: `sentence`, `logical_form`, `type`, `origin`, `depth`, `cp_depth`, `pp_depth`, `rc_depth` and `copies`,
    with one row for each distinct line of a part; `copies` is how often the line occurs.

    parts: the published part (`origin`) of each file. notation: "indexed" (COGS: `burn . theme ( x _ 6 ,
    x _ 4 )`; it has no relative clauses) or "variable_free" (SLOG: `burn ( theme = box )`). archives: for a file that
    is a zip, the `member` to read and its `password`.
    """
    import pyarrow as pa

    measures: dict[str, Callable[[str], dict[str, int]]] = {
        "indexed": _measure_chains,
        "variable_free": _measure_nesting,
    }
    if notation not in measures:
        raise BadDefinition(f"semantic_parses: notation {notation!r}: use {' or '.join(measures)}")
    if unnamed := sorted(set(files) - set(parts)):
        raise BadDefinition(f"semantic_parses: `parts` does not name {', '.join(unnamed)}")
    copies: Counter[tuple[str, ...]] = Counter()
    for name, path in files.items():
        for number, line in enumerate(_read_lines(name, path, (archives or {}).get(name)), 1):
            row = line.split("\t")
            if len(row) != 3:
                raise BadData(f"{name}: line {number} has {len(row)} columns, expected 3: sentence, form, type")
            copies[*row, parts[name]] += 1
    sentences, forms, types, origins = map(list, zip(*copies, strict=True))
    depths = [measures[notation](form) for form in forms]
    columns: dict[str, list[str] | list[int]] = {
        "sentence": sentences,
        "logical_form": forms,
        "type": types,
        "origin": origins,
        "copies": list(copies.values()),
        "depth": [max(row_depths.values()) for row_depths in depths],
    }
    return pa.table(columns | {f"{kind}_depth": [row_depths[kind] for row_depths in depths] for kind in _KINDS})


def _read_lines(name: str, path: Path, archive: dict[str, str] | None) -> list[str]:
    try:
        if archive is None:
            content = path.read_bytes()
        else:
            with zipfile.ZipFile(path) as bundle:
                content = bundle.read(archive.get("member", ""), archive.get("password", "").encode())
        return content.decode("utf-8").splitlines()
    except KeyError as error:
        raise BadData(f"{name}: {error.args[0]}") from error
    except (zipfile.BadZipFile, zlib.error, RuntimeError) as error:  # RuntimeError: a wrong password
        raise BadData(f"{name} cannot be unpacked: {error}") from error
    except UnicodeDecodeError as error:
        raise BadData(f"{name} is not UTF-8 text: byte {error.start}") from error


def _measure_chains(form: str) -> dict[str, int]:
    """Compute depths in the indexed notation: the longest chain of links from variable to variable."""
    depths = {"rc": 0}
    for kind, link in _LINKS.items():
        # Every variable is the head of at most one complement and at most one modifier, so links form a mapping.
        below = dict(link.findall(form))
        depths[kind] = 0
        for head in set(below) - set(below.values()):
            length = 0
            while head in below:
                head, length = below[head], length + 1
            depths[kind] = max(depths[kind], length)
    return depths


def _measure_nesting(form: str) -> dict[str, int]:
    """Compute depths in the variable-free notation: how many roles of a kind are open at once."""
    depths = dict.fromkeys(_KINDS, 0)
    tokens, opened, role = form.split(), [""], ""
    for index, token in enumerate(tokens):
        if token == "=":
            role = _classify_role(tokens, index)
            if role:
                depths[role] = max(depths[role], opened.count(role) + 1)
        elif token == "(":
            opened.append(role)
            role = ""
        elif token in (",", ")"):
            role = ""
            if token == ")":
                opened.pop()
    return depths


def _classify_role(tokens: list[str], index: int) -> str:
    """Return the kind of recursion of the role before the "=" at `index`; "" for an argument."""
    if tokens[index - 1] == "ccomp":
        return "cp"
    if tokens[index - 1] == "nmod":
        return "rc"
    return "pp" if tokens[index - 3 : index - 1] == ["nmod", "."] else ""
