"""CelebA: aligned faces in a zip, and lists of attributes (1 or -1) and parts, as text or as the CSVs of WILDS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import attach_files, get_archive, read_csv_columns

if TYPE_CHECKING:
    import pyarrow as pa

_PARTS = {"0": "train", "1": "val", "2": "test"}


def pieces(
    files: dict[str, Any], *, faces: str, attributes: str, parts: str, label: str, attribute: str, inside: bool = False
) -> Iterator[pa.Table]:
    """Fields: `image`, `blond` (0 or 1: the attribute `label`), `published` (train, val or test), `male` (0 or 1: the
    attribute `attribute`), `cell` (both, such as "0/1") and `picture` (the name of its file).

    faces, attributes, parts: the names of the files. inside: whether the lists are CSV members of `faces`.
    """
    archive = get_archive(files, faces)
    content = archive.read(attributes) if inside else _read_content(files[attributes])
    listed = archive.read(parts) if inside else _read_content(files[parts])
    rows = (
        _parse_csv(content, attributes, label, attribute)
        if inside
        else _parse_attributes(content, attributes, label, attribute)
    )
    part = _parse_parts(listed, parts, inside)
    if absent := sorted(rows.keys() - part.keys()):
        raise BadData(f"{parts} has no part for {absent[0]} ({len(absent):,} have none)")
    folder = "img_align_celeba/"
    yield from attach_files(
        archive,
        [folder + name for name in rows],
        {
            "blond": [blond for blond, _ in rows.values()],
            "male": [male for _, male in rows.values()],
            "published": [part[name] for name in rows],
            "cell": [f"{blond}/{male}" for blond, male in rows.values()],
            "picture": list(rows),
        },
    )


def _read_content(path: Path) -> bytes:
    return path.read_bytes()


def _parse_attributes(content: bytes, where: str, label: str, attribute: str) -> dict[str, tuple[int, int]]:
    """Read a published list: the number of rows, the names, then on each line a file and its values."""
    lines = content.decode("utf-8", "replace").splitlines()
    if len(lines) < 2 or not lines[0].strip().isdigit():
        raise BadData(f"{where} does not begin with the number of its rows")
    names = lines[1].split()
    for name in (label, attribute):
        if name not in names:
            raise BadData(f"{where} has no attribute {name}")
    places = [names.index(name) + 1 for name in (label, attribute)]
    rows = {}
    for number, line in enumerate(lines[2:], 3):
        cells = line.split()
        if len(cells) != len(names) + 1:
            raise BadData(f"{where}: line {number} has {len(cells)} values, not {len(names) + 1}")
        rows[cells[0]] = (int(cells[places[0]] == "1"), int(cells[places[1]] == "1"))
    if len(rows) != int(lines[0]):
        raise BadData(f"{where} has {len(rows):,} rows, but its first line says {lines[0].strip()}")
    return rows


def _parse_csv(content: bytes, where: str, label: str, attribute: str) -> dict[str, tuple[int, int]]:
    table = read_csv_columns(content, where, ("image_id", label, attribute))
    values = zip(table[label], table[attribute], strict=True)
    return {
        name: (int(label_value == "1"), int(attribute_value == "1"))
        for name, (label_value, attribute_value) in zip(table["image_id"], values, strict=True)
    }


def _parse_parts(content: bytes, where: str, inside: bool) -> dict[str, str]:
    if inside:
        table = read_csv_columns(content, where, ("image_id", "partition"))
        pairs = list(zip(table["image_id"], table["partition"], strict=True))
    else:
        lines = content.decode("utf-8", "replace").splitlines()
        pairs = [(name, code) for name, _, code in (line.strip().partition(" ") for line in lines) if name]
    wrong = [pair for pair in pairs if pair[1] not in _PARTS]
    if wrong:
        raise BadData(f"{where}: {' '.join(wrong[0])!r} is not a file and a part (0, 1 or 2)")
    return {name: _PARTS[code] for name, code in pairs}
