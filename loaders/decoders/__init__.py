"""Decoders of pictures, one file each: what turns a file (JPEG, PNG ..) into pixels of one size.

A file `<name>.py` has `version()`, the name and version of the library that decides the pixels, and `decode(content,
side)`: RGB pixels of shape (side, side, 3), uint8, the whole picture resized by bilinear interpolation over all pixels
that one covers, whatever its proportions (as DomainBed resizes). It is called from many threads, and may raise
anything. Two decoders, or two versions of one, may differ in the last bits: so a decoder is chosen by its name, never
silently, and its version stands in the keys of the cache and on run cards.
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
    """A decoder. version: of its library, with its name (`Pillow 11.0.0`)."""

    name: str
    version: str
    decode: Callable[[bytes | memoryview, int], NDArray[np.uint8]]


def load_decoder(name: str = DEFAULT) -> Decoder:
    """The decoder of a file of `loaders/decoders/`. `UnknownName` where there is none, `MissingExtra` where its library
    is absent."""
    plugin = load_module("loaders/decoders", name, "decoder")
    return Decoder(name, plugin.version(), plugin.decode)
