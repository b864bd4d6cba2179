"""Streams of a secret seed: who is shown any number of their draws can neither tell the others nor find the seed.

The mixing function of `draws` is quick and invertible, and its key has 64 bits: good enough for data whose seed is
public, and of no use where the seed is to be hidden. A stream whose name begins with `make_stream_name(seed)` is drawn
by AES-256 instead: the draw of a counter is the first 8 bytes of the encryption of its block, under a key that
HMAC-SHA256 derives from the seed and the stream's name. It is a pure function of name and counter as every other draw.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from .errors import MissingExtra

SEED_BYTES = 32
MARK = "secret:"
"""What the names of such streams begin with; no source's seed does."""

_HEAD = len(MARK) + 2 * SEED_BYTES


def make_stream_name(seed: bytes) -> str:
    """The beginning of the names of the streams of a secret seed of 32 bytes. It holds the seed: never show it."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a secret seed has {SEED_BYTES} bytes, not {len(seed)}")
    return MARK + seed.hex()


def draw_secret_bits(name: str, counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64 random bits for each counter in a stream of a secret seed; same shape. `MissingExtra` without cryptography."""
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError as error:
        raise MissingExtra("a sealed test", "board") from error

    key = hmac.digest(bytes.fromhex(name[len(MARK) : _HEAD]), name[_HEAD:].encode(), sha256)
    blocks = np.zeros((counters.size, 2), "<u8")
    blocks[:, 0] = counters.ravel()
    # Each block is encrypted by itself (ECB): of distinct counters that is a function which cannot be told from chance.
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    drawn = np.frombuffer(encryptor.update(blocks.tobytes()), "<u8").reshape(-1, 2)[:, 0]
    return drawn.astype(np.uint64).reshape(counters.shape)
