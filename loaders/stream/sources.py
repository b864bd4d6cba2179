"""Resolve the source of a stream to files: in a folder, at web addresses, or on the Hub.

A revision on the Hub is resolved to its commit once; files are then listed and read at that commit, whose content never
changes, even if a branch moves during an epoch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from ...core.errors import FarshiftError, Unavailable
from ..files.patterns import expand_numbers, find_files, is_hidden, is_pattern, select_paths
from ..mirrors.hub import find_commit, list_data_set
from .files import File, FolderFile, HttpFile

Source = str | Path | Sequence[str | Path]
"""A folder, a file or a pattern of files (`files/patterns.py`), local, on the web or on the Hub; or several of them."""

MANIFEST = "manifest.json"
_INDEX = ".index.parquet"
_HUB_ADDRESS = re.compile(r"hf://datasets/([^/@]+/[^/@]+)(?:@(refs/(?:convert|pr)/[^/]+|[^/]+))?(?:/(.*))?")


@dataclass(frozen=True)
class ExportFolder:
    """A folder that `Part.to_webdataset` wrote: `file(name, size)` opens one of its files, `size` None if unknown."""

    name: str
    file: Callable[[str, int | None], File]


def resolve_location(source: Source) -> ExportFolder | tuple[File, ...]:
    """Find the export, or else the Parquet files, at `source`. Raises `Unavailable` if there are none, `FarshiftError`
    for other files."""
    locations = [str(location) for location in ([source] if isinstance(source, str | Path) else source)]
    for location in locations:
        if any(letter < " " for letter in location):
            raise FarshiftError(f"{location!r} is not a path or address: it has control characters")
    get_commit = cache(find_commit)  # all paths of a revision have the same commit
    if isinstance(source, str | Path) and (export := _find_export(str(source), get_commit)) is not None:
        return export
    where = ", ".join(locations)
    files = tuple(file for location in locations for file in _open_files(location, get_commit))
    if not files:
        raise Unavailable(f"{where}: there are no files")
    if not all(_is_parquet(file.name) for file in files):
        raise FarshiftError(
            f"{where} is not a source of rows: give a folder that to_webdataset wrote, or files that all end in "
            ".parquet"
        )
    return files


def _find_export(source: str, get_commit: Callable[[str, str], str]) -> ExportFolder | None:
    """The export at `source`, if it looks like one."""
    if _is_parquet(source):
        return None
    if source.startswith("hf://"):
        folder, listed = _list_hub_files(source, get_commit)
        files = {path.rpartition("/")[2]: file for path, file in listed.items()}

        def find_file(name: str, size: int | None) -> File:
            if name not in files:
                raise Unavailable(f"{folder} has no file {name}")
            return files[name]

        return ExportFolder(folder, find_file) if MANIFEST in files else None
    if _is_url(source):

        def open_web_file(name: str, size: int | None) -> File:
            url = f"{source.rstrip('/')}/{quote(name)}"
            return HttpFile.open(url) if size is None else HttpFile(url, size)

        return ExportFolder(source, open_web_file)
    path = _expand_path(source)
    return ExportFolder(source, lambda name, _: FolderFile.open(path / name)) if (path / MANIFEST).is_file() else None


def _open_files(source: str, get_commit: Callable[[str, str], str]) -> Iterator[File]:
    """The files with rows at `source`."""
    if source.startswith("hf://"):
        _, files = _list_hub_files(source, get_commit)
        yield from (file for path, file in files.items() if _is_parquet(path))
    elif _is_url(source):
        if "*" in urlsplit(source).path:
            raise FarshiftError(
                f"{source}: files on a web server cannot be listed: give their numbers, as in rows-{{000..011}}.parquet"
            )
        yield from map(HttpFile.open, expand_numbers(source))
    else:
        path = _expand_path(source)
        matching: Iterable[Path] = [path]
        if path.is_dir():
            children = sorted(path.iterdir())
            matching = (child for child in children if _is_parquet(child.name) and not is_hidden(child.name))
        elif is_pattern(source):
            matching = find_files(str(path), Path())
        yield from map(FolderFile.open, matching)


def _expand_path(source: str) -> Path:
    try:
        return Path(source).expanduser()
    except RuntimeError as error:
        raise FarshiftError(f"{source}: there is no such user's folder") from error


def _is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def _is_parquet(name: str) -> bool:
    """Whether a file has rows; an export's index has none."""
    path = urlsplit(name).path if _is_url(name) else name
    return path.endswith(".parquet") and not path.endswith(_INDEX)


def _list_hub_files(address: str, get_commit: Callable[[str, str], str]) -> tuple[str, dict[str, HttpFile]]:
    """The address at the commit of its revision (by default `main`), and the files that match its path or pattern, or
    are in the folder that it names, by path in the data set. Lists no folder but that, or the pattern's last without a
    wildcard."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    match = _HUB_ADDRESS.fullmatch(address)
    if match is None:
        raise FarshiftError(
            f"{address} is not an address of files: use hf://datasets/owner/name@revision/path/*.parquet"
        )
    repository, pattern = match[1], (match[3] or "").rstrip("/")
    commit = get_commit(repository, unquote(match[2] or "main"))
    name = f"hf://datasets/{repository}@{commit[:12]}/{pattern}"
    names_files = is_pattern(pattern) or _is_parquet(pattern)
    listed = {} if names_files else list_data_set(repository, commit, pattern)
    if not listed:
        folders = pattern.split("/")[:-1]
        folder = "/".join(takewhile(lambda step: not is_pattern(step), folders))
        listed = list_data_set(repository, commit, folder)
    if not pattern or any(path.startswith(f"{pattern}/") for path in listed):
        pattern = f"{pattern}/*".lstrip("/")
    headers = build_hf_headers(library_name="farshift")
    files: dict[str, HttpFile] = {}
    for path in select_paths(listed, pattern):
        url = hf_hub_url(repository, path, repo_type="dataset", revision=commit)
        files[path] = HttpFile(url, listed[path].size, None, headers, f"{repository}@{commit}/{path}")
    return name, files
