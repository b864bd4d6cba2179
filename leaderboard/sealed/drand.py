"""drand's public randomness (drand.love): every round of a network is a BLS signature over the round's number by a key
that its members hold in shares. Nobody, they and a board included, knows a round before its time, and anybody can check
it afterwards with the network's public key alone, without asking anyone.

The hash of a network binds its public key, its period and its first round, so the time of every round is known too.
Of the schemes, `bls-unchained-g1-rfc9380` is verified: the signature (48 bytes, a point of G1 of BLS12-381) is over
sha256 of the round (8 bytes, big-endian), hashed to the curve by RFC 9380; the randomness is sha256 of the signature.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from ...core.errors import BadData, FarshiftError, MissingExtra

SCHEME = "bls-unchained-g1-rfc9380"
_DOMAIN = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
SIGNATURE_BYTES = 48
MAX_FILE = 1 << 16


@dataclass(frozen=True)
class Network:
    """A drand network. period: seconds between rounds; genesis: when round 1 was, in seconds of UNIX time; group: the
    hash of the group that it began with."""

    name: str
    period: int
    genesis: int
    public_key: str
    group: str

    @property
    def chain(self) -> str:
        """The network's hash, by which drand names it."""
        numbers = self.period.to_bytes(4, "big") + self.genesis.to_bytes(8, "big")
        return sha256(numbers + bytes.fromhex(self.public_key + self.group) + self.name.encode()).hexdigest()

    def time_of(self, number: int) -> datetime:
        """When a round is published."""
        return datetime.fromtimestamp(self.genesis, UTC) + timedelta(seconds=self.period * (number - 1))

    def round_at(self, time: datetime) -> int:
        """The first round that is published at this time or after it."""
        seconds = (time - datetime.fromtimestamp(self.genesis, UTC)).total_seconds()
        return max(1, 1 - int(-seconds // self.period))


QUICKNET = Network(
    "quicknet",
    3,
    1692803367,
    "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc2"
    "2b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a",
    "f477d5c89f21a17c863a7f937c6a6d15859414d2be09cd448d4279af331c5d3e",
)
NETWORKS = {QUICKNET.chain: QUICKNET}
"""The networks whose rounds may be announced, by their hash. A key of the board's own choice is none of them."""


def network(chain: str) -> Network:
    """The network of a hash; `FarshiftError` where it is not known."""
    if chain not in NETWORKS:
        raise FarshiftError(
            f"{chain[:80]!r} is not the hash of a drand network that is known here: {', '.join(NETWORKS)}"
        )
    return NETWORKS[chain]


def read_beacon(file: Path | str) -> tuple[int, str]:
    """Round and signature (hexadecimal) of a beacon as drand's HTTP API gives it: JSON with `round` and `signature`."""
    path = Path(file)
    content = path.read_bytes() if path.is_file() and path.stat().st_size <= MAX_FILE else b""
    try:
        found = json.loads(content)
        number, signature = found["round"], found["signature"]
        if type(number) is not int or len(bytes.fromhex(signature)) != SIGNATURE_BYTES:
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadData(
            f"{path} is not a beacon: it is JSON with round (a whole number) and signature ({SIGNATURE_BYTES} bytes, "
            "hexadecimal), as drand's API gives it"
        ) from error
    return number, str(signature).lower()


def randomness(of: Network, number: int, signature: str) -> bytes:
    """The 32 bytes of a round, once its signature is verified. `BadData` where it is not the network's signature of
    this round; `MissingExtra` without py_ecc."""
    try:
        given = bytes.fromhex(signature)
    except ValueError:
        given = b""
    if len(given) != SIGNATURE_BYTES or number < 1 or not _signed(of, number, given):
        raise BadData(f"the beacon is not round {number} of drand's {of.name}: its signature does not verify")
    return sha256(given).digest()


def _signed(of: Network, number: int, signature: bytes) -> bool:
    """Whether e(H(round), public key) = e(signature, generator of G2)."""
    limit = sys.getrecursionlimit()
    try:
        from py_ecc.bls.g2_primitives import subgroup_check
        from py_ecc.bls.hash_to_curve import hash_to_G1
        from py_ecc.bls.point_compression import decompress_G1, decompress_G2
        from py_ecc.optimized_bls12_381 import FQ12, G2, final_exponentiate, is_inf, neg, pairing
    except ImportError as error:
        raise MissingExtra("verifying a drand beacon", "beacon") from error
    finally:
        # The library lets the whole process recurse 100,000 deep, past the stack's end: a stranger's JSON that is
        # nested deeper than the stack would then end the process, where it is refused otherwise.
        sys.setrecursionlimit(limit)

    key = bytes.fromhex(of.public_key)
    try:
        point = decompress_G1(int.from_bytes(signature, "big"))
        public = decompress_G2((int.from_bytes(key[:48], "big"), int.from_bytes(key[48:], "big")))
    except ValueError:
        return False
    if is_inf(point) or not subgroup_check(point):
        return False
    hashed = hash_to_G1(sha256(number.to_bytes(8, "big")).digest(), _DOMAIN, sha256)
    both = pairing(public, hashed, final_exponentiate=False) * pairing(neg(G2), point, final_exponentiate=False)
    return bool(final_exponentiate(both) == FQ12.one())
