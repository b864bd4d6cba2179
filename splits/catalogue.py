"""The catalogue of all manifests, by `name` or `name@version`, and its families: listings show a family on one line,
and headline counts count it once.

Label noise has a split for each rate and draw of one rule over one source: one family, named SOURCE/RULE, whose members
can be named by parameters: `mnist/pair_flip?rate=20&draw=1` is `mnist/pair_flip_20_draw1`. Every other split is its own
family, with all its versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from ..core.errors import BadDefinition, FarshiftError, UnknownName
from ..core.files import get_user_home
from ..core.plugins import PACKAGE, find_plugin_files
from ..core.text import format_count
from .manifest import NAME, Manifest, SplitDefinition, check_kind, read_manifest

LOCK = PACKAGE / "splits" / "manifests.lock"


def list_manifests() -> list[Manifest]:
    """Return all manifests of the package and of `FARSHIFT_PATH`, sorted by name and version."""
    return find_manifests("*/*")


def find_manifests(name: str) -> list[Manifest]:
    """Return the manifests whose name equals or matches the pattern, sorted by name and version."""
    by_version: dict[tuple[str, int], Manifest] = {}
    for path in find_plugin_files("splits/manifests", f"{name}/v*/split.toml"):
        manifest = read_manifest(path)
        definition = manifest.definition
        expected = Path(*definition.name.split("/"), f"v{definition.version}")
        if not path.parent.as_posix().endswith(f"/{expected.as_posix()}"):
            raise BadDefinition(f"{path}: defines {manifest.full_name}, so its folder must be {expected}")
        key = (definition.name, definition.version)
        if key in by_version:
            raise BadDefinition(f"{path}: {manifest.full_name} is published already, in {by_version[key].folder}")
        by_version[key] = _load_frozen(manifest)
    return [by_version[key] for key in sorted(by_version)]


def list_own_manifests() -> list[Manifest]:
    """Return the manifests in the user's own folders."""
    paths = find_plugin_files("splits/manifests", "*/*/v*/split.toml")
    return [read_manifest(path) for path in paths if not path.is_relative_to(PACKAGE)]


def _load_frozen(manifest: Manifest) -> Manifest:
    """Return a definition as its first pull froze it in the user's home, else unchanged. A folder frozen from another
    definition, or one that differs from `manifests.lock`, does not count."""
    if manifest.frozen:
        return manifest
    definition = manifest.definition
    path = get_user_home() / "splits" / "manifests" / definition.name / f"v{definition.version}" / "split.toml"
    if not path.exists():
        return manifest
    own = read_manifest(path)
    published = read_published_identities().get(manifest.full_name, own.identity)
    as_defined = {"identity": "", "parts": {}, "source": definition.source, "declared": definition.declared}
    undone = own.definition.model_copy(update=as_defined)
    return own if own.frozen and undone == definition and own.identity == published else manifest


def find_manifest(name: str) -> Manifest:
    """Return the manifest `name` (its newest version) or `name@version`; see `resolve_member` for members of
    families."""
    if "?" in name:
        name = resolve_member(name, "split", {manifest.name for manifest in list_manifests()})
    split_name, at, version = name.partition("@")
    # An invalid name must not act as a pattern: its wildcards and dots would match other folders.
    versions = find_manifests(split_name) if re.fullmatch(NAME, split_name) else []
    if not versions:
        known = {manifest.name for manifest in list_manifests()}
        raise UnknownName("split", split_name, known, listed="farshift splits list")
    if not at:
        frozen = [manifest for manifest in versions if manifest.frozen]
        return (frozen or versions)[-1]
    for manifest in versions:
        if str(manifest.definition.version) == version.removeprefix("v"):
            return manifest
    offered = ", ".join(manifest.full_name for manifest in versions)
    raise FarshiftError(f"{split_name} has no version {version!r}: there is {offered}")


def read_published_identities() -> dict[str, str]:
    """Return the identities in `manifests.lock` by full name. A published manifest version never changes."""
    lines = LOCK.read_text("utf-8").splitlines() if LOCK.exists() else []
    return {name: identity for name, identity in (line.split() for line in lines if line and line[0] != "#")}


def list_split_records(of_kind: str | None = None) -> list[dict[str, Any]]:
    """Return one record per manifest (of a kind of shift). `family`: see `families.get_family`. `state`: see
    `get_state`."""
    of_kind = None if of_kind is None else check_kind(of_kind)
    return [
        {
            "name": manifest.name,
            "version": manifest.definition.version,
            "family": get_family(manifest.definition),
            "kind": manifest.definition.kind,
            "source": manifest.definition.source.name,
            "state": get_state(manifest),
            "parts": {name: pin.rows for name, pin in manifest.definition.parts.items()},
            "weighted_rows": {name: pin.weighted_rows for name, pin in manifest.definition.parts.items()},
            "identity": manifest.identity,
            "title": manifest.definition.title,
            "licence": manifest.definition.licence,
            "references": list(manifest.definition.references),
        }
        for manifest in list_manifests()
        if of_kind in (None, manifest.definition.kind)
    ]


def get_state(manifest: Manifest) -> str:
    """Return `frozen`, `pulled` (frozen in the user's home by its first pull) or `definition` (not frozen yet)."""
    if not manifest.frozen:
        return "definition"
    return "pulled" if manifest.folder.is_relative_to(get_user_home()) else "frozen"


Record = dict[str, Any]

_RATES = ("rate", "transitions")
"""The parameters that set how many labels a noise rule corrupts."""

MEMBER = re.compile(r"(?P<family>.+)_(?P<rate>\d+)(_draw(?P<draw>\d+))?")
"""The name of a member of a grid of label noise: its rate in per cent, and its draw if there are several."""


def get_family(definition: SplitDefinition) -> str:
    """Return the family of a split, such as `mnist/pair_flip` for `mnist/pair_flip_20_draw1`; else its own name."""
    if definition.kind == "corrupted-label" and any(name in definition.parameters for name in _RATES):
        return f"{definition.source.name}/{definition.rule.rpartition('/')[2]}"
    return definition.name


def resolve_member(name: str, what: str, known: Iterable[str]) -> str:
    """Return the plain name of a member of a family of label noise that is named by its parameters, as in
    `mnist/pair_flip?rate=20&draw=1`, with its version if it has one; a plain name is returned unchanged. what, known:
    a split or a benchmark, and the names of all. Raises `UnknownName` or `FarshiftError`, which names the choices."""
    family, question, rest = name.partition("?")
    if not question:
        return name
    query, at, version = rest.partition("@")
    given = dict(parse_qsl(query, keep_blank_values=True))
    fields = {plain: match.groupdict("") for plain in known if (match := MEMBER.fullmatch(plain))}
    members = [plain for plain in fields if fields[plain]["family"] == family]
    if not members:
        families = {field["family"] for field in fields.values() if field["draw"]}
        raise UnknownName(f"{what} with parameters", family, families, listed=f"farshift {what}s list noise")
    chosen = [plain for plain in members if given.items() <= fields[plain].items()]
    if len(chosen) != 1:
        raise FarshiftError(
            f"{name} names {len(chosen) or 'no'} {what}s: give one value each of {_format_grid(members)}"
        )
    return f"{chosen[0]}{at}{version}"


def _format_grid(names: Iterable[str]) -> str:
    """Return the parameters of members of a family: `mnist/pair_flip?rate=20,40,45&draw=1,2`."""
    fields = [match.groupdict("") for match in map(MEMBER.fullmatch, names) if match]
    values = {key: sorted({field[key] for field in fields} - {""}, key=int) for key in ("rate", "draw")}
    return f"{fields[0]['family']}?" + "&".join(f"{key}={','.join(every)}" for key, every in values.items() if every)


def fold_names(names: Sequence[str]) -> str:
    """Return names of a family in one line: as parameters, if they are a grid of label noise, else the first, and the
    number of the others."""
    grid = [name for name in names if MEMBER.fullmatch(name)] if len(names) > 1 else []
    others = len(names) - max(len(grid), 1)
    return (_format_grid(grid) if grid else names[0]) + (f" and {others} more" if others else "")


def group_by_family(records: Sequence[Record]) -> list[list[Record]]:
    """Group the records of the catalogue's listing by family, the newest versions first."""
    families: dict[str, list[Record]] = {}
    for record in records:
        families.setdefault(record["family"], []).append(record)
    return [sorted(members, key=lambda record: -record["version"]) for members in families.values()]


def format_family_name(members: Sequence[Record]) -> str:
    """Return a family's name in listings: see `fold_names`; of the versions of a split, the newest."""
    names = list(dict.fromkeys(record["name"] for record in members))
    if len(names) > 1:
        return fold_names(names)
    older = len(members) - 1
    return f"{names[0]}@{members[0]['version']}" + (f" and {older} older" if older else "")


def format_headline(records: Sequence[Record]) -> str:
    """Count the families, manifests and sources of records: `12 families (80 manifests) over 9 sources`."""
    families, sources = ({record[key] for record in records} for key in ("family", "source"))
    counts = (
        f"{format_count(len(families), 'family', 'families')} ({format_count(len(records), 'manifest', 'manifests')})"
    )
    return f"{counts} over {format_count(len(sources), 'source', 'sources')}"
