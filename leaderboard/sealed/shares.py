"""Public randomness of the entrants' own: each team commits to a value of 32 bytes before the draw and reveals it after
all commitments are in; what is drawn from is a digest of all revealed values.

A value is hidden by its commitment (sha256 over purpose, window, key and value) and bound by it, and the commitment is
signed by the team's key, so that nobody commits in another's name. One honest team that reveals is enough for a value
that the board could not know when it chose its secret. A value that is never revealed is left out, and named. That is a
choice for whoever reveals last: k keys of one mind can choose among 2^k draws if they know the board's secret, and
among draws that they cannot tell apart if they do not. Against a board that plays along, drand has no such choice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...core.canonical import canonical_json, identity_of
from ...core.errors import BadData, FarshiftError
from ...core.files import write_atomically
from ...core.private import write_private
from ..ledger.keys import SigningKey, signed_by

VALUE_BYTES = 32
COMMITMENT, VALUE = "commitment.json", "value.json"
MAX_FILE = 1 << 14


@dataclass
class Share:
    """A team's share as the ledger has it: commitment, its signature, and the value once it is revealed; `times` of
    both records."""

    commitment: str
    signature: str
    value: bytes | None = None
    times: tuple[str, ...] = ()


def commitment_of(window: str, key: str, value: bytes) -> str:
    """What a team commits to its value by."""
    return identity_of({"purpose": "farshift share, 1", "window": window, "key": key, "value": value.hex()})


def signed_hash(window: str, key: str, commitment: str) -> str:
    """What a team signs of its commitment."""
    return identity_of({"signs": "farshift share", "window": window, "key": key, "commitment": commitment})


def make_share(window: str, key: SigningKey, out: Path, value: bytes | None = None) -> tuple[Path, Path]:
    """Write a share of a window into the folder `out`: the commitment, to hand in first, and the value, to hand in once
    all commitments are in. Shares that are there stay: `FarshiftError`."""
    first, second = out / COMMITMENT, out / VALUE
    if first.exists() or second.exists():
        raise FarshiftError(f"{out} has a share already: choose another folder")
    drawn = value or os.urandom(VALUE_BYTES)
    commitment = commitment_of(window, key.public, drawn)
    signature = key.sign(signed_hash(window, key.public, commitment))
    write_private(second, canonical_json({"window": window, "key": key.public, "value": drawn.hex()}))
    said = {"window": window, "key": key.public, "commitment": commitment, "signature": signature}
    write_atomically(first, canonical_json(said))
    return first, second


def read_share(file: Path | str) -> dict[str, str]:
    """What a file of `make_share` says: window and key, and either commitment and signature or value."""
    path = Path(file)
    content = path.read_bytes() if path.is_file() and path.stat().st_size <= MAX_FILE else b""
    digits = {"key": 64, "commitment": 64, "signature": 128, "value": 2 * VALUE_BYTES}
    try:
        found = json.loads(content)
        rest = set(found) - {"window", "key"}
        right = rest in ({"commitment", "signature"}, {"value"}) and isinstance(found["window"], str)
        if not right or any(len(bytes.fromhex(found[name])) * 2 != digits[name] for name in (*rest, "key")):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadData(f"{path} is not a share of a window's randomness (farshift board share makes one)") from error
    return {name: str(value) for name, value in found.items()}


def of_shares(window: str, shares: Mapping[str, Share]) -> bytes:
    """The 32 bytes that the revealed values of a window come to. `FarshiftError` where there is none."""
    values = sorted((key, share.value.hex()) for key, share in shares.items() if share.value is not None)
    if not values:
        raise FarshiftError("nobody revealed a share: there is no public randomness")
    return sha256(canonical_json({"purpose": "farshift shares, 1", "window": window, "shares": values})).digest()


def missing(shares: Mapping[str, Share]) -> list[str]:
    """The keys whose values were never revealed."""
    return sorted(key for key, share in shares.items() if share.value is None)


def share_problems(window: str, shares: Mapping[str, Share]) -> list[str]:
    """Shares that nobody signed, or whose values are others than was committed to."""
    problems = []
    for key, share in shares.items():
        if not signed_by(key, signed_hash(window, key, share.commitment), share.signature):
            problems.append(f"the share of key {key[:12]}.. is not signed by it")
        if share.value is not None and commitment_of(window, key, share.value) != share.commitment:
            problems.append(f"the share of key {key[:12]}.. was revealed as another value than it committed to")
    return problems


def said_of(body: Mapping[str, Any], shares: Mapping[str, Share]) -> list[str]:
    """Whether the record of a window's randomness names the shares that were never revealed."""
    return (
        [] if body.get("missing") == missing(shares) else ["its randomness names other missing shares than there are"]
    )
