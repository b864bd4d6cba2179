"""The catalogue: every manifest there is, by `name` or `name@version`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..core.errors import BadDefinition, FarshiftError, UnknownName
from ..core.files import user_home
from ..core.plugins import PACKAGE, files
from .folding import family
from .manifest import NAME, Manifest, known_kind, read_manifest

LOCK = PACKAGE / "splits" / "manifests.lock"


def manifests() -> list[Manifest]:
    """All manifests, the package's own and those of `FARSHIFT_PATH`, sorted by name and version."""
    return named("*/*")


def named(name: str) -> list[Manifest]:
    """The manifests of a name, or whose names fit a pattern, sorted by name and version."""
    found: dict[tuple[str, int], Manifest] = {}
    for path in files("splits/manifests", f"{name}/v*/split.toml"):
        manifest = read_manifest(path)
        definition = manifest.definition
        expected = Path(*definition.name.split("/"), f"v{definition.version}")
        if not path.parent.as_posix().endswith(f"/{expected.as_posix()}"):
            raise BadDefinition(f"{path}: says it is {manifest.full_name}, but lies elsewhere than {expected}")
        key = (definition.name, definition.version)
        if key in found:
            raise BadDefinition(f"{path}: {manifest.full_name} is published already, in {found[key].folder}")
        found[key] = _frozen_at_home(manifest)
    return [found[key] for key in sorted(found)]


def own_manifests(name: str = "*/*") -> list[Manifest]:
    """The manifests of a name, or whose names fit a pattern, outside the package: those of the user's own folders."""
    paths = files("splits/manifests", f"{name}/v*/split.toml")
    return [read_manifest(path) for path in paths if not path.is_relative_to(PACKAGE)]


def _frozen_at_home(manifest: Manifest) -> Manifest:
    """A definition as it was frozen in the user's home, by its first pull; else as it is. What was frozen from another
    definition, or is not what `manifests.lock` says, does not count."""
    if manifest.frozen:
        return manifest
    definition = manifest.definition
    path = user_home() / "splits" / "manifests" / definition.name / f"v{definition.version}" / "split.toml"
    if not path.exists():
        return manifest
    own = read_manifest(path)
    published = published_identities().get(manifest.full_name, own.identity)
    as_defined = {"identity": "", "parts": {}, "source": definition.source, "declared": definition.declared}
    undone = own.definition.model_copy(update=as_defined)
    return own if own.frozen and undone == definition and own.identity == published else manifest


def find(name: str) -> Manifest:
    """The manifest called `name` (its newest version) or `name@version`."""
    wanted, at, version = name.partition("@")
    # What is no name is no pattern either: its wild cards and dots would find other folders.
    versions = named(wanted) if re.fullmatch(NAME, wanted) else []
    if not versions:
        known = {manifest.name for manifest in manifests()}
        raise UnknownName("split", wanted, known, listed="farshift splits list")
    if not at:
        frozen = [manifest for manifest in versions if manifest.frozen]
        return (frozen or versions)[-1]
    for manifest in versions:
        if str(manifest.definition.version) == version.removeprefix("v"):
            return manifest
    offered = ", ".join(manifest.full_name for manifest in versions)
    raise FarshiftError(f"{wanted} has no version {version!r}: there is {offered}")


def published_identities() -> dict[str, str]:
    """The identities in `manifests.lock`: full name to identity. A published manifest version never changes."""
    lines = LOCK.read_text("utf-8").splitlines() if LOCK.exists() else []
    return {name: identity for name, identity in (line.split() for line in lines if line and line[0] != "#")}


def listing(of_kind: str | None = None) -> list[dict[str, Any]]:
    """One record per manifest (of a kind of shift). `family`: `folding.family`. `state` is `frozen`; `pulled` where a
    definition was frozen in the user's home by its first pull; or `definition` where it was not yet."""
    of_kind = None if of_kind is None else known_kind(of_kind)
    return [
        {
            "name": manifest.name,
            "version": manifest.definition.version,
            "family": family(manifest.definition),
            "kind": manifest.definition.kind,
            "source": manifest.definition.source.name,
            "state": state(manifest),
            "parts": {name: pin.rows for name, pin in manifest.definition.parts.items()},
            "weighted_rows": {name: pin.weighted_rows for name, pin in manifest.definition.parts.items()},
            "identity": manifest.identity,
            "title": manifest.definition.title,
            "licence": manifest.definition.licence,
        }
        for manifest in manifests()
        if of_kind in (None, manifest.definition.kind)
    ]


def state(manifest: Manifest) -> str:
    """`frozen`, `pulled` (frozen in the user's home by its first pull) or `definition`."""
    if not manifest.frozen:
        return "definition"
    return "pulled" if manifest.folder.is_relative_to(user_home()) else "frozen"
