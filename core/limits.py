"""Bounds on files of others, which a reader checks before it spends memory or time on them; docs/security.md lists
them. Submissions to a board have tighter ones (`leaderboard/validation/limits.py`)."""

from __future__ import annotations

MIB = 1 << 20

DOCUMENT_BYTES = 64 * MIB
"""Of a TOML or JSON file that is a definition, card, record or setting, not data."""
DOCUMENT_DEPTH = 100
"""How deep tables and lists, and the parts of dotted keys, may be nested in TOML and JSON, data included."""
INTEGER_BITS = 256
"""Of an integer in TOML."""

EXPANDED_BYTES = 256 * MIB
"""Compressed data that are no larger than this when unpacked are read whatever their ratio."""
EXPANSION = 200
"""The largest ratio of unpacked to packed size of larger ones: archives, compressed files, and columns and arrays of
Parquet, NumPy, MATLAB and HDF5 files, workbooks, and rows of SQLite."""
MEMBERS = 4_000_000
"""Files in an archive."""

PIXELS = 89_478_485
"""Of a picture, width times height: above it Pillow warns of a decompression bomb."""

SAMPLES = 1 << 27
"""Of a sound, at the sampling rate at which a model hears it: over two hours at 16 kHz."""
SAMPLING_RATE = 1 << 20
"""Of a sound, in Hz."""

DEFINITIONS = 10_000
"""That one file with `[[vary]]` stands for."""
GENERATED = 10_000_000
"""The largest whole number in the options of a generator: rows, sizes, a modulus."""
MODEL_LAYERS = 4096
"""Of a network: layers, blocks, stages or experts."""
MODEL_WIDTH = 1 << 20
"""Of a network's layer, in units."""


def may_expand(packed: int, unpacked: int) -> bool:
    """Whether `packed` bytes may become `unpacked` bytes."""
    return unpacked <= max(EXPANDED_BYTES, EXPANSION * packed)
