"""In-context regression: pairs (x, y) of a linear function and a further x, whose y is to be predicted.

The question of Garg et al., "What Can Transformers Learn In-Context? A Case Study of Simple Function Classes" (NeurIPS
2022, arXiv:2208.01066). Each row has its own function, y = w . x + noise, with w normal of variance 1 in each of
`width` coordinates. Inputs x are normal of variance 1 too, except in rows with a shift of the inputs (section 4 of the
paper and its appendix: prompts that differ from those of training). Noise as in Liu et al., "Towards Better
Understanding of In-Context Learning Ability from In-Context Uncertainty Quantification" (arXiv:2405.15115), who shift
tasks, inputs and the number of pairs, and ask for both the mean and the deviation of y given x: of a regime with
`deviation`, each row has its own size of noise, and every other row asks for it instead of y.

Under every shift of the inputs, the best prediction in squared error is the same function of the prompt: since w and
the noise are normal, it is ridge regression on the row's own pairs with the noise's variance as penalty; where that
differs by row, the average over its posterior (`baselines/networks/prompt_bayes.py`). (The draws are
those of `core/draws.py`, which are normal except for their tails.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_below, draw_uniform
from ...core.errors import BadDefinition
from ._rows import draw_normal, make_counters, stack_blocks

Reals = NDArray[np.float64]


def rows(*, width: int, most_pairs: int, noise: float, regimes: list[dict[str, Any]], seed: str) -> pa.Table:
    """Rows of some regimes, each `{ name, inputs, rows, least, most }`: `rows` of them with `least` to `most` pairs,
    drawn uniformly, and inputs of a kind in `INPUTS`. Optional: `weights`, by which w is multiplied, and `deviation =
    [least, most]`, between which the noise of each row is drawn uniformly instead of `noise`.

    Columns: `prompt` (float32, [most_pairs + 1, width + 2]), `target` (float64), `pairs`, `inputs`, `regime` and
    `question` (`mean` or `deviation`, and the regime). A line of a prompt is x, then y, then 1; lines without a pair
    are 0; the last is the query: x, then 0, 0; or x, then 1, 0, if the target is the noise's deviation. noise: the
    standard deviation of the noise of each y, including the target.
    """
    blocks = []
    for regime in regimes:
        name, inputs = str(regime["name"]), str(regime["inputs"])
        count, least, most = (int(regime[key]) for key in ("rows", "least", "most"))
        if not 0 < least <= most <= most_pairs:
            raise BadDefinition(
                f"in_context_regression: {name}: least = {least}, most = {most}: use 1 <= least <= most <= {most_pairs}"
            )
        stream, asks = f"{seed}/{name}", np.zeros(count, np.bool_)
        deviation = np.full(count, float(noise))
        if "deviation" in regime:
            low, high = regime["deviation"]
            deviation = low + (high - low) * draw_uniform(f"{stream}/deviation", make_counters(count))
            asks[1::2] = True
        scale = float(regime.get("weights", 1.0))
        prompt, target, pairs = _draw_prompts(stream, count, width, most_pairs, deviation, inputs, (least, most), scale)
        prompt[:, -1, width] = asks
        target[asks] = deviation[asks]
        question = np.where(asks, f"deviation, {name}", f"mean, {name}").astype(object)
        columns = {"prompt": prompt, "target": target, "pairs": pairs, "inputs": inputs, "regime": name}
        blocks.append(columns | {"question": question})
    return stack_blocks(blocks)


def _draw_prompts(
    stream: str,
    count: int,
    width: int,
    most_pairs: int,
    deviation: Reals,
    inputs: str,
    between: tuple[int, int],
    scale: float,
) -> tuple[NDArray[np.float32], Reals, NDArray[np.int64]]:
    """Draw prompts (count, most_pairs + 1, width + 2), targets (count,) and numbers of pairs (count,)."""
    lines = most_pairs + 1
    x = INPUTS[inputs](stream, draw_normal(f"{stream}/x", count, lines, width))
    weights = scale * draw_normal(f"{stream}/w", count, 1, width)
    y = _dot_product(weights, x) + deviation[:, None] * draw_normal(f"{stream}/noise", count, lines, 1)[..., 0]
    pairs = between[0] + draw_below(f"{stream}/pairs", make_counters(count), between[1] - between[0] + 1)
    prompt = np.concatenate([x, y[..., None], np.ones_like(y)[..., None]], axis=2)
    prompt[:, :most_pairs][np.arange(most_pairs) >= pairs[:, None]] = 0
    prompt[:, most_pairs, width:] = 0
    return prompt.astype(np.float32), y[:, most_pairs].copy(), pairs


def _dot_product(left: Reals, right: Reals) -> Reals:
    """Return scalar products along the last axis, summed in order, since the order of a BLAS depends on the machine."""
    total: Reals = left[..., 0] * right[..., 0]
    for index in range(1, right.shape[-1]):
        total = total + left[..., index] * right[..., index]
    return total


def _keep_inputs(stream: str, x: Reals) -> Reals:
    return x


def _skew_inputs(stream: str, x: Reals) -> Reals:
    """Normal with variances proportional to 1, 1/4, 1/9 .. along random axes of each row, with the width as their
    sum."""
    width = x.shape[2]
    variances = 1 / np.arange(1.0, width + 1) ** 2
    scales = np.sqrt(variances * width / np.cumsum(variances)[-1])
    return _map_to_axes(_draw_axes(stream, len(x), width), x * scales)


def _project_to_subspace(stream: str, x: Reals) -> Reals:
    """Normal of variance 1 in a random subspace of each row with half the dimensions (rounded down), 0 across it."""
    half = x.shape[2] // 2
    return _map_to_axes(_draw_axes(stream, len(x), x.shape[2])[:, :half], x[..., :half])


def _restrict_to_orthants(stream: str, x: Reals) -> Reals:
    """The pairs' inputs are in one random orthant of each row; the query's may have any signs."""
    signs = np.where(draw_normal(f"{stream}/orthant", len(x), 1, x.shape[2]) < 0, -1.0, 1.0)
    return np.concatenate([np.abs(x[:, :-1]) * signs, x[:, -1:]], axis=1)


def _triple_inputs(stream: str, x: Reals) -> Reals:
    """All inputs are three times as large."""
    return 3 * x


def _triple_query(stream: str, x: Reals) -> Reals:
    """Only the query is three times as large."""
    return np.concatenate([x[:, :-1], 3 * x[:, -1:]], axis=1)


INPUTS: dict[str, Callable[[str, Reals], Reals]] = {
    "standard": _keep_inputs,
    "skewed": _skew_inputs,
    "subspace": _project_to_subspace,
    "orthants": _restrict_to_orthants,
    "tripled": _triple_inputs,
    "tripled query": _triple_query,
}
"""Transformations of normal inputs x (n, lines, width), with the query last, to inputs of the same shape."""


def _draw_axes(stream: str, count: int, width: int) -> Reals:
    """Draw random orthonormal axes for each row, (count, width, width), by Gram-Schmidt on normal draws."""
    basis = draw_normal(f"{stream}/axes", count, width, width)
    for axis in range(width):
        for earlier in range(axis):
            basis[:, axis] -= _dot_product(basis[:, axis], basis[:, earlier])[:, None] * basis[:, earlier]
        basis[:, axis] /= np.sqrt(_dot_product(basis[:, axis], basis[:, axis]))[:, None]
    return basis


def _map_to_axes(axes: Reals, coordinates: Reals) -> Reals:
    """Return the points (n, lines, width) with coordinates (n, lines, k) along axes (n, k, width)."""
    return np.stack([_dot_product(coordinates, axes[:, None, :, index]) for index in range(axes.shape[2])], axis=2)
