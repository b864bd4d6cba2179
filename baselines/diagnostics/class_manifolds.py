"""The geometry of the classes' features, and how many classes per dimension a linear readout could separate.

A class's features are a cloud of points around a centre, measured from the mean of all rows in units of the centre's
norm. With T ~ N(0, I) and s(T) the point of the cloud farthest along T, seen from the centre,

    radius^2 = E |s(T)|^2,   dimension = E (T . s(T) / |s(T)|)^2

with T in the span of the class's points: the Gaussian geometry of Chung et al. (2018). `compute_capacity` is that of
balls of this radius and dimension (Chung et al. 2016, the replica formula at margin 0):

    1 / capacity = E_t [ int_{-t/R}^{tR} Dz (tR - z)^2 / (1 + R^2) + int_{-inf}^{-t/R} Dz (z^2 + t^2) ],  t ~ chi_D

2 for points, falling to 1 / D for large balls; over classes the harmonic mean is taken (Cohen et al. 2020). It is an
estimate from the given training rows: correlations between centres are not removed, classes with one row are left
out, and clouds are assumed to be in general position.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..replicas.rng import derive_stream, draw_normal
from . import NotApplicable
from ._subject import Subject

CITATION = (
    "Chung, Lee and Sompolinsky, Linear readout of object manifolds, Physical Review E 2016 (arXiv:1512.01834); "
    "Chung, Lee and Sompolinsky, Classification and Geometry of General Perceptual Manifolds, Physical Review X "
    "2018 (arXiv:1710.06487); Cohen, Chung, Lee and Sompolinsky, Separability and geometry of object manifolds in "
    "deep neural networks, Nature Communications 2020"
)
TASKS = ("classification",)
DRAWS = 300
"""Directions T for each class."""
NODES = 200
"""Quadrature points over t."""


def measure(subject: Subject) -> dict[str, Tensor]:
    """radius, dimension (means over classes) and capacity, each (K,); NaN if a centre is the mean of all rows."""
    features, classes = subject.features, subject.classes
    several = [label for label, count in enumerate(torch.bincount(classes).tolist()) if count > 1]
    if len(several) < 2:
        raise NotApplicable("it needs two classes with two training rows each")
    centred = features - features.mean(1, keepdim=True)
    each = []
    for label in several:
        keys = derive_stream(subject.stack.keys, "class_manifolds", label)
        directions = draw_normal(keys, (DRAWS, int((classes == label).sum()) - 1), torch.float64)
        each.append(compute_geometry(centred[:, classes == label], directions))
    radius, dimension = (torch.stack(values) for values in zip(*each, strict=True))
    inverse = torch.tensor(
        [
            [1 / compute_capacity(r, d) for r, d in zip(*own, strict=True)]
            for own in zip(radius.T.tolist(), dimension.T.tolist(), strict=True)
        ],
        dtype=torch.float64,
    )
    return {"radius": radius.mean(0), "dimension": dimension.mean(0), "capacity": 1 / inverse.mean(1).to(radius.device)}


def compute_geometry(points: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Gaussian radius and dimension, each (K,), of clouds (K, m, width), from directions (K, draws, m - 1) in the span
    of each cloud's points."""
    centre = points.mean(1, keepdim=True)
    spread = points - centre
    # The points in an orthonormal basis of their span: m points around their mean span at most m - 1 dimensions.
    left, sizes, _ = torch.linalg.svd(spread, full_matrices=False)
    rank = min(directions.shape[2], spread.shape[2])
    inside = sizes[:, None, :rank] > sizes[:, :1, None] * len(points[0]) * torch.finfo(sizes.dtype).eps
    laid = left[..., :rank] * sizes[:, None, :rank] / centre.norm(dim=2, keepdim=True)
    along = directions[..., :rank] * inside
    widths, which = (along @ laid.mT).max(2)
    farthest = laid.gather(1, which[..., None].expand(-1, -1, rank))
    norms = farthest.norm(dim=2)
    reach = torch.where(norms > 0, widths / norms.clamp(min=torch.finfo(norms.dtype).tiny), 0.0)
    return norms.square().mean(1).sqrt(), reach.square().mean(1)


def compute_capacity(radius: float, dimension: float) -> float:
    """The capacity of balls of a radius (in units of their centres' norm) and a dimension, which may be fractional."""
    if not (math.isfinite(radius) and math.isfinite(dimension)):
        return math.nan
    if radius == 0 or dimension == 0:
        return 2.0
    from scipy.stats import norm

    t, weight = _make_chi_quadrature(dimension)
    low, high = -t / radius, t * radius
    # Moments of a standard normal between the two limits.
    mass = norm.cdf(high) - norm.cdf(low)
    first = norm.pdf(low) - norm.pdf(high)
    second = mass + low * norm.pdf(low) - high * norm.pdf(high)
    touching = (high**2 * mass - 2 * high * first + second) / (1 + radius**2)
    inside = norm.cdf(low) * (1 + t**2) - low * norm.pdf(low)
    return float(1 / (weight * (touching + inside)).sum())


def _make_chi_quadrature(dimension: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights for means over the chi distribution, by Gauss's rule in log t: for few degrees its density has
    a cusp at 0, which the logarithm removes."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    low = math.log(1e-12) / dimension + min(0.0, 0.5 * math.log(dimension))
    high = math.log(math.sqrt(dimension) + 10)
    u = low + (high - low) * (nodes + 1) / 2
    log_density = dimension * u - np.exp(2 * u) / 2 - (dimension / 2 - 1) * math.log(2) - math.lgamma(dimension / 2)
    density_weights = weights * (high - low) / 2 * np.exp(log_density)
    return np.exp(u), density_weights / density_weights.sum()
