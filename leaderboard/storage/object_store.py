"""The files of a board in an object store (`s3://bucket/folder`, `gs://..`, anything that fsspec has a driver for), so
that several machines can share one board.

An object is written whole or not at all, and an object that a record names is never written again. Keys and endpoints
are read from the environment by the store's driver (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL` ..).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, FarshiftError, MissingExtra, Unavailable, get_first_line
from .board_files import find_path_problem

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_EXTRAS = {"s3": "s3", "s3a": "s3"}
_NOT_STORES = {"", "file", "local", "http", "https", "zip", "tar", "git", "github", "data", "reference"}


class ObjectStore:
    """The files below a URL, such as `s3://bucket/board`. Raises `FarshiftError` if it is not the URL of a writable
    store, and `MissingExtra` if its driver is not installed."""

    def __init__(self, url: str) -> None:
        protocol, _, rest = url.rpartition("://")
        if protocol in _NOT_STORES or not rest.strip("/"):
            raise FarshiftError(f"{url}: not an object store's URL; use one such as s3://BUCKET/FOLDER")
        if "@" in rest or "?" in rest:
            raise FarshiftError("the store's URL contains a key: set keys in the environment instead")
        self.url, self._protocol, self._root = url.rstrip("/"), protocol, rest.rstrip("/")
        self._files  # noqa: B018 - report a missing driver before anything is created

    @cached_property
    def _files(self) -> AbstractFileSystem:
        from fsspec import filesystem

        try:
            # Do not cache listings: other machines write too.
            return filesystem(self._protocol, use_listings_cache=False, skip_instance_cache=True)
        except ImportError as error:
            if extra := _EXTRAS.get(self._protocol):
                raise MissingExtra(f"a board's files at {self.url}", extra) from error
            raise FarshiftError(f"{self.url}: its driver is not installed: {get_first_line(error)}") from error
        except ValueError as error:
            raise FarshiftError(f"{self.url}: fsspec has no driver for {self._protocol}://") from error

    def put(self, path: str, content: bytes) -> None:
        """Write a whole file, replacing an existing one. Raises `Unavailable` if the store cannot be written to."""
        with self._plainly(path):
            self._files.pipe_file(self._make_key(path), content)

    def get(self, path: str, limit: int) -> bytes | None:
        """The content of a file; None if it does not exist. Raises `BadData` if it has more than `limit` bytes, and
        `Unavailable` if the store does not respond."""
        key = self._make_key(path)
        with self._plainly(path):
            try:
                size = int(self._files.info(key)["size"])
                if size > limit:
                    raise BadData(f"{self.url}/{path} has {size} bytes; at most {limit} are accepted")
                content: bytes = self._files.cat_file(key)
            except FileNotFoundError:
                return None
        return content

    def send(self, path: str, file: Path) -> None:
        """Upload a local file, whole, as `put` does, without loading it into memory."""
        with self._plainly(path):
            self._files.put_file(str(file), self._make_key(path))

    def fetch(self, path: str, file: Path) -> bool:
        """Download a file to a local path; False if it does not exist. Raises `Unavailable` like `get`."""
        with self._plainly(path):
            try:
                self._files.get_file(self._make_key(path), str(file))
            except FileNotFoundError:
                return False
        return True

    def delete(self, path: str) -> None:
        """Delete a file if it exists."""
        with self._plainly(path):
            try:
                self._files.rm_file(self._make_key(path))
            except FileNotFoundError:
                return

    def paths(self, folders: set[str]) -> list[str]:
        """The files in some folders, sorted."""
        keys = []
        for folder in sorted(folders):
            with self._plainly(folder):
                try:
                    keys += [str(path) for path in self._files.find(f"{self._root}/{folder}")]
                except FileNotFoundError:
                    continue
        return sorted(path.partition(f"{self._root}/")[2] for path in keys)

    def _make_key(self, path: str) -> str:
        if problem := find_path_problem(path):
            raise ValueError(f"a record {problem}")
        return f"{self._root}/{path}"

    @contextmanager
    def _plainly(self, path: str) -> Iterator[None]:
        """Turn a driver's errors into one line with the URL."""
        try:
            yield
        except (FarshiftError, FileNotFoundError):
            raise
        except Exception as error:
            # Of a disk, a network or a driver (botocore's, aiohttp's, google's ..), and not a programming error.
            of_store = type(error).__module__.partition(".")[0] not in ("builtins", "farshift")
            if not of_store and not isinstance(error, OSError):
                raise
            raise Unavailable(f"{self.url}/{path} cannot be reached: {get_first_line(error, 200)}") from error


def open_file_store(card: dict[str, Any]) -> ObjectStore | None:
    """The object store of a board's files, from its card; None if they are in its folder."""
    url = card.get("files")
    return None if url is None else ObjectStore(str(url))
