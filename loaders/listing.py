"""Search the catalogue of splits by words, kind, source, modality, state and licence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..core.errors import UnknownName
from ..core.listings import Listing, has_words
from ..splits.catalogue import list_split_records
from ..splits.manifest import KIND_WORDS, Manifest
from ..splits.schema import Schema
from .acquire.source import find_source, load_sources

MODALITIES = ("array", "audio", "image", "tabular", "text")
MODALITY_WORDS = {"audio": "audio sound", "image": "image picture", "tabular": "tabular table"}
"""What a modality is called elsewhere: words by which a search finds it."""
STATES = ("definition", "frozen", "pulled")

_FEW = 2
"""Up to this many text columns are a text task (a premise and a hypothesis); more are a table."""


@dataclass(frozen=True)
class SplitEntry:
    """A split in the catalogue.

    family: the split with all its versions, or all rates and draws of one rule of label noise (`splits/catalogue.py`).
    state: `frozen`; `pulled` if a definition was frozen in the user's home by its first pull; or `definition`. parts
    and weighted_rows: rows by part, the latter with the copies that a published split repeats. modality: `text`,
    `image`, `audio`, `tabular` or `array`. generated: whether all rows are made by a generator. references: the papers
    of the split; citation: that of its source.
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
    references: list[str]
    modality: str
    generated: bool
    citation: str

    @property
    def full_name(self) -> str:
        """The name with its version: `scan/length@1`."""
        return f"{self.name}@{self.version}"

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain JSON values."""
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
    """Return the splits that match all criteria, sorted by name and version. Nothing is downloaded.

    search: words that all occur in a split's name, kind, source, modality, title, licence, references or citation (a
    paper's title, its arXiv number). generated: True for generated rows, False for collected data. licence: a part of
    its text. Raises `UnknownName` for an unknown kind, source or modality.

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
        traits = of_sources.get(record["source"], UNKNOWN_SOURCE)
        record["licence"] = record["licence"] or traits.licence
        entry = SplitEntry(**record, modality=traits.modality, generated=traits.generated, citation=traits.citation)
        texts = [entry.full_name, entry.source, entry.title, traits.title, entry.licence, *entry.references]
        texts += [KIND_WORDS[entry.kind], MODALITY_WORDS.get(entry.modality, entry.modality), entry.citation]
        if (
            source in (None, entry.source)
            and modality in (None, entry.modality)
            and generated in (None, entry.generated)
            and state in (None, entry.state)
            and has_words(licence, entry.licence)
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
    """The traits of a source that a listing shows."""

    modality: str
    generated: bool
    licence: str
    title: str = ""
    citation: str = ""


UNKNOWN_SOURCE = SourceTraits("", False, "")


def list_source_traits() -> dict[str, SourceTraits]:
    """Return the traits of every source, by name."""
    return {
        name: SourceTraits(
            infer_modality(source.schema),
            not source.needs_network,
            source.definition.licence,
            source.definition.title,
            source.definition.citation,
        )
        for name, source in load_sources().items()
    }


def infer_modality(schema: Schema) -> str:
    """Infer the modality of a source's inputs: encoded files are images or audio, and uint8 tensors of two or more axes
    are images; otherwise numbers with texts, or many texts, are a table, and other tensors are arrays."""
    inputs = [field for field in schema.fields if field.role == "input"]
    kinds = {field.type for field in inputs}
    if "audio" in kinds:
        return "audio"
    if "image" in kinds or any(field.item == "uint8" and len(field.shape) in (2, 3) for field in inputs):
        return "image"
    if any(field.shape for field in inputs):
        return "array"
    texts = sum(field.item == "string" for field in inputs)
    return "text" if texts == len(inputs) <= _FEW else "tabular"


def has_local_rows(manifest: Manifest) -> bool:
    """Whether a split's rows can be opened without a download: they are cached, or made by a generator whose optional
    package, if it needs one, is installed."""
    try:
        source = find_source(manifest.definition.source.name)
    except UnknownName:  # a source that is private to another machine
        return False
    pinned = manifest.frozen and source.definition.digest == manifest.definition.source.digest
    return pinned and (source.cached_at.is_file() or not (source.needs_network or source.lacks))


def check_known_name(what: str, name: str | None, known: Collection[str]) -> None:
    """Raise `UnknownName` for a name that is given and not known."""
    if name is not None and name not in known:
        raise UnknownName(what, name, known)
