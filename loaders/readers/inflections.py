"""Inflection (SIGMORPHON's shared tasks): a lemma and features become a form; test rows are marked by what of them
is in the training data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData, BadDefinition
from ._utf8_lines import read_utf8_lines

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = {(True, True): "both", (True, False): "lemma", (False, True): "features", (False, False): "neither"}


def read(files: dict[str, Path], *, train: str, tests: dict[str, str]) -> pa.Table:
    """Fields: `lemma`, `features` (separated by spaces, in the published order), `form`, and `origin`: "train", or the
    file's name in `tests` and what of the row is in the training file, such as "test both" (its lemma and its set of
    features), "test lemma", "test features" or "test neither".

    Lines are lemma, form and features, separated by tabs; features are separated by ";".
    """
    import pyarrow as pa

    if set(files) != {train, *tests}:
        raise BadDefinition(f"inflections reads {', '.join([train, *tests])}, but the files are {', '.join(files)}")
    columns: dict[str, list[str]] = {name: [] for name in ("lemma", "features", "form", "origin")}
    lemmas: set[str] = set()
    bundles: set[str] = set()
    for name, origin in {train: "", **tests}.items():
        for number, line in enumerate(read_utf8_lines(name, files[name]), 1):
            cells = line.split("\t")
            if len(cells) != 3 or not all(cells):
                raise BadData(f"{name}: line {number} is not a lemma, a form and features: {line[:60]!r}")
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
