"""A split whose rows stay where they lie: what tells its rows apart is read once and kept, pictures and sounds are not.

So a benchmark can be trained and scored on rows that were never downloaded whole.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from ..batching.order import AsStored, GlobalBatches
from ..cache.store import is_intact, load_or_build_table
from ..part import Part
from ..remote.prefetch import prefetch_tasks
from ..split import Split
from .columns import is_streamed
from .epoch import Share
from .open import find_manifest_source, stream
from .part import StreamedPart

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 256
"""Of a global batch; blocks of them are read ahead within the memory of a stream."""

_CARRIED = ("weight", "group", "severity")


@dataclass(frozen=True)
class StreamedSplit(Split):
    """A split read at `address`, in which `{part}` stands for a part's name. Its parts have every column but the inputs
    that are streamed; these are read from `stream(part)`. Without an address, parts are those kept in the cache."""

    address: str = ""

    @classmethod
    def at(cls, manifest: Manifest, address: str) -> StreamedSplit:
        """The split of a frozen manifest at an address; nothing of it is read yet."""
        import pyarrow as pa

        return cls(manifest, find_manifest_source(manifest), pa.table({}), pa.table({}), address)

    def stream(self, name: str) -> StreamedPart:
        """A part as a stream; `FarshiftError` says where an address has no place for the part's name."""
        if name not in self._streams:
            try:
                at = self.address.replace("{part}", name)
                self._streams[name] = stream(self.manifest.full_name, name, at)
            except FarshiftError as error:
                if "{part}" in self.address:
                    raise
                raise FarshiftError(
                    f"{error} (an export holds one part: where each part has an address of its own, write {{part}} in "
                    "the place of its name)"
                ) from error
        return self._streams[name]

    @cached_property
    def _streams(self) -> dict[str, StreamedPart]:
        return {}

    def kept_at(self, name: str) -> Path:
        """Where the cache keeps what tells a part's rows apart."""
        of = self.manifest
        shape = self.source.cached_at.stem.rpartition("-")[2]
        return get_cache_root() / "splits" / f"{of.name.replace('/', '-')}-{of.identity[:16]}-{name}-{shape}-told.arrow"

    def is_kept(self, name: str) -> bool:
        """Whether a part can be told without its stream."""
        return is_intact(self.kept_at(name))

    def part(self, name: str) -> Part:
        """A part without the inputs that are streamed."""
        if name not in self.parts:
            raise UnknownName(f"part of {self.manifest.full_name}", name, self.parts)
        if name not in self._light_parts:
            rows = load_or_build_table(self.kept_at(name), lambda: _read_light_table(self.stream(name)))
            carried = {key: rows[f"/{key}"].to_numpy() for key in _CARRIED if f"/{key}" in rows.column_names}
            own = self.manifest, self.source, rows, _make_assignment(rows, name, carried)
            self._light_parts[name] = Split(*own).part(name)
        return self._light_parts[name]

    @cached_property
    def _light_parts(self) -> dict[str, Part]:
        return {}


def _read_light_table(part: StreamedPart) -> pa.Table:
    """Every column of a part but the inputs that are streamed; what its manifest says of a row under names that no
    field has (`/weight`)."""
    import pyarrow as pa

    table = read_into_memory(part, select_light_fields(part.known.schema)).source
    for key, values in part.known.row_metadata.items():
        table = table.append_column(f"/{key}", pa.array(values))
    if (override := part.known.override) is not None:
        table = table.append_column("/label", pa.array(override.data, mask=np.ma.getmaskarray(override)))
    return table


def _make_assignment(rows: pa.Table, name: str, carried: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    columns: dict[str, Any] = {"part": [name] * rows.num_rows, "place": np.arange(rows.num_rows), **carried}
    table = pa.table(columns)
    return table.append_column("label", rows["/label"]) if "/label" in rows.column_names else table


def select_light_fields(schema: Schema) -> tuple[str, ...]:
    """The fields that are kept: all but inputs that a stream gives as they are asked for."""
    return tuple(field.name for field in schema.fields if not (field.role == "input" and is_streamed(field)))


def read_into_memory(part: StreamedPart, columns: tuple[str, ...]) -> Part:
    """A streamed part's rows with these columns in memory; each row is held to the manifest as it is read."""
    import pyarrow as pa

    cut = GlobalBatches(len(part), _ROWS, 0, 1, False)
    share = Share(part, cut, AsStored(), cut.steps(0, 0, 1), columns, "str", part.verify)
    fields = {name: part.known.schema[name].arrow() for name in columns}
    pieces = list(_iterate_pieces(share, columns, len(part)))
    empty = pa.schema({"row_id": pa.uint64(), **fields}).empty_table()
    table = pa.concat_tables(pieces) if pieces else empty
    return replace(part.known, source=table.combine_chunks(), source_indices=np.arange(len(part)))


def _iterate_pieces(share: Share, columns: tuple[str, ...], rows: int) -> Iterator[pa.Table]:
    known, done = share.part.known, 0
    with closing(prefetch_tasks(share.tasks(), share.part.memory)) as blocks:
        for block in blocks:
            yield block.part.source.select(["row_id", *columns])
            done += len(block.part)
            report_progress(f"reading {known.split}, {known.name}", done, rows)


def remove_secrets(address: str) -> str:
    """An address as a run card may say it: without credentials and query, and of a folder here its name alone."""
    if address.startswith("hf://"):
        return address
    if not address.startswith(("http://", "https://")):
        tail_length = 2 if "{part}" in address.rpartition("/")[2] else 1
        return "/".join(Path(address).expanduser().absolute().parts[-tail_length:])
    at = urlsplit(address)
    return urlunsplit((at.scheme, at.netloc.rpartition("@")[2], at.path, "", ""))
