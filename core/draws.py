"""Counter-based randomness: a draw is a pure function of a name and a row id.

The same bits on every platform, in any order, on any number of processes; no generator to carry along. The mixing
function is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), applied twice. It hides nothing: streams
of a secret seed are drawn by a cipher (`draw_secret_bits`).
"""

from __future__ import annotations

import hmac
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from .errors import MissingExtra

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def derive_key(name: str) -> int:
    """The 64-bit key of a named stream."""
    return int.from_bytes(sha256(name.encode()).digest()[:8], "big")


def draw_bits(name: str, counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64 random bits for each counter (a row id, or 0, 1, 2 ..) in the stream called `name`; same shape."""
    counters = np.asarray(counters, np.uint64)
    if name.startswith(MARK):
        return draw_secret_bits(name, counters)
    return _mix_bits(_mix_bits(counters + _GOLDEN) ^ np.uint64(derive_key(name)))


def draw_below(name: str, counters: NDArray[np.uint64], bound: int) -> NDArray[np.int64]:
    """A number in [0, bound) for each counter; bound <= 2^31. Multiply-shift: the bias is under bound / 2^32."""
    if not 0 < bound <= 2**31:
        raise ValueError(f"bound must be in 1..2^31, not {bound}")
    return ((draw_bits(name, counters) >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)


def draw_uniform(name: str, counters: NDArray[np.uint64]) -> NDArray[np.float64]:
    """A number in [0, 1) for each counter, with 53 random bits."""
    return (draw_bits(name, counters) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def draw_permutation(name: str, counters: NDArray[np.uint64]) -> NDArray[np.int64]:
    """A permutation of the positions of `counters`: by their draws, ties (2^-64) by the counters themselves."""
    counters = np.asarray(counters, np.uint64)
    drawn = draw_bits(name, counters)
    order = np.argsort(drawn)
    ties = (drawn[order[1:]] == drawn[order[:-1]]).any()  # only of equal counters, and then the sort has to be stable
    return np.lexsort((counters, drawn)) if ties else order


UNIT = 2**16
"""A draw of `draw_normal_units` is a whole number of 1 / UNIT."""

_WORDS = 3
_LANES = 4


def draw_normal_units(name: str, count: int) -> NDArray[np.int64]:
    """The first `count` standard normal draws of the stream called `name`, in units of 1 / `UNIT`; shape (count,).

    A logarithm or a cosine may differ in its last digit between two machines, and with it a frozen row. Here a draw is
    the sum of twelve uniform numbers less six (Irwin and Hall 1927; variance 1, excess kurtosis -0.1, never beyond 6),
    in whole numbers of 2^-16, so that it is exact in float32 too."""
    words = draw_bits(name, np.arange(count * _WORDS, dtype=np.uint64)).reshape(count, _WORDS)
    total = np.zeros(count, np.int64)
    for lane in range(_LANES):
        uniform = (words >> np.uint64(16 * lane)) & np.uint64(UNIT - 1)
        total += uniform.astype(np.int64).sum(axis=1)
    # The mean of twelve numbers in 0..65535 is half a unit a number under six times 65536.
    return total - _WORDS * _LANES * (UNIT - 1) // 2


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
    """64 random bits for each counter in a stream of a secret seed; same shape. `MissingExtra` without cryptography.

    Who is shown any number of these draws can neither tell the others nor find the seed: the draw of a counter is the
    first 8 bytes of the AES-256 encryption of its block, under a key that HMAC-SHA256 derives from the seed and the
    stream's name."""
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
