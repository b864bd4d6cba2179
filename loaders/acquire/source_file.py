"""Choose the file that pins a source of the user's own data: an existing one, a new one, or a replacement of one that
an earlier build wrote. Nothing is written here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ...core.errors import BadDefinition, shorten_list
from ...core.progress import log_message
from ...splits.catalogue import list_own_manifests
from ...splits.manifest import Manifest
from .source import Source, SourceDefinition, read_source

_MARK = re.compile(rb"# Written by `[^`]*`, which replaces it unless it was edited; sha256 ([0-9a-f]{64})\n")
"""The first line of a file that a build writes into the user's folders, and may replace as long as it is unedited: it
has the digest of the rest."""


@dataclass(frozen=True)
class SplitName:
    """The split for which a source is pinned."""

    name: str
    version: int

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class PinnedSource:
    """A source whose rows are pinned and cached. `content` is to be written to its path, or None if the existing file
    is equivalent. `folders`: where its files were found."""

    source: Source
    content: bytes | None = None
    folders: tuple[Path, ...] = ()


def find_pinned(draft: SourceDefinition, folder: Path, split: SplitName | None) -> PinnedSource | None:
    """Return the source in `folder` that was built from the same data in the same way, under the draft's name or, for a
    later version of a split, under the name of an earlier build."""
    candidates = [folder / f"{draft.name}.toml"]
    if split and split.version > 1:
        candidates += sorted(folder.glob(f"{draft.name}_v*.toml"))
    for path in candidates:
        if path.exists():
            known = read_source(path)
            pinned = {"name": draft.name, "rows": 0, "digest": "", "class_names": draft.class_names}
            if known.definition.model_copy(update=pinned) == draft:
                return PinnedSource(known)
    return None


def choose_file(pinned: SourceDefinition, folder: Path, split: SplitName | None) -> PinnedSource:
    """Choose the file of a source whose rows have been pinned. Raises `BadDefinition` if it would replace a file on
    which a frozen split depends, or which no build wrote. A later version of a split gets a source of another name
    (`photos_v2`) beside the one on which the earlier version depends."""
    path = folder / f"{pinned.name}.toml"
    if not path.exists():
        return _make_pinned_source(pinned, path)
    known = read_source(path)
    same = _has_same_rows(known.definition, pinned)
    standing = [] if same else _find_dependent_splits(known)
    if not standing and is_unedited(path):
        log_message(f"{path} {'pins the same rows of other files' if same else 'pinned other data'}: it is rewritten")
        return _make_pinned_source(pinned, path)
    if same:
        log_message(f"{path} was written or edited by hand, and gives the same rows: it is not changed")
        return PinnedSource(known)
    if not standing:
        raise BadDefinition(
            f"{path} defines {pinned.name!r} by other data, and was written or edited by hand: delete it, or rename "
            "this source by source = { name = .. }"
        )
    full_names = [manifest.full_name for manifest in standing]
    later = f"{pinned.name}_v{split.version}" if split else ""
    if split and split.version > 1 and str(split) not in full_names and not pinned.name.endswith(f"_v{split.version}"):
        chosen = choose_file(pinned.model_copy(update={"name": later}), folder, split)
        log_message(
            f"{shorten_list(full_names)} {'depends' if len(standing) == 1 else 'depend'} on the data as pinned in "
            f"{path.name}: the source of {split} is {later}; to set this name in the draft, write "
            f'source = {{ name = "{later}" }}'
        )
        return chosen
    folders = shorten_list([str(manifest.folder) for manifest in standing])
    if split and str(split) in full_names:
        newest = max(known.definition.version for known in list_own_manifests(split.name))
        raise BadDefinition(
            f"{split} is frozen on other data, and a frozen version never changes: set `version` to {newest + 1}, or "
            f"delete {folders}"
        )
    raise BadDefinition(
        f"{path} defines {pinned.name!r} by other data, on which {shorten_list(full_names)} "
        f"{'depends' if len(standing) == 1 else 'depend'}: rename this source by source = {{ name = .. }}, "
        f"increase `version`, or delete {folders}"
    )


def _make_pinned_source(pinned: SourceDefinition, path: Path) -> PinnedSource:
    import tomli_w

    content = tomli_w.dumps(pinned.model_dump(exclude_defaults=True)).encode()
    return PinnedSource(Source(pinned, path), mark_generated(content))


def _has_same_rows(first: SourceDefinition, other: SourceDefinition) -> bool:
    """Whether splits over one source hold for the other: equal rows, fields and class names."""

    def list_facts(its: SourceDefinition) -> list[object]:
        maps = [distribution.options.get("maps") for distribution in its.distributions]
        return [its.version, its.digest, its.fields, its.class_names, maps]

    return list_facts(first) == list_facts(other)


def _find_dependent_splits(known: Source) -> list[Manifest]:
    """The frozen splits that depend on a source."""
    pin = (known.name, known.definition.digest)
    frozen = [manifest for manifest in list_own_manifests() if manifest.frozen]
    return [each for each in frozen if (each.definition.source.name, each.definition.source.digest) == pin]


def mark_generated(content: bytes) -> bytes:
    """Prepend to a TOML file's content the line that says that a build wrote it."""
    digest = sha256(content).hexdigest()
    mark = f"# Written by `farshift splits build`, which replaces it unless it was edited; sha256 {digest}\n"
    return mark.encode() + content


def strip_mark(content: bytes) -> bytes:
    """Return the content without the line of `mark_generated`, if it has one."""
    return content[match.end() :] if (match := _MARK.match(content)) else content


def is_unedited(path: Path) -> bool:
    """Whether a build wrote a file, and it has not been changed since."""
    content = path.read_bytes()
    match = _MARK.match(content)
    return match is not None and sha256(content[match.end() :]).hexdigest() == match[1].decode()
