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

from ..core.errors import NotTaken
from ..core.listings.visible import visible

FINGERPRINT = 16
"""Hexadecimal digits of a fingerprint."""


class Signed(Protocol):
    """What is known of a submission's team: its name, and its public key (empty where it did not sign)."""

    @property
    def team(self) -> str: ...
    @property
    def team_key(self) -> str: ...


def team_of(one: Signed) -> str:
    """The identity of a team: `key:<public key>` where it signed, else `name:<normalised name>`; `name:` for all that
    name none."""
    return identity(one.team, one.team_key)


def identity(team: str, key: str) -> str:
    """The identity of a team of a name and a public key (or none)."""
    return f"key:{key}" if key else f"name:{normalised(team)}"


@lru_cache(maxsize=1 << 16)
def normalised(name: str) -> str:
    """A name as it counts: NFKC, without case and spaces."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def fingerprint(key: str) -> str:
    """A public key in short: the first 16 hexadecimal digits of its sha256."""
    return sha256(bytes.fromhex(key)).hexdigest()[:FINGERPRINT]


def shown_names(those: Iterable[Signed]) -> dict[tuple[str, str], str]:
    """What to show for each name and key: the name, with the key's fingerprint where another team has the name, or
    where there is no name."""
    names = {(one.team, one.team_key) for one in those}
    alike: dict[str, set[str]] = {}
    for team, key in names:
        alike.setdefault(normalised(team), set()).add(identity(team, key))
    return {
        (team, key): f"{team} [{fingerprint(key)}]".strip()
        if key and (not team or len(alike[normalised(team)]) > 1)
        else team
        for team, key in names
    }


def labels(those: Iterable[Signed]) -> dict[str, str]:
    """What to show of each team, by its identity: its newest name, as `shown_names` shows it."""
    every = list(those)
    shown = shown_names(every)
    return {team_of(one): shown[one.team, one.team_key] for one in every}


def require_free_name(those: Iterable[Signed], team: str, key: str) -> None:
    """Refuse an unsigned submission under the name of a team with a key among `those`."""
    if key or not team:
        return
    for one in those:
        if one.team_key and normalised(one.team) == normalised(team):
            raise NotTaken(
                f"team {visible(team)!r} cannot be taken without a key: team {visible(one.team)!r} here has the key "
                f"{fingerprint(one.team_key)} (if it is yours, pack with it: --key FILE; else choose another name)"
            )
