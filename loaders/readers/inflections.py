"""Inflection: a lemma and features become a form (SIGMORPHON's shared tasks); what training shows of a test row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData, BadDefinition
from ._utf8_lines import read_utf8_lines

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = {(True, True): "both", (True, False): "lemma", (False, True): "features", (False, False): "neither"}


def read(files: dict[str, Path], *, train: str, tests: dict[str, str]) -> pa.Table:
    """`lemma`, `features` (apart by spaces, in the published order), `form`, and `origin`: "train", or what `tests`
    calls the file and what the training file shows of the row, such as "test both" (its lemma and its set of
    features), "test lemma", "test features" or "test neither".

    Lines are lemma, form and features, apart by tabs, and features by ";".
    """
    import pyarrow as pa

    if set(files) != {train, *tests}:
        raise BadDefinition(f"inflections reads {', '.join([train, *tests])}, and is given {', '.join(files)}")
    columns: dict[str, list[str]] = {name: [] for name in ("lemma", "features", "form", "origin")}
    lemmas: set[str] = set()
    bundles: set[str] = set()
    for name, origin in {train: "", **tests}.items():
        for number, line in enumerate(read_utf8_lines(name, files[name]), 1):
            cells = line.split("\t")
            if len(cells) != 3 or not all(cells):
                raise BadData(f"{name}: line {number} is no lemma, form and features: {line[:60]!r}")
            lemma, form, features = cells
            if not origin:
                lemmas.add(lemma)
                bundles.add(features)
            columns["lemma"].append(lemma)
            columns["features"].append(features.replace(";", " "))
            columns["form"].append(form)
            shown = _SHOWN[lemma in lemmas, features in bundles]
            columns["origin"].append(f"{origin} {shown}" if origin else "train")
    return pa.table(columns)
