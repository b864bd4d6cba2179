"""The catalogue of splits as people look through it: found by words, kind, source, modality, state and licence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..core.errors import UnknownName
from ..core.listings.listing import Listing, has_words
from ..splits.catalogue import list_split_records
from ..splits.manifest import Manifest
from ..splits.schema import Schema
from .acquire.source import find_source, load_sources

MODALITIES = ("array", "audio", "image", "tabular", "text")
STATES = ("definition", "frozen", "pulled")

_FEW = 2
"""So many text columns are a text (a premise and a hypothesis); more are a table."""


@dataclass(frozen=True)
class SplitEntry:
    """A manifest in the catalogue.

    family: the split with all its versions, or all rates and draws of one rule of label noise (`splits/families.py`).
    state: `frozen`; `pulled` where a definition was frozen in the user's home by its first pull; or `definition`. parts
    and weighted_rows: rows by part, the latter with the copies that a published split repeats. modality: `text`,
    `image`, `audio`, `tabular` or `array`. generated: whether the rows are made by a generator, and none was collected.
    """

    name: str
    version: int
    family: str
    kind: str
    source: str
    state: str
    parts: Mapping[str, int]
    weighted_rows: Mapping[str, int]
    identity: str
    title: str
    licence: str
    modality: str
    generated: bool

    @property
    def full_name(self) -> str:
        """The name with its version: `scan/length@1`."""
        return f"{self.name}@{self.version}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def splits(
    search: str = "",
    *,
    kind: str | None = None,
    source: str | None = None,
    modality: str | None = None,
    generated: bool | None = None,
    state: str | None = None,
    licence: str = "",
) -> Listing[SplitEntry]:
    """The splits that fit all that is asked, sorted by name and version. Nothing is downloaded.

    search: words that all stand in a split's name, kind, source, modality, title or licence. generated: True for rows
    that a generator makes, False for data that were collected. licence: part of its text. Raises `UnknownName` for a
    kind, source or modality that there is not.

    >>> import farshift as fs
    >>> [split.full_name for split in fs.splits("optdigits writers", kind="domain")]
    ['optdigits/writers@1']
    >>> fs.splits(kind="length", generated=True)[0].modality
    'text'
    """
    of_sources = list_source_traits()
    check_known_name("source", source, of_sources)
    check_known_name("modality", modality, MODALITIES)
    check_known_name("state", state, STATES)
    entries = []
    for record in list_split_records(kind):
        traits = of_sources.get(record["source"], SourceTraits("", False, ""))
        entry = SplitEntry(**record, modality=traits.modality, generated=traits.generated)
        terms = entry.licence or traits.licence
        texts = (entry.full_name, entry.kind, entry.source, entry.modality, entry.title, traits.title, terms)
        if (
            source in (None, entry.source)
            and modality in (None, entry.modality)
            and generated in (None, entry.generated)
            and state in (None, entry.state)
            and has_words(licence, terms)
            and has_words(search, *texts)
        ):
            entries.append(entry)
    return Listing(entries, "split", _format_entry)


def _format_entry(entry: SplitEntry) -> dict[str, Any]:
    parts = ", ".join(f"{part} {rows:,}" for part, rows in entry.parts.items())
    cells = {"split": entry.full_name, "kind": entry.kind, "state": entry.state, "modality": entry.modality}
    return cells | {"rows": parts, "title": entry.title}


@dataclass(frozen=True)
class SourceTraits:
    """What a listing says of a source."""

    modality: str
    generated: bool
    licence: str
    title: str = ""


def list_source_traits() -> dict[str, SourceTraits]:
    """The traits of every source, by name."""
    return {
        name: SourceTraits(
            infer_modality(source.schema), not source.needs_network, source.definition.licence, source.definition.title
        )
        for name, source in load_sources().items()
    }


def infer_modality(schema: Schema) -> str:
    """What the inputs of a source's rows are: encoded files are pictures or sounds, and so are bytes of two axes and
    more pictures; otherwise numbers beside texts, or many texts, make a table, and other tensors are arrays."""
    inputs = [field for field in schema.fields if field.role == "input"]
    kinds = {field.type for field in inputs}
    if "audio" in kinds:
        return "audio"
    if "image" in kinds or any(field.item == "uint8" and len(field.shape) in (2, 3) for field in inputs):
        return "image"
    if any(field.shape for field in inputs):
        return "array"
    texts = sum(field.type == "string" for field in inputs)
    return "text" if texts == len(inputs) <= _FEW else "tabular"


def has_local_rows(manifest: Manifest) -> bool:
    """Whether a split's rows can be opened without a download: they are in the cache, or made by a generator, whose
    package is there where it needs one."""
    try:
        source = find_source(manifest.definition.source.name)
    except UnknownName:  # of a source that is private elsewhere
        return False
    pinned = manifest.frozen and source.definition.digest == manifest.definition.source.digest
    return pinned and (source.cached_at.is_file() or not (source.needs_network or source.lacks))


def check_known_name(what: str, name: str | None, known: Collection[str]) -> None:
    """`UnknownName` for a name that is asked for, and not known."""
    if name is not None and name not in known:
        raise UnknownName(what, name, known)
