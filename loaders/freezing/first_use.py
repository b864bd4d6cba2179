"""The first pull of a definition: fetch its data, check the published counts, and freeze it in the user's home.

The same bytes give the same identity on every machine. If `splits/manifests.lock` has the identity of a definition, the
result is checked against it.
"""

from __future__ import annotations

from pathlib import Path

from ...core.errors import FarshiftError
from ...core.files import get_lock_path, get_user_home, hold_lock, write_atomically
from ...splits.manifest import Manifest
from ..acquire.source import (
    OwnPin,
    Source,
    apply_own_pin,
    compute_definition_digest,
    find_source,
    make_own_pin_path,
)
from ..cache.store import move_into_cache, stage_source
from .freeze import Draft, prepare_split, write_prepared


def freeze_on_first_use(manifest: Manifest, own_folders: tuple[Path, ...] = ()) -> Manifest:
    """Return a definition's frozen manifest: from the user's home if it was frozen before, else from its data, which
    are fetched now.

    Raises `CountsDiffer` if the data differ from the published counts, `Unavailable` if they are not available, and
    `LicenceNotAccepted` if their licence has to be accepted first. Nothing is written in these cases.
    """
    source = find_source(manifest.definition.source.name)
    source.require_licence()
    draft = Draft.model_validate(manifest.definition.model_dump(exclude={"identity", "parts"}))
    out = get_user_home() / "splits" / "manifests"
    with hold_lock(get_lock_path(make_own_pin_path(source)), f"source {source.name}"):
        source = apply_own_pin(source)
        first = not source.definition.digest
        if first:
            source = _pin_source(source, own_folders)
        try:
            # Published data keep their flaws, which could not be counted before.
            return write_prepared(prepare_split(draft, source, out, own_folders, keep_flaws=True))[0]
        except FarshiftError:
            if first:  # a second pull may fetch other data
                make_own_pin_path(source).unlink(missing_ok=True)
            raise


def _pin_source(source: Source, own_folders: tuple[Path, ...]) -> Source:
    """Build the source into the cache from the first available distribution with the published counts, and return it
    with its pin in the user's home."""
    import tomli_w

    with stage_source(f"{source.name}-first") as temporary_path:
        rows, digest, pinned = source.write(temporary_path, own_folders)
        definition = compute_definition_digest(source.definition)
        own = OwnPin(definition=definition, rows=rows, digest=digest, distribution=pinned)
        write_atomically(make_own_pin_path(source), tomli_w.dumps(own.model_dump(exclude_none=True)).encode())
        pinned_source = apply_own_pin(source)
        move_into_cache(temporary_path, pinned_source.cached_at)
        return pinned_source
