"""A split that is not downloaded: all columns except images and audio are read once and cached.

Thus models can be trained and scored on a benchmark that was never downloaded completely.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from ...core.errors import FarshiftError, UnknownName
from ...core.files import get_cache_root
from ...core.progress import report_progress
from ...splits.manifest import Manifest
from ...splits.schema import Schema
from ..cache.store import is_intact, load_or_build_table
from ..part import Part
from ..split import Split
from .columns import is_streamed
from .open import find_manifest_source, stream
from .part import StreamedPart

if TYPE_CHECKING:
    import pyarrow as pa

_CARRIED = ("weight", "group", "severity")


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

    def kept_at(self, name: str) -> Path:
        """Return the cache path of a part's columns that are not streamed."""
        of = self.manifest
        shape = self.source.cached_at.stem.rpartition("-")[2]
        return get_cache_root() / "splits" / f"{of.name.replace('/', '-')}-{of.identity[:16]}-{name}-{shape}-told.arrow"

    def is_kept(self, name: str) -> bool:
        """Whether a part's columns are cached, so that its stream is not needed."""
        return is_intact(self.kept_at(name))

    def part(self, name: str) -> Part:
        """Return a part without the streamed inputs."""
        import pyarrow as pa

        if name not in self.parts:
            raise UnknownName(f"part of {self.manifest.full_name}", name, self.parts)
        if name not in self._light_parts:
            rows = load_or_build_table(self.kept_at(name), lambda: _read_light_table(self.stream(name)))
            carried = {key: rows[f"/{key}"].to_numpy() for key in _CARRIED if f"/{key}" in rows.column_names}
            assigned = pa.table({"part": [name] * rows.num_rows, "place": np.arange(rows.num_rows), **carried})
            if "/label" in rows.column_names:
                assigned = assigned.append_column("label", rows["/label"])
            self._light_parts[name] = Split(self.manifest, self.source, rows, assigned).part(name)
        return self._light_parts[name]


def _read_light_table(part: StreamedPart) -> pa.Table:
    """Every column of a part except the streamed inputs; the manifest's columns have names that no field has
    (`/weight`)."""
    import pyarrow as pa

    table = read_into_memory(part, select_light_fields(part.schema)).source
    for key, values in part.known.row_metadata.items():
        table = table.append_column(f"/{key}", pa.array(values))
    if (override := part.known.override) is not None:
        table = table.append_column("/label", pa.array(override.data, mask=np.ma.getmaskarray(override)))
    return table


def select_light_fields(schema: Schema) -> tuple[str, ...]:
    """Return the fields that are cached: all except inputs that are streamed on demand."""
    return tuple(field.name for field in schema.fields if not (field.role == "input" and is_streamed(field)))


def read_into_memory(part: StreamedPart, columns: tuple[str, ...]) -> Part:
    """Read these columns of a streamed part into memory; each row is verified against the manifest."""
    import pyarrow as pa

    types: dict[str, Any] = {"row_id": pa.uint64(), **{name: part.schema[name].arrow() for name in columns}}
    pieces, done = [pa.schema(types).empty_table()], 0
    with closing(part.read_blocks(columns)) as blocks:
        for block in blocks:
            pieces.append(block.select(list(types)))
            done += block.num_rows
            report_progress(f"reading {part.split}, {part.name}", done, len(part))
    return replace(part.known, source=pa.concat_tables(pieces).combine_chunks(), source_indices=np.arange(len(part)))


def remove_secrets(address: str) -> str:
    """Return an address for a run card: without credentials and query, and only the name of a local folder."""
    if address.startswith("hf://"):
        return address
    if not address.startswith(("http://", "https://")):
        tail_length = 2 if "{part}" in address.rpartition("/")[2] else 1
        return "/".join(Path(address).expanduser().absolute().parts[-tail_length:])
    at = urlsplit(address)
    return urlunsplit((at.scheme, at.netloc.rpartition("@")[2], at.path, "", ""))
