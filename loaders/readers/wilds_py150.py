"""Py150 as published by WILDS: tokens of Python files as numbers, and the type of each token."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import get_archive, read_member_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.archive_files import ArchiveFiles

_PARTS = {"train": "train", "IDval": "id_val", "OODval": "val", "IDtest": "id_test", "OODtest": "test"}
TYPES = ("class", "method", "punctuation", "keyword", "builtin", "literal", "other_identifier")
MASKED = -100
"""The type of padding, which is not predicted."""
_NAMES = {**dict(enumerate(TYPES)), MASKED: "masked"}


def read(files: dict[str, Any]) -> pa.Table:
    """Fields: `code` (tokens as numbers, all but the last), `next_token` (all but the first), and `types`, the types
    (`TYPES`) of the tokens in `next_token`, each a text separated by spaces; `published` (train, id_val, val, id_test,
    test) and `repository`.

    Padding at the end is left out.
    """
    import pyarrow as pa

    archive = get_archive(files)
    known = read_member_columns(archive, "metadata/repo_file_names/repo_ids.csv", ("repo_name",))
    repositories = set(known["repo_name"])
    rows: dict[str, list[str]] = {name: [] for name in ("code", "next_token", "types", "published", "repository")}
    for name, part in _PARTS.items():
        tokens = _read_lists(archive, f"processed/{name}_input.json")
        types = _read_lists(archive, f"processed/{name}_input_tok_type.json")
        paths = archive.read(f"metadata/repo_file_names/{name}.txt").decode().split("\n")
        paths = paths[:-1] if paths[-1] == "" else paths
        if not len(tokens) == len(types) == len(paths):
            raise BadData(
                f"{archive.where}: {name} has {len(tokens):,} rows of tokens, {len(types):,} of types and "
                f"{len(paths):,} of files"
            )
        for row, (its, kinds, path) in enumerate(zip(tokens, types, paths, strict=True)):
            repository = "/".join(path.split("/")[:2])
            if repository not in repositories:
                raise BadData(
                    f"{archive.where}: {name}, row {row + 1}: {path.strip()} is in no repository of repo_ids.csv"
                )
            if len(its) != len(kinds):
                raise BadData(f"{archive.where}: {name}, row {row + 1}: {len(its)} tokens but {len(kinds)} types")
            end = len(kinds)
            while end > 1 and kinds[end - 1] == MASKED:
                end -= 1
            if unknown := set(kinds) - _NAMES.keys():
                raise BadData(
                    f"{archive.where}: {name}, row {row + 1} has a token of the unknown type {min(unknown)!r}"
                )
            rows["code"].append(" ".join(map(str, its[: end - 1])))
            rows["next_token"].append(" ".join(map(str, its[1:end])))
            rows["types"].append(" ".join(_NAMES[kind] for kind in kinds[1:end]))
            rows["published"].append(part)
            rows["repository"].append(repository)
    return pa.table(rows)


def _read_lists(archive: ArchiveFiles, name: str) -> list[list[int]]:
    try:
        lists = json.loads(archive.read(name))
    except ValueError as error:
        raise BadData(f"{archive.where}: {name} is not JSON: {error}") from error
    if not isinstance(lists, list) or not all(isinstance(row, list) for row in lists):
        raise BadData(f"{archive.where}: {name} is not a list of lists")
    return lists
