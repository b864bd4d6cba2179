"""Ed25519 keys (RFC 8032) of a board or a team: PEM files (PKCS 8, not encrypted), readable only by their owner."""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError, MissingExtra
from ...core.files import read_private, write_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


class SigningKey:
    """The private key in a file, of a board or a team (`whose`). It is read when something is first signed: reading a
    board needs no key."""

    def __init__(self, path: Path, whose: str = "board") -> None:
        self.path, self._whose = path, whose

    @cached_property
    def _private(self) -> Ed25519PrivateKey:
        _require_cryptography()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        content = read_private(self.path, f"the {self._whose}'s private key")
        try:
            key = load_pem_private_key(content, None)
        except (ValueError, TypeError) as error:
            raise FarshiftError(f"{self.path} has no PEM private key: restore the {self._whose}'s key") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise FarshiftError(f"{self.path} is not an ed25519 key: restore the {self._whose}'s key")
        return key

    @cached_property
    def public(self) -> str:
        """The public key: its 32 bytes, hexadecimal."""
        return self._private.public_key().public_bytes_raw().hex()

    def sign(self, hash: str) -> str:
        """The signature over a hash (hexadecimal), hexadecimal."""
        return self._private.sign(bytes.fromhex(hash)).hex()


def create_key(path: Path, whose: str = "board") -> SigningKey:
    """Return the key in `path`; create one if the file does not exist."""
    _require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if not path.exists():
        new = Ed25519PrivateKey.generate()
        write_private(path, new.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return SigningKey(path, whose)


def is_signed_by(public: str, hash: str, signature: str) -> bool:
    """Whether `signature` over `hash` was made with the private key of `public`; False if an argument is not
    hexadecimal of the right length."""
    _require_cryptography()
    from cryptography.exceptions import InvalidSignature

    try:
        _load_public_key(public).verify(bytes.fromhex(signature), bytes.fromhex(hash))
    except (InvalidSignature, ValueError):
        return False
    return True


@lru_cache(maxsize=16)
def _load_public_key(public: str) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise MissingExtra("a board's signatures", "board") from error
