"""The identity of a team: its ed25519 key if it signs, else its name.

Names are compared without regard to case, width and spaces. Two keys with one name are two teams, shown with the
fingerprints of their keys; an unsigned submission cannot use the name of a team with a key. Names that merely look
alike are different names. Anybody can create several keys and names; this module does not detect that.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from hashlib import sha256

from ..core.errors import SubmissionRejected
from ..core.text import escape_untrusted

FINGERPRINT = 16
"""Hexadecimal digits of a fingerprint."""


def make_team_identity(team: str, key: str) -> str:
    """The identity of a team: `key:<public key>` if it signs, else `name:<normalised name>`; `name:` for a team without
    a name."""
    return f"key:{key}" if key else f"name:{normalise_name(team)}"


def normalise_name(name: str) -> str:
    """A name for comparison: NFKC, without case and spaces."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def compute_fingerprint(key: str) -> str:
    """The fingerprint of a public key: the first 16 hexadecimal digits of its sha256."""
    return sha256(bytes.fromhex(key)).hexdigest()[:FINGERPRINT]


def make_display_names(teams: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What to show for each (name, key): the name, with the key's fingerprint if another team has the same name or the
    name is empty."""
    names = set(teams)
    identities: dict[str, set[str]] = {}
    for team, key in names:
        identities.setdefault(normalise_name(team), set()).add(make_team_identity(team, key))
    return {
        (team, key): f"{team} [{compute_fingerprint(key)}]".strip()
        if key and (not team or len(identities[normalise_name(team)]) > 1)
        else team
        for team, key in names
    }


def require_free_name(teams: Iterable[tuple[str, str]], team: str, key: str) -> None:
    """Raise an error if an unsigned submission uses the name of a team with a key. teams: (name, key) of those that the
    board has."""
    if key or not team:
        return
    for name, other in teams:
        if other and normalise_name(name) == normalise_name(team):
            raise SubmissionRejected(
                f"team {escape_untrusted(team)!r} needs a key: team {escape_untrusted(name)!r} already uses the key "
                f"{compute_fingerprint(other)} (if this is your team, pack with --key FILE; else choose another name)"
            )
