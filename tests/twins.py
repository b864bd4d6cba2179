"""Small twins of the package's definitions: the same reader, options and rule, over a few made-up rows in the real layout.

Only what depends on the size is other: counts, checksums, and the shapes and numbers that a test names itself.
"""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import tomllib
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tomli_w
from farshift.benchmarks.benchmark import load_benchmarks
from farshift.core.plugins import PACKAGE
from farshift.loaders.split import Split, open_split

_HEAD = "twin_"


def twin(
    split: str,
    place: Path,
    *,
    options: Mapping[str, Any] | None = None,
    types: Mapping[str, str] | None = None,
    mirrors: Mapping[str, list[dict[str, Any]]] | None = None,
    distribution: int = 0,
    distinct: Mapping[str, int] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> str:
    """Write the twin of a split and its source to `place`, a home for `FARSHIFT_PATH`; returns the twin's name.

    options: replace those of the reader. types: of fields, by name. mirrors: of files and trees, by their name; none
    without it. distinct: replaces the counts; without it the rows are held to none of them but those that do not depend
    on the size.
    """
    split, _, version = split.partition("@")
    folder = PACKAGE / "splits/manifests" / split / f"v{version or 1}"
    rule = tomllib.loads((folder / "split.toml").read_text("utf-8"))
    source = tomllib.loads((PACKAGE / f"loaders/sources/{rule['source']['name']}.toml").read_text("utf-8"))
    source["name"] = _HEAD + source["name"]
    for field in source["fields"]:
        field["type"] = (types or {}).get(field["name"], field["type"])
    item = source["distributions"][distribution]
    item["options"] = {**item.get("options", {}), **(options or {})}
    for pin in [*item.get("files", []), *item.get("trees", [])]:
        for known in ("sha256", "bytes", "md5", "tree", "files"):
            pin.pop(known, None)
        pin["mirrors"] = (mirrors or {}).get(pin["name"], [])
    source["distributions"] = [item]
    source["expected"] = {"reference": "made for a test", "distinct": dict(distinct or {})}
    for known in ("rows", "digest"):
        source.pop(known, None)
    rule |= {"name": _HEAD + rule["name"], "version": 1}
    rule["source"] = {"name": source["name"]}
    rule["parameters"] = {**rule["parameters"], **(parameters or {})}
    for known in ("published", "parts", "identity", "format"):
        rule.pop(known, None)
    _write(place / f"loaders/sources/{source['name']}.toml", source)
    _write(place / f"splits/manifests/{rule['name']}/v1/split.toml", rule)
    return str(rule["name"])


def pulled(name: str, data: Path | None = None) -> tuple[Split, dict[str, int]]:
    """The split, pulled, and the rows of each part."""
    split = open_split(name, () if data is None else (data,))
    return split, {part: pin.rows for part, pin in split.manifest.definition.parts.items()}


def values(split: Split, part: str, field: str) -> list[Any]:
    """A field's values in a part, sorted."""
    return sorted(split.part(part).numpy([field])[field].tolist())


def picture(number: int, size: int = 4) -> bytes:
    """A small PNG, another for each number."""
    colour = bytes(((number * 7) % 256, (number * 13 + number // 256) % 256, (number // 3) % 256))
    lines = b"".join(b"\0" + colour * size for _ in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    body = chunk(b"IHDR", header) + chunk(b"tEXt", b"n\0%d" % number) + chunk(b"IDAT", zlib.compress(lines))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


def csv(head: str, rows: Iterable[Iterable[Any]], separator: str = ",") -> bytes:
    """A CSV with a line of names. No value needs quotes."""
    lines = [head.replace(",", separator), *(separator.join(map(str, row)) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def laid(folder: Path, files: Mapping[str, bytes]) -> Path:
    """The files, unpacked below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def tar(files: Mapping[str, bytes], head: str = "", mode: str = "w:gz") -> bytes:
    """The files as a tar, below `head`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(head + name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """The files as a zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def gz(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def npy(array: Any) -> bytes:
    """An array as a .npy file."""
    import numpy as np

    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tomli_w.dumps(content).encode())


def measured(split: str, name: str, place: Path, **changes: Any) -> str:
    """Write the twin of the benchmark of `split`, over the twin `name`, to `place`; returns its name."""
    known = next(item for item in load_benchmarks().values() if item.definition.split == f"{split}@1")
    definition = known.definition.model_dump(exclude_defaults=True) | {"name": name, "split": f"{name}@1"} | changes
    _write(place / f"benchmarks/definitions/{name.replace('/', '-')}.toml", definition)
    return name
