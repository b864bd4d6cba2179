"""Named random number streams: the same name gives the same numbers.

NumPy may change the draws of a `Generator` between versions, so simulated results may change within their Monte Carlo
error; core/draws.py has counter-based draws for results that must be bitwise stable.
"""

from __future__ import annotations

import numpy as np

from ...core.draws import derive_key


def make_generator(name: str) -> np.random.Generator:
    """Return a generator at the start of the stream called `name`."""
    return np.random.Generator(np.random.PCG64(derive_key(name)))
