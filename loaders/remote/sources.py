"""Resolve the source of a stream to files: a folder, web addresses, or a path on the Hub."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

from ...core.errors import FarshiftError, Unavailable
from ..files.hidden import is_hidden
from ..files.patterns import expand_numbers, find_files, is_pattern
from . import File
from .folder import FolderFile
from .http import HttpFile
from .hub import HubRevisions

Source = str | Path | Sequence[str | Path]
"""A folder, a file or a pattern of files (`files/patterns.py`), local, on the web or on the Hub; or several of them."""

_INDEX = ".index.parquet"
_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class ExportFolder:
    """A folder that `Part.to_webdataset` wrote: `file(name, size)` opens one of its files, `size` None if unknown."""

    name: str
    file: Callable[[str, int | None], File]


@dataclass(frozen=True)
class Files:
    """Files of one format, `parquet` or `tar`, in order."""

    sort: str
    files: tuple[File, ...]


def resolve_location(source: Source) -> ExportFolder | Files:
    """Find the files at `source`. Raises `Unavailable` if there are none, `FarshiftError` for an unsupported format."""
    revisions = HubRevisions()
    for location in [source] if isinstance(source, str | Path) else source:
        if any(letter < " " for letter in str(location)):
            raise FarshiftError(f"{str(location)!r} is not a path or address: it has control characters")
    if not isinstance(source, str | Path):
        return _classify_files(
            ", ".join(map(str, source)),
            [file for location in source for file in _iterate_files(str(location), revisions)],
        )
    return _find_export(str(source), revisions) or _classify_files(str(source), _iterate_files(str(source), revisions))


def _find_export(source: str, revisions: HubRevisions) -> ExportFolder | None:
    """The export at `source`, if it looks like one."""
    if _find_suffix(source):
        return None
    if source.startswith("hf://"):
        hub_path = revisions.at(source)
        files = {path.rpartition("/")[2]: file for path, file in hub_path.files().items()}
        return (
            ExportFolder(str(hub_path), lambda name, _: _find_file(files, name, str(hub_path)))
            if _MANIFEST in files
            else None
        )
    if _is_url(source):
        return ExportFolder(source, partial(_open_web_file, source.rstrip("/")))
    path = _expand_path(source)
    return ExportFolder(source, lambda name, _: FolderFile.open(path / name)) if (path / _MANIFEST).is_file() else None


def _open_web_file(address: str, name: str, size: int | None) -> File:
    url = f"{address}/{quote(name)}"
    return HttpFile.open(url) if size is None else HttpFile(url, size)


def _find_file(files: dict[str, HttpFile], name: str, where: str) -> File:
    if name not in files:
        raise Unavailable(f"{where} has no file {name}")
    return files[name]


def _iterate_files(source: str, revisions: HubRevisions) -> Iterator[File]:
    """The files with rows at `source`."""
    if source.startswith("hf://"):
        yield from (file for path, file in revisions.at(source).files().items() if _find_suffix(path))
    elif _is_url(source):
        if "*" in urlsplit(source).path:
            raise FarshiftError(
                f"{source}: files on a web server cannot be listed: give their numbers, as in shard-{{000..011}}.tar"
            )
        yield from map(HttpFile.open, expand_numbers(source))
    else:
        path = _expand_path(source)
        if path.is_dir():
            matching = [
                child for child in sorted(path.iterdir()) if _find_suffix(child.name) and not is_hidden(child.name)
            ]
        else:
            matching = find_files(str(path), Path()) if is_pattern(source) else [path]
        yield from map(FolderFile.open, matching)


def _expand_path(source: str) -> Path:
    try:
        return Path(source).expanduser()
    except RuntimeError as error:
        raise FarshiftError(f"{source}: there is no such user's folder") from error


def _classify_files(source: str, files: Iterator[File] | list[File]) -> Files:
    all_files = tuple(files)
    sorts = {_find_suffix(file.name) for file in all_files}
    if not all_files:
        raise Unavailable(f"{source}: there are no files")
    if len(sorts) != 1 or not sorts <= {"parquet", "tar"}:
        raise FarshiftError(
            f"{source} is not a source of rows: give a folder that to_webdataset wrote, or files that all end in "
            ".parquet or all in .tar"
        )
    return Files(sorts.pop(), all_files)


def _is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def _find_suffix(name: str) -> str:
    """The format of a file by its suffix, "" if unknown or for an export's index, which has no rows."""
    path = urlsplit(name).path if _is_url(name) else name
    sorts = ("parquet", "tar") if not path.endswith(_INDEX) else ()
    return next((sort for sort in sorts if path.endswith(f".{sort}")), "")
