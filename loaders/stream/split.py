"""A split that is not downloaded: images and audio are read on demand, all other columns once, into the cache.

Thus models can be trained and scored on a benchmark that was never downloaded completely.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError, UnknownName
from ...core.files import get_cache_root
from ...splits.manifest import Manifest
from ...splits.schema import Schema
from ..batching.columns import join_chunks
from ..batching.encoded import EncodedFiles
from ..cache.store import is_intact, load_or_build_table
from ..part import Part
from ..split import Split
from .open import find_manifest_source, stream
from .part import StreamedPart

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 256
"""The number of files read at once in a sequential pass."""


@dataclass(frozen=True)
class StreamedSplit(Split):
    """A split at `address`, in which `{part}` is replaced by a part's name. Its parts have every column except the
    streamed inputs, which are read from `stream(part)`. Without an address, only cached parts are available."""

    address: str = ""

    @classmethod
    def at(cls, manifest: Manifest, address: str) -> StreamedSplit:
        """Return the split of a frozen manifest at an address, without reading it."""
        import pyarrow as pa

        return cls(manifest, find_manifest_source(manifest), pa.table({}), pa.table({}), address)

    def stream(self, name: str) -> StreamedPart:
        """Return a part as a stream. Raises `FarshiftError` with a hint if the address lacks `{part}`."""
        if name not in self._streams:
            try:
                self._streams[name] = stream(self.manifest.full_name, name, self.address.replace("{part}", name))
            except FarshiftError as error:
                if "{part}" in self.address:
                    raise
                raise FarshiftError(
                    f"{error} (an export has one part: if each part has its own address, write {{part}} in place of "
                    "its name)"
                ) from error
        return self._streams[name]

    @cached_property
    def _streams(self) -> dict[str, StreamedPart]:
        return {}

    @cached_property
    def _light_parts(self) -> dict[str, Part]:
        return {}

    def _kept_at(self, name: str) -> Path:
        of, shape = self.manifest, self.source.cached_at.stem.rpartition("-")[2]
        return get_cache_root() / "splits" / f"{of.name.replace('/', '-')}-{of.identity[:16]}-{name}-{shape}-told.arrow"

    def is_kept(self, name: str) -> bool:
        """Whether a part's columns are cached, so that its stream is not needed."""
        return is_intact(self._kept_at(name))

    def part(self, name: str) -> Part:
        """Return a part without the streamed inputs."""
        import pyarrow as pa

        if name not in self.parts:
            raise UnknownName(f"part of {self.manifest.full_name}", name, self.parts)
        if name not in self._light_parts:
            rows = load_or_build_table(self._kept_at(name), lambda: _read_light_table(self.stream(name)))
            # The manifest's columns have names that no field has (`/weight`).
            carried = {column[1:]: rows[column] for column in rows.column_names if column.startswith("/")}
            assigned = pa.table({"part": [name] * rows.num_rows, "place": np.arange(rows.num_rows), **carried})
            self._light_parts[name] = Split(self.manifest, self.source, rows, assigned).part(name)
        return self._light_parts[name]


def _read_light_table(part: StreamedPart) -> pa.Table:
    import pyarrow as pa

    table = part.load(select_light_fields(part.schema), report=True).source
    for key, values in part.row_metadata.items():
        table = table.append_column(f"/{key}", pa.array(values))
    if part.override is not None:
        table = table.append_column("/label", pa.array(part.override.data, mask=np.ma.getmaskarray(part.override)))
    return table


def select_light_fields(schema: Schema) -> tuple[str, ...]:
    """Return the fields that are cached: all except encoded files of inputs, which are streamed on demand."""
    return tuple(field.name for field in schema.fields if not (field.role == "input" and field.item == "bytes"))


def find_streamed_inputs(part: StreamedPart, names: Iterable[str]) -> dict[str, StreamedFiles]:
    """Return the named columns as columns that are read on demand. Raises `FarshiftError` for other columns than
    encoded files."""
    for name in names:
        if part.schema[name].item != "bytes":
            kind = part.schema[name].type
            raise FarshiftError(f"{part!r}: the column {name!r} is {kind}: only images and audio files can be streamed")
    return {name: StreamedFiles(part, name) for name in names}


class StreamedFiles(EncodedFiles):
    """Encoded files of a streamed part: each step reads and verifies the rows that it needs, so that images of shards
    that do not fit on the disk can be trained on."""

    def __init__(self, part: StreamedPart, name: str) -> None:
        self.part, self.name = part, name
        self.places = np.arange(len(part))

    def content(self, index: int) -> memoryview:
        return memoryview(self.contents([index])[0])

    def contents(self, places: Sequence[int] | NDArray[np.int64]) -> list[bytes | memoryview]:
        rows, back = np.unique(np.asarray(places, np.int64), return_inverse=True)  # each is read once
        values = join_chunks(self.part.select(rows).load((self.name,)).source[self.name])
        return [memoryview(values[row].as_buffer()) for row in back.tolist()]

    @cached_property
    def key(self) -> str:
        """By the manifest, against which every row is verified, and the selected rows."""
        rows = blake2b(self.part.row_ids.tobytes(), digest_size=16).hexdigest()
        return f"{self.part.identity}/{self.part.name}/{self.name}/{rows}"

    def _some(self, places: NDArray[np.int64]) -> StreamedFiles:
        return StreamedFiles(self.part.select(places), self.name)

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self), _AT_ONCE):
            yield from map(bytes, self.contents(np.arange(start, min(start + _AT_ONCE, len(self)))))


def remove_secrets(address: str) -> str:
    """Return an address for a run card: without credentials and query, and only the name of a local folder."""
    if address.startswith("hf://"):
        return address
    if not address.startswith(("http://", "https://")):
        tail_length = 2 if "{part}" in address.rpartition("/")[2] else 1
        return "/".join(Path(address).expanduser().absolute().parts[-tail_length:])
    at = urlsplit(address)
    return urlunsplit((at.scheme, at.netloc.rpartition("@")[2], at.path, "", ""))
