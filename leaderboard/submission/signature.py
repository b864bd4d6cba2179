"""A team's signature on a submission: the table `signature` of its submission.toml, with the team's public `key` and
the ed25519 `signature` over the rest of the card.

The card names the digest of each run's card and predictions, so what is signed is every prediction. Ed25519 is
deterministic (RFC 8032): the same runs, card and key pack to the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core.canonical import compute_identity
from ..ledger.keys import SigningKey, is_signed_by
from ..validation.problem import Problems

_DIGITS = {"key": 64, "signature": 128}


def sign_card(card: Mapping[str, Any], key: SigningKey) -> dict[str, Any]:
    """Return a submission's card with a team's signature."""
    return {**card, "signature": {"key": key.public, "signature": key.sign(_hash_card(card, key.public))}}


def check_signature(card: Mapping[str, Any], file: str, problems: Problems) -> str:
    """The public key (64 hexadecimal digits) of the team that signed a card; empty if it is unsigned, or if the
    signature does not match the card, which is added to `problems`."""
    if "signature" not in card:
        return ""
    signature = card["signature"]
    if (
        not isinstance(signature, dict)
        or set(signature) != set(_DIGITS)
        or not all(_is_hex(signature[name], name) for name in signature)
    ):
        what = ", ".join(f"{name} ({most} hexadecimal digits)" for name, most in _DIGITS.items())
        problems.add("signature-wrong", file, f"must have {what} and nothing else", "signature")
        return ""
    try:
        hash = _hash_card(card, signature["key"])
    except (TypeError, ValueError):  # a date or NaN, which the card's parser reports
        hash = ""
    if is_signed_by(signature["key"], hash, signature["signature"]):
        return str(signature["key"])
    problems.add("signature-wrong", file, "does not match this card and its key", "signature")
    return ""


def _hash_card(card: Mapping[str, Any], public: str) -> str:
    """The signed digest: sha256 over its purpose, the key, and the card without its signature."""
    rest = {name: value for name, value in card.items() if name != "signature"}
    return compute_identity({"signs": "farshift submission", "key": public, "card": rest})


def _is_hex(value: Any, name: str) -> bool:
    return isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{_DIGITS[name]}}}", value) is not None
