"""Public randomness: what the terms of a window announce before it is known, and how it joins the board's secret.

The seed of a draw is the board's secret XOR sha256 of the public randomness. The board is bound to its secret before
that is known, so it cannot choose the draw; and nobody else knows the secret, so the public part tells nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from ...core.canonical import canonical_json
from ...core.errors import FarshiftError
from .drand import QUICKNET, SCHEME, Network, network
from .times import moment, stamp

PURPOSE = "farshift: the draw of a sealed window, 1"
OWN = "the board's randomness alone"
"""What is said of a window that has no public randomness."""


@dataclass(frozen=True)
class BeaconRound:
    """A round of a drand network that was in the future when it was announced; `chain`: the network's hash."""

    chain: str
    number: int

    @property
    def of(self) -> Network:
        return network(self.chain)

    @property
    def time(self) -> str:
        """When it is published."""
        return stamp(self.due)

    @property
    def due(self) -> datetime:
        return self.of.time_of(self.number)

    def record(self) -> dict[str, Any]:
        """As the terms have it: the network's scheme and public key beside its hash, which binds them."""
        found = {"source": "drand", "chain": self.chain, "round": self.number}
        return found | {"scheme": SCHEME, "public_key": self.of.public_key, "time": self.time}

    def __str__(self) -> str:
        return f"round {self.number} of drand's {self.of.name}, {self.time}"


@dataclass(frozen=True)
class Shares:
    """Values of the entrants (shares.py): committed to by `commits_by`, revealed after that and by `reveals_by`."""

    commits_by: str
    reveals_by: str

    @property
    def time(self) -> str:
        """When they are all there."""
        return self.reveals_by

    @property
    def due(self) -> datetime:
        return moment(self.reveals_by)

    def record(self) -> dict[str, Any]:
        """As the terms have it."""
        return {"source": "entrants", "commits_by": self.commits_by, "reveals_by": self.reveals_by}

    def __str__(self) -> str:
        return f"the entrants' shares, committed to by {self.commits_by} and revealed by {self.reveals_by}"


Announced = BeaconRound | Shares


def announce(source: str, time: str, commits_by: str = "") -> Announced:
    """What a window's terms announce: of `drand`, the first round of quicknet from a time on; of `entrants`, shares
    that are committed to by `commits_by` and revealed by that time. `FarshiftError` for another source, or no time."""
    if source == "entrants":
        if not commits_by:
            raise FarshiftError("shares of entrants are committed to by a time of their own: say which (--commits)")
        found = Shares(stamp(moment(commits_by)), stamp(moment(time)))
        if found.commits_by >= found.reveals_by:
            raise FarshiftError("shares are revealed (--drawn) after all are committed to (--commits)")
        return found
    if source != "drand":
        raise FarshiftError(f"{source[:40]!r} is no source of public randomness: drand and entrants are")
    return BeaconRound(QUICKNET.chain, QUICKNET.round_at(moment(time)))


def announced(record: Any) -> Announced:
    """What a record announces. `FarshiftError` where it is of no known source, or says of a network what is not so:
    another key, another time of the round."""
    try:
        found: Announced
        if record["source"] == "entrants":
            found = Shares(str(record["commits_by"]), str(record["reveals_by"]))
        else:
            found = BeaconRound(str(record["chain"]), int(record["round"]))
        said = found.record()
    except (KeyError, TypeError, ValueError) as error:
        raise FarshiftError("its terms announce public randomness of no known source") from error
    if said != dict(record):
        raise FarshiftError(
            f"its terms announce public randomness that is not {found} as drand has it: another key, scheme or time"
        )
    return found


def drawing_seed(secret: bytes, window: str, randomness: bytes) -> bytes:
    """The seed of a window's draw: the board's secret (32 bytes) XOR sha256 over purpose, window and randomness."""
    public = {"purpose": PURPOSE, "window": window, "randomness": randomness.hex()}
    pad = sha256(canonical_json(public)).digest()
    return bytes(left ^ right for left, right in zip(secret, pad, strict=True))
