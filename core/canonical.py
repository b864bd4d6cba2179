"""Canonical JSON: the one text that an identity is taken of."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any


def to_canonical_json(value: Any) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces. Refuses NaN and infinity (`ValueError`)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def compute_identity(value: Any) -> str:
    """sha256 of the canonical JSON, as hexadecimal."""
    return sha256(to_canonical_json(value)).hexdigest()
