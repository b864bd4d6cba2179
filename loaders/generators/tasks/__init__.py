"""Algorithmic tasks whose instances have a size: a length, a depth, a number of variables.

A task is a public function `(draws, size, **options) -> Examples` in a file of this folder (or of the same folder of a
user's definitions). It makes one instance of the given size per row of `draws`, and uses no other randomness. The
generator `algorithmic` makes a source of it: `task = "<file>/<function>"`.
"""

from ._contract import Draws, Examples, Tape, require

__all__ = ["Draws", "Examples", "Tape", "require"]
