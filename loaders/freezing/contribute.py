"""What a user who pulled a definition can contribute, so that every pull is checked against the same rows."""

from __future__ import annotations

from typing import Any

from ...core.errors import FarshiftError
from ...splits.catalogue import find_manifest
from ..acquire.source import find_source


def make_contribution(name: str) -> dict[str, Any]:
    """Return the identity of a pulled split (`split`, `identity`), and its source's pin as TOML (`source`, for `file`;
    empty if the package has the pin). Raises `FarshiftError` if the split was not pulled yet."""
    import tomli_w

    manifest = find_manifest(name)
    if not manifest.frozen:
        raise FarshiftError(f"{manifest.full_name} was not pulled yet: run farshift splits pull {manifest.name}")
    source = find_source(manifest.definition.source.name)
    record = {"split": manifest.full_name, "identity": manifest.identity, "file": source.path.name, "source": ""}
    if f'digest = "{source.definition.digest}"' in source.path.read_text("utf-8"):
        return record
    first = source.definition.distributions[0].model_dump(exclude_none=True, exclude_defaults=True)
    pin = {"rows": source.definition.rows, "digest": source.definition.digest, "distributions": [first]}
    return record | {"source": tomli_w.dumps(pin)}
