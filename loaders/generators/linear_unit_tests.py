"""The linear unit tests of invariance (Aubin et al. 2021, arXiv 2102.10867), with a counter-based generator.

Three problems of ten inputs, of which five (x) are invariant while the relation of the other five (z) to the target
depends on the environment: 1, cause and effect of a target whose noise differs in size between environments; 2, cows
and camels; 3, a small invariant margin and a large spurious one. Each also has a scrambled version, multiplied by a
random orthogonal matrix. In the test rows z is shuffled among the rows of its environment, so that only x is
informative. Noise is from `core/draws.py`; products are summed in a fixed order, so that every platform gives the same
bytes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_permutation, draw_uniform
from ._rows import draw_normal, stack_blocks

SEED_MAKES = "the weights of its environments"

Matrix = NDArray[np.float64]

SIZE = 5
"""The number of invariant inputs, and of spurious ones."""

_NOISE = (0.1, 1.5, 2.0)
_COWS = ((0.95, 0.3), (0.97, 0.5), (0.99, 0.7))
_MARGIN = 0.1
_ENVIRONMENTS = 3


def rows(*, example: int, scrambled: bool, train_rows: int, test_rows: int, seed: str) -> pa.Table:
    """Columns `inputs` (float32, 10: x, then z, unless scrambled), `target` (float64 for example 1, else 0 or 1) and
    `environment`: E0, E1, E2 with `train_rows` rows each, and `E0 shuffled` .. with `test_rows` each."""
    turn = _draw_orthogonal(f"{seed}/scramble", 2 * SIZE) if scrambled else np.eye(2 * SIZE)
    blocks = []
    for environment in range(_ENVIRONMENTS):
        for name, count in ((f"E{environment}", train_rows), (f"E{environment} shuffled", test_rows)):
            x, z, target = _EXAMPLES[example](environment, count, seed, f"{seed}/{name}")
            if name.endswith("shuffled"):
                z = z[draw_permutation(f"{seed}/{name}/order", np.arange(count, dtype=np.uint64))]
            inputs = _multiply_matrices(np.concatenate([x, z], axis=1), turn).astype(np.float32)
            blocks.append({"inputs": inputs, "target": target, "environment": name})
    return stack_blocks(blocks)


def _multiply_matrices(left: Matrix, right: Matrix) -> Matrix:
    """Return the matrix product, summed in order, since the order of a BLAS depends on the machine."""
    total = np.zeros((len(left), right.shape[1]))
    for inner in range(len(right)):
        total += left[:, inner, None] * right[inner]
    return total


def _draw_orthogonal(stream: str, size: int) -> Matrix:
    """Draw a random orthogonal matrix by Gram-Schmidt on normal draws."""
    basis = draw_normal(stream, size, size)
    for row in range(size):
        for earlier in range(row):
            basis[row] -= _sum_in_order(basis[row] * basis[earlier]) * basis[earlier]
        basis[row] /= np.sqrt(_sum_in_order(basis[row] * basis[row]))
    return basis


def _sum_in_order(values: Matrix) -> float:
    """Sum from left to right."""
    return float(np.cumsum(values)[-1])


def _make_cause_and_effect(environment: int, rows: int, seed: str, stream: str) -> tuple[Matrix, Matrix, Matrix]:
    spread = _NOISE[environment]
    cause, effect = (draw_normal(f"{seed}/{name}", SIZE, SIZE) / SIZE for name in ("cause", "effect"))
    x = spread * draw_normal(f"{stream}/x", rows, SIZE)
    y = _multiply_matrices(x, cause) + spread * draw_normal(f"{stream}/y", rows, SIZE)
    z = _multiply_matrices(y, effect) + draw_normal(f"{stream}/z", rows, SIZE)
    return x, z, _multiply_matrices(y, np.ones((SIZE, 1)))[:, 0]


def _make_cows_and_camels(
    environment: int, rows: int, seed: str, stream: str
) -> tuple[Matrix, Matrix, NDArray[np.int64]]:
    usual, cows = _COWS[environment]
    counter = np.arange(rows, dtype=np.uint64)
    animal = np.where(draw_uniform(f"{stream}/animal", counter) < cows, 1.0, -1.0)
    ground = np.where(draw_uniform(f"{stream}/ground", counter) < usual, animal, -animal)
    narrow = 1 / np.sqrt(10.0)
    # The foreground is scaled down a hundredfold against the background.
    x = (narrow * draw_normal(f"{stream}/x", rows, SIZE) + animal[:, None]) / 100
    z = narrow * draw_normal(f"{stream}/z", rows, SIZE) + ground[:, None]
    return x, z, (_multiply_matrices(x, np.ones((SIZE, 1)))[:, 0] > 0).astype(np.int64)


def _make_margins(environment: int, rows: int, seed: str, stream: str) -> tuple[Matrix, Matrix, NDArray[np.int64]]:
    centre = draw_normal(f"{seed}/centre {environment}", 1, SIZE)
    target = np.arange(rows) % 2
    sign = np.where(target == 0, 1.0, -1.0)[:, None]
    x = _MARGIN * draw_normal(f"{stream}/x", rows, SIZE) + _MARGIN * sign
    z = _MARGIN * draw_normal(f"{stream}/z", rows, SIZE) + centre * sign
    return x, z, target


_EXAMPLES = {1: _make_cause_and_effect, 2: _make_cows_and_camels, 3: _make_margins}
