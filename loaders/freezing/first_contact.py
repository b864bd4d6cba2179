"""The first pull of a definition: its data are brought, held to the published counts, and frozen in the user's home.

The same bytes give the same identity on every machine. Where `splits/manifests.lock` has the identity of a definition,
what is frozen here is held to it.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...core.errors import BadData, FarshiftError, Unavailable
from ...core.files import cache_root, lock_elsewhere, locked, plain_disk_errors, user_home, write_atomically
from ...splits.manifest import Manifest
from ..acquire.expected import CountsDiffer, check_expected
from ..acquire.source import (
    Distribution,
    OwnPin,
    Source,
    brought,
    decides,
    find_source,
    own_pin_at,
    with_own_pin,
)
from ..cache.store import keep, memory_mapped
from .freeze import Draft, freeze_from


def at_first_contact(manifest: Manifest, own_folders: tuple[Path, ...] = (), engine: str = "local") -> Manifest:
    """A definition, frozen: from the user's home where it was frozen before, else from its data, which are brought now.

    Raises `CountsDiffer` where the data are not those that were published, `Unavailable` where they cannot be had, and
    `LicenceNotAccepted` where their licence has to be accepted first. Nothing is written in any of these cases.
    """
    source = find_source(manifest.definition.source.name)
    source.require_licence()
    draft = Draft.model_validate(manifest.definition.model_dump(exclude={"identity", "parts"}))
    out = user_home() / "splits" / "manifests"
    with locked(lock_elsewhere(own_pin_at(source)), f"source {source.name}"):
        source = with_own_pin(source)
        first = not source.definition.digest
        if first:
            source = _pinned(source, own_folders, engine)
        try:
            # What was published keeps its flaws: nobody could count them before.
            return freeze_from(draft, source, out, engine, own_folders, keep_flaws=True)[0]
        except FarshiftError:
            if first:  # a second pull may bring other data
                own_pin_at(source).unlink(missing_ok=True)
            raise


def _pinned(source: Source, own_folders: tuple[Path, ...], engine: str) -> Source:
    """The source, built into the cache from the first distribution that can be had and has the published counts, and
    its pin in the user's home."""
    refused: list[FarshiftError] = []
    for distribution in source.definition.distributions:
        try:
            return _built(source, distribution, own_folders, engine)
        except (Unavailable, BadData) as error:
            refused.append(error)
    different = [error for error in refused if isinstance(error, CountsDiffer)]
    if different or len(refused) == 1:
        raise (different or refused)[0]
    named = zip(source.definition.distributions, refused, strict=True)
    raise Unavailable(f"source {source.name}: {' | '.join(f'{one.name}: {error}' for one, error in named)}")


def _built(source: Source, distribution: Distribution, own_folders: tuple[Path, ...], engine: str) -> Source:
    pinned, arguments = brought(distribution, own_folders)
    made = cache_root() / "sources" / f".{source.name}-first.arrow.{os.getpid()}.tmp"
    with plain_disk_errors(made):
        made.parent.mkdir(parents=True, exist_ok=True)
        try:
            digest = source.write_from(distribution, arguments, made, engine)
            rows = memory_mapped(made)
            if source.definition.expected is not None:
                check_expected(source.definition.expected, rows, f"source {source.name} ({distribution.name})")
            own = OwnPin(definition=decides(source.definition), rows=rows.num_rows, digest=digest, distribution=pinned)
            write_atomically(own_pin_at(source), _toml(own))
            found = with_own_pin(source)
            del rows
            keep(made, found.cached_at)
        finally:
            made.unlink(missing_ok=True)
    return found


def _toml(own: OwnPin) -> bytes:
    import tomli_w

    return tomli_w.dumps(own.model_dump(exclude_none=True)).encode()
