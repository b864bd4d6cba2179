"""Random numbers by name: the same name gives the same numbers.

NumPy may change what a `Generator` draws from one version to the next, so a number that was simulated may move within
its Monte Carlo error; where bits must never move, core/draws.py has counter-based draws.
"""

from __future__ import annotations

import numpy as np

from ...core.draws import derive_key


def make_generator(name: str) -> np.random.Generator:
    """A generator of the stream called `name`, at its beginning."""
    return np.random.Generator(np.random.PCG64(derive_key(name)))
