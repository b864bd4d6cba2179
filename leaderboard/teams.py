"""Who a team is: its ed25519 key where it signs, its name where it does not.

A name is a label, without regard to case, width and spaces. Two keys with one name are two teams, shown with the
fingerprints of their keys; an unsigned submission cannot take the name of a team with a key. Names that merely look
alike are different names. Keys and names cost nothing: that many teams are one person is not found out here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Protocol

from ..core.errors import SubmissionRejected
from ..core.listings.untrusted_text import escape_untrusted

FINGERPRINT = 16
"""Hexadecimal digits of a fingerprint."""


class HasTeam(Protocol):
    """What is known of a submission's team: its name, and its public key (empty where it did not sign)."""

    @property
    def team(self) -> str: ...
    @property
    def team_key(self) -> str: ...


def identify_team(entry: HasTeam) -> str:
    """The identity of a team: `key:<public key>` where it signed, else `name:<normalised name>`; `name:` for all that
    name none."""
    return make_team_identity(entry.team, entry.team_key)


def make_team_identity(team: str, key: str) -> str:
    """The identity of a team of a name and a public key (or none)."""
    return f"key:{key}" if key else f"name:{normalise_name(team)}"


@lru_cache(maxsize=1 << 16)
def normalise_name(name: str) -> str:
    """A name as it counts: NFKC, without case and spaces."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def compute_fingerprint(key: str) -> str:
    """A public key in short: the first 16 hexadecimal digits of its sha256."""
    return sha256(bytes.fromhex(key)).hexdigest()[:FINGERPRINT]


def make_display_names(those: Iterable[HasTeam]) -> dict[tuple[str, str], str]:
    """What to show for each name and key: the name, with the key's fingerprint where another team has the name, or
    where there is no name."""
    names = {(entry.team, entry.team_key) for entry in those}
    identities: dict[str, set[str]] = {}
    for team, key in names:
        identities.setdefault(normalise_name(team), set()).add(make_team_identity(team, key))
    return {
        (team, key): f"{team} [{compute_fingerprint(key)}]".strip()
        if key and (not team or len(identities[normalise_name(team)]) > 1)
        else team
        for team, key in names
    }


def make_team_labels(those: Iterable[HasTeam]) -> dict[str, str]:
    """What to show of each team, by its identity: its newest name, as `make_display_names` shows it."""
    every = list(those)
    display_names = make_display_names(every)
    return {identify_team(entry): display_names[entry.team, entry.team_key] for entry in every}


def require_free_name(those: Iterable[HasTeam], team: str, key: str) -> None:
    """Refuse an unsigned submission under the name of a team with a key among `those`."""
    if key or not team:
        return
    for entry in those:
        if entry.team_key and normalise_name(entry.team) == normalise_name(team):
            raise SubmissionRejected(
                f"team {escape_untrusted(team)!r} cannot be taken without a key: team "
                f"{escape_untrusted(entry.team)!r} here has the key "
                f"{compute_fingerprint(entry.team_key)} (if it is yours, pack with it: --key FILE; else choose "
                "another name)"
            )
