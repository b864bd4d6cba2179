"""Image decoders, one module each: they convert a file (JPEG, PNG ..) to pixels of one size.

A module `<name>.py` has `version()`, the name and version of the library that determines the pixels, and
`decode(content, side)`: RGB pixels of shape (side, side, 3), uint8, of the whole image, resized by bilinear
interpolation with antialiasing, without keeping proportions (as in DomainBed). It is called from many threads, and may
raise any exception. Two decoders, or two versions of one, may differ in the last bits, so a decoder is always chosen by
name, and its version is part of cache keys and run cards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.plugins import load_module

DEFAULT = "pillow"


@dataclass(frozen=True)
class Decoder:
    """A decoder. version: the name and version of its library (`Pillow 11.0.0`)."""

    name: str
    version: str
    decode: Callable[[bytes | memoryview, int], NDArray[np.uint8]]


def load_decoder(name: str = DEFAULT) -> Decoder:
    """Load a decoder of `loaders/decoders/`. Raises `UnknownName` if there is none, `MissingExtra` without its
    library."""
    plugin = load_module("loaders/decoders", name, "decoder")
    return Decoder(name, plugin.version(), plugin.decode)
