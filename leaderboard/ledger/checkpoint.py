"""Checkpoints: the size and the Merkle root of a ledger as a signed note, which witnesses co-sign.

The text is a C2SP tlog-checkpoint: origin, number of records, root in base64, each on a line. The root is that of
RFC 6962 (section 2.1) over the records' hashes, 32 bytes each. Signatures are those of a C2SP signed note: of the
board, ed25519 (type 0x01) over the text; of a witness, a timestamped cosignature/v1 (type 0x04).
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256

from ...core.errors import BadData
from ...core.listings.plural import counted
from .keys import SigningKey, signed_by
from .record import Record

ED25519, COSIGNATURE = 0x01, 0x04
MOST_BYTES, MOST_SIGNATURES = 1 << 16, 100
_NAME = re.compile(r"[^\s+]{1,200}")
_SIGNATURE = re.compile(r"— ([^\s+]{1,200}) ([A-Za-z0-9+/]+={0,2})")
_TEXT = re.compile(r"([^\n]+)\n(0|[1-9][0-9]{0,18})\n([A-Za-z0-9+/]{43}=)\n((?:[^\n]+\n)*)")


@dataclass(frozen=True)
class Signature:
    """A line of a note: who signed, and the key's 4 bytes followed by the signature."""

    name: str
    content: bytes

    @property
    def time(self) -> int | None:
        """Seconds since 1970 of a cosignature (8 bytes before the signature); None of a plain one."""
        return int.from_bytes(self.content[4:12]) if len(self.content) == 4 + 8 + 64 else None

    def line(self) -> str:
        return f"— {self.name} {b64encode(self.content).decode()}\n"


@dataclass(frozen=True)
class Checkpoint:
    """A ledger's size and root, and who signed them. text: what is signed."""

    origin: str
    size: int
    root: bytes
    text: str
    signatures: tuple[Signature, ...] = ()

    def note(self) -> str:
        """The signed note."""
        return self.text + "\n" + "".join(one.line() for one in self.signatures)


@dataclass(frozen=True)
class Witnessed:
    """A checkpoint that somebody else signed. where: how messages call it; time: when (seconds since 1970), None where
    no signature that was checked says so."""

    where: str
    checkpoint: Checkpoint
    time: int | None = None


SLACK = 60
"""Seconds that the clocks of a board and of a witness may be apart."""


def origin_of(key: str) -> str:
    """How a board is called in its checkpoints, by its public key."""
    return f"farshift-board/{key}"


def checkpoint_of(records: Sequence[Record], key: str) -> Checkpoint:
    """The unsigned checkpoint of a ledger."""
    return checkpoint_at(len(records), merkle_root([bytes.fromhex(record.hash) for record in records]), key)


def checkpoint_at(size: int, root: bytes, key: str) -> Checkpoint:
    """The unsigned checkpoint of a ledger of so many records, under a root."""
    origin = origin_of(key)
    return Checkpoint(origin, size, root, f"{origin}\n{size}\n{b64encode(root).decode()}\n")


def merkle_root(leaves: Sequence[bytes]) -> bytes:
    """The Merkle tree hash of RFC 6962, section 2.1: a tree of n leaves is that of the first k and that of the others,
    k being the largest power of two below n."""
    level = [sha256(b"\x00" + leaf).digest() for leaf in leaves]
    if not level:
        return sha256().digest()
    while len(level) > 1:
        pairs = [sha256(b"\x01" + level[at] + level[at + 1]).digest() for at in range(0, len(level) - 1, 2)]
        level = pairs + level[2 * len(pairs) :]
    return level[0]


def key_id(name: str, kind: int, public: bytes) -> bytes:
    """The 4 bytes by which a signature names its key."""
    return sha256(name.encode() + b"\n" + bytes([kind]) + public).digest()[:4]


def verifier_key(name: str, kind: int, public: str) -> str:
    """A key as others are told it: NAME+ID+KEY."""
    content = bytes.fromhex(public)
    return f"{name}+{key_id(name, kind, content).hex()}+{b64encode(bytes([kind]) + content).decode()}"


def signed(checkpoint: Checkpoint, key: SigningKey, name: str = "") -> Checkpoint:
    """With the board's own signature. name: the board's, by default the origin."""
    who = name or checkpoint.origin
    signature = bytes.fromhex(key.sign(checkpoint.text.encode().hex()))
    return _with(checkpoint, Signature(who, key_id(who, ED25519, bytes.fromhex(key.public)) + signature))


def cosigned(checkpoint: Checkpoint, key: SigningKey, name: str, time: int) -> Checkpoint:
    """With the signature of a witness that saw it at a time (seconds since 1970)."""
    if not _NAME.fullmatch(name):
        raise BadData(f"a witness's name is 1 to 200 characters without blanks and +, and {name[:40]!r} is none")
    signature = bytes.fromhex(key.sign(_cosigned(checkpoint, time).hex()))
    id = key_id(name, COSIGNATURE, bytes.fromhex(key.public))
    return _with(checkpoint, Signature(name, id + time.to_bytes(8) + signature))


def signed_with(checkpoint: Checkpoint, verifier: str) -> Signature | None:
    """The signature that a key (NAME+ID+KEY) made; None where there is none. `BadData` where one that says so is
    wrong, or the key is none."""
    name, _, rest = verifier.partition("+")
    id, _, encoded = rest.partition("+")
    try:
        key = b64decode(encoded, validate=True)
    except ValueError:
        key = b""
    if len(key) != 33 or key[0] not in (ED25519, COSIGNATURE) or key_id(name, key[0], key[1:]).hex() != id:
        raise BadData(f"{verifier[:120]!r} is not a key as NAME+ID+KEY: take it as the witness told it")
    for one in checkpoint.signatures:
        if one.name != name or one.content[:4].hex() != id:
            continue
        if key[0] == COSIGNATURE:
            good = one.time is not None and _fits(key, _cosigned(checkpoint, one.time), one.content[12:])
        else:
            good = _fits(key, checkpoint.text.encode(), one.content[4:])
        if not good:
            raise BadData(f"the checkpoint's signature by {name} is wrong: it was changed, or forged")
        return one
    return None


def read_checkpoint(content: bytes, where: str) -> Checkpoint:
    """The checkpoint in a signed note; `BadData` for anything else."""
    try:
        text, _, signatures = content[: MOST_BYTES + 1].decode().rpartition("\n\n")
    except UnicodeDecodeError:
        text = signatures = ""
    text += "\n"
    found = _TEXT.fullmatch(text)
    lines = signatures.splitlines()
    read = [_SIGNATURE.fullmatch(line) for line in lines]
    if len(content) > MOST_BYTES or found is None or len(lines) > MOST_SIGNATURES:
        raise BadData(f"{where} is not a checkpoint: a signed note of a log's origin, size and root")
    made = []
    for one in read:
        try:
            made.append(Signature(one[1], b64decode(one[2], validate=True)) if one else None)
        except ValueError:
            made.append(None)
    if None in made or any(one is not None and len(one.content) < 5 for one in made):
        raise BadData(f"{where}: a line of its signatures is not one")
    return Checkpoint(found[1], int(found[2]), b64decode(found[3]), text, tuple(one for one in made if one))


def not_extended(records: Sequence[Record], key: str, seen: Witnessed) -> list[str]:
    """What says that a ledger does not extend a checkpoint, or has later times in it than its witness."""
    where, size = seen.where, seen.checkpoint.size
    if seen.checkpoint.origin != origin_of(key):
        return [f"{where} is of {seen.checkpoint.origin[:100]!r}, and this board is {origin_of(key)}"]
    if size > len(records):
        return [f"{where} is of {counted(size, 'record')}, and the ledger has {len(records)}: records were cut off"]
    if checkpoint_of(records[:size], key).root != seen.checkpoint.root:
        return [f"{where}: the first {size} records are not those that were witnessed: the history was rewritten"]
    if seen.time is not None and (
        late := [one.seq for one in records[:size] if one.time > moment_of(seen.time + SLACK)]
    ):
        return [f"{where} was signed at {moment_of(seen.time)}, and record {late[0]} in it is of a later time"]
    return []


def moment_of(seconds: int) -> str:
    """Seconds since 1970 as a record's time."""
    return datetime.fromtimestamp(min(seconds, 253402300799), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cosigned(checkpoint: Checkpoint, time: int) -> bytes:
    return f"cosignature/v1\ntime {time}\n{checkpoint.text}".encode()


def _fits(key: bytes, text: bytes, signature: bytes) -> bool:
    return signed_by(key[1:].hex(), text.hex(), signature.hex())


def _with(checkpoint: Checkpoint, added: Signature) -> Checkpoint:
    others = tuple(
        one for one in checkpoint.signatures if (one.name, one.content[:4]) != (added.name, added.content[:4])
    )
    return replace(checkpoint, signatures=(*others, added))
