"""In-context regression: pairs (x, y) of a linear function, and one more x: what is its y?

The question of Garg et al., "What Can Transformers Learn In-Context? A Case Study of Simple Function Classes" (NeurIPS
2022, arXiv:2208.01066). Each row has a function of its own, y = w . x + noise, with w normal of variance 1 in each of
`width` coordinates; inputs x are normal of variance 1 as well, and in some rows otherwise (section 4 of the paper and
its appendix: prompts that depart from those of training). Noise as in Liu et al., "Towards Better Understanding of
In-Context Learning Ability from In-Context Uncertainty Quantification" (arXiv:2405.15115), who move inputs and the
number of pairs; there its size differs by row, here it is one.

However inputs move, the best prediction in squared error is the same function of the prompt: w is normal, and so is the
noise, hence ridge regression on the row's own pairs with a penalty of the noise's variance. (The draws are those of
`core/normal.py`, normal but for their tails.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_below
from ...core.errors import BadDefinition
from ...core.normal import UNIT, draw_normal_units
from ._sampling import make_counters

if TYPE_CHECKING:
    import pyarrow as pa

Reals = NDArray[np.float64]


def rows(*, width: int, most_pairs: int, noise: float, regimes: list[dict[str, str | int]], seed: str) -> pa.Table:
    """Rows of some regimes, each `{ name, inputs, rows, least, most }`: `rows` of them with `least` to `most` pairs,
    drawn evenly, and inputs as a key of `INPUTS` says.

    Columns: `prompt` (float32, [most_pairs + 1, width + 2]), `target` (float64), `pairs`, `inputs` and `regime`. A
    line of a prompt is x, then y, then 1; lines without a pair are 0; the last is the query: x, then 0, 0. noise: the
    standard deviation of each y, the target's too.
    """
    import pyarrow as pa

    prompts, targets, lengths, names, shapes = [], [], [], [], []
    for regime in regimes:
        name, inputs = str(regime["name"]), str(regime["inputs"])
        count, least, most = (int(regime[key]) for key in ("rows", "least", "most"))
        if inputs not in INPUTS:
            raise BadDefinition(f"in_context_regression: inputs = {inputs!r}: there are {', '.join(INPUTS)}")
        if not 0 < least <= most <= most_pairs:
            raise BadDefinition(f"in_context_regression: {name}: {least} to {most} pairs, of at most {most_pairs}")
        prompt, target, pairs = _draw_prompts(f"{seed}/{name}", count, width, most_pairs, noise, inputs, (least, most))
        prompts.append(prompt)
        targets.append(target)
        lengths.append(pairs)
        names += [name] * count
        shapes += [inputs] * count
    flat = pa.array(np.concatenate(prompts).ravel())
    return pa.table(
        {
            "prompt": pa.FixedSizeListArray.from_arrays(flat, (most_pairs + 1) * (width + 2)),
            "target": np.concatenate(targets),
            "pairs": np.concatenate(lengths),
            "inputs": shapes,
            "regime": names,
        }
    )


def _draw_prompts(
    stream: str, count: int, width: int, most_pairs: int, noise: float, inputs: str, between: tuple[int, int]
) -> tuple[NDArray[np.float32], Reals, NDArray[np.int64]]:
    """Prompts (count, most_pairs + 1, width + 2), targets (count,) and numbers of pairs (count,)."""
    lines = most_pairs + 1
    x = INPUTS[inputs](stream, _draw_normal(f"{stream}/x", count, lines, width))
    weights = _draw_normal(f"{stream}/w", count, 1, width)
    y = _dot_product(weights, x) + noise * _draw_normal(f"{stream}/noise", count, lines, 1)[..., 0]
    pairs = between[0] + draw_below(f"{stream}/pairs", make_counters(count), between[1] - between[0] + 1)
    prompt = np.concatenate([x, y[..., None], np.ones_like(y)[..., None]], axis=2)
    prompt[:, :most_pairs][np.arange(most_pairs) >= pairs[:, None]] = 0
    prompt[:, most_pairs, width:] = 0
    return prompt.astype(np.float32), y[:, most_pairs].copy(), pairs


def _draw_normal(stream: str, *shape: int) -> Reals:
    return (draw_normal_units(stream, int(np.prod(shape))) / UNIT).reshape(shape)


def _dot_product(left: Reals, right: Reals) -> Reals:
    """The scalar products along the last axis, summed in order: a BLAS may sum otherwise on another machine."""
    total: Reals = left[..., 0] * right[..., 0]
    for index in range(1, right.shape[-1]):
        total = total + left[..., index] * right[..., index]
    return total


def _keep_inputs(stream: str, x: Reals) -> Reals:
    return x


def _skew_inputs(stream: str, x: Reals) -> Reals:
    """Normal with variances as 1, 1/4, 1/9 .. along axes of the row's own, that sum to the width."""
    width = x.shape[2]
    variances = 1 / np.arange(1.0, width + 1) ** 2
    scales = np.sqrt(variances * width / np.cumsum(variances)[-1])
    return _map_to_axes(_draw_axes(stream, len(x), width), x * scales)


def _project_to_subspace(stream: str, x: Reals) -> Reals:
    """Normal of variance 1 in a plane of the row's own, of half the coordinates (rounded down), 0 across it."""
    half = x.shape[2] // 2
    return _map_to_axes(_draw_axes(stream, len(x), x.shape[2])[:, :half], x[..., :half])


def _restrict_to_orthants(stream: str, x: Reals) -> Reals:
    """The pairs' inputs have the signs of one orthant of the row's own, the query's any."""
    signs = np.where(_draw_normal(f"{stream}/orthant", len(x), 1, x.shape[2]) < 0, -1.0, 1.0)
    return np.concatenate([np.abs(x[:, :-1]) * signs, x[:, -1:]], axis=1)


def _triple_inputs(stream: str, x: Reals) -> Reals:
    """Three times as large."""
    return 3 * x


def _triple_query(stream: str, x: Reals) -> Reals:
    """The query alone is three times as large."""
    return np.concatenate([x[:, :-1], 3 * x[:, -1:]], axis=1)


INPUTS: dict[str, Callable[[str, Reals], Reals]] = {
    "standard": _keep_inputs,
    "skewed": _skew_inputs,
    "subspace": _project_to_subspace,
    "orthants": _restrict_to_orthants,
    "tripled": _triple_inputs,
    "tripled query": _triple_query,
}
"""What becomes of normal inputs x (n, lines, width), the query's last: of the same shape."""


def _draw_axes(stream: str, count: int, width: int) -> Reals:
    """Random orthonormal axes of each row, (count, width, width): Gram and Schmidt's, of normal draws."""
    basis = _draw_normal(f"{stream}/axes", count, width, width)
    for axis in range(width):
        for earlier in range(axis):
            basis[:, axis] -= _dot_product(basis[:, axis], basis[:, earlier])[:, None] * basis[:, earlier]
        basis[:, axis] /= np.sqrt(_dot_product(basis[:, axis], basis[:, axis]))[:, None]
    return basis


def _map_to_axes(axes: Reals, coordinates: Reals) -> Reals:
    """The points of these coordinates (n, lines, k) along axes (n, k, width): (n, lines, width)."""
    return np.stack([_dot_product(coordinates, axes[:, None, :, index]) for index in range(axes.shape[2])], axis=2)
