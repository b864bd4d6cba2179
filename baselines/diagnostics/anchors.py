"""Effective geometry of the classes' features by their anchor points: capacity, dimension, radius and utility.

For a random direction t ~ N(0, I) and random labels y_c = +-1 of the P classes, the nearest v to t that gives every
row of class c the sign y_c is t + sum_i lambda_i y_i x_i with lambda >= 0. The rows with lambda > 0 hold it, and class
c's anchor is their mean s_c = sum_i lambda_i x_i / sum_i lambda_i. With S the anchors, S0 their means over draws, and
S1 = S - S0 (0 for a class without an anchor in this draw),

    1 / capacity = E |v - t|^2 / P
    dimension    = E (S1 t)^T (S1 S1^T)^+ (S1 t) / P
    radius^2     = a / (P dimension - a),  a = E (S1 t)^T (S0 S0^T + S1 S1^T)^+ (S1 t)
    utility      = capacity dimension / (1 + 1 / radius^2)

Features are centred at the mean of all rows, and at most ROWS rows of a class are taken. The paper's own equations were
not available to us: the first three are those of a public implementation of the GLUE geometry which it uses, and
`utility` is our own, the factor by which capacity differs from that of balls of this radius and dimension.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..replicas.rng import derive_stream, draw_normal, draw_uniform
from . import NotApplicable
from ._subject import Subject

CITATION = (
    "Chou, Kirsanov, Yang and Chung, Diagnosing Generalization Failures from Representational Geometry Markers, ICLR "
    "2026 (arXiv:2603.01879)"
)
TASKS = ("classification",)
DRAWS, ROWS = 100, 20


def measure(subject: Subject) -> dict[str, Tensor]:
    """capacity, dimension, radius and utility, each (K,)."""
    centred = subject.features - subject.features.mean(1, keepdim=True)
    classes = torch.unique(subject.classes)
    if len(classes) < 2:
        raise NotApplicable("it needs two classes")
    rows = [torch.nonzero(subject.classes == label)[:ROWS, 0] for label in classes]
    keys = derive_stream(subject.stack.keys, "anchors")
    directions = draw_normal(keys, (DRAWS, centred.shape[2]), torch.float64).cpu().numpy()
    signs = np.where(draw_uniform(derive_stream(keys, "signs"), (DRAWS, len(rows))).cpu().numpy() < 0.5, -1.0, 1.0)
    each = [
        compute_markers([own[some].cpu().numpy() for some in rows], directions[at], signs[at])
        for at, own in enumerate(centred)
    ]
    values = torch.tensor(each, dtype=torch.float64, device=centred.device).T
    return dict(zip(("capacity", "dimension", "radius", "utility"), values, strict=True))


def compute_markers(
    clouds: list[NDArray[np.float64]], directions: NDArray[np.float64], signs: NDArray[np.float64]
) -> tuple[float, float, float, float]:
    """capacity, dimension, radius and utility of P clouds of points (m, width) from directions (draws, width) and signs
    (draws, P); NaN where a divisor is 0."""
    from scipy.optimize import nnls

    points = np.concatenate(clouds)
    cloud = np.repeat(np.arange(len(clouds)), [len(own) for own in clouds])
    member = cloud == np.arange(len(clouds))[:, None]
    anchors, residual = [], 0.0
    for t, y in zip(directions, signs, strict=True):
        weights, _ = nnls((points * y[cloud, None]).T, -t, maxiter=30 * len(points))
        residual += float(np.square((weights * y[cloud]) @ points).sum())
        shares = member * weights
        total = shares.sum(1, keepdims=True)
        anchors.append(np.divide(shares @ points, total, out=np.full((len(clouds), len(t)), np.nan), where=total > 0))
    every = np.stack(anchors)
    present = ~np.isnan(every)
    centres = np.where(present, every, 0.0).sum(0) / np.maximum(present.sum(0), 1)
    axes = np.where(present, every - centres, 0.0)
    along = np.einsum("dpw,dw->dp", axes, directions)
    gram = axes @ axes.transpose(0, 2, 1)
    explained, shared = (
        float(np.einsum("dp,dpq,dq->d", along, np.linalg.pinv(own, rcond=1e-9, hermitian=True), along).mean())
        for own in (gram, centres @ centres.T + gram)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        capacity = np.float64(len(directions) * len(clouds)) / residual
        dimension = np.float64(explained) / len(clouds)
        squared = np.float64(shared) / (explained - shared)
        utility = capacity * dimension / (1 + 1 / squared)
    return float(capacity), float(dimension), float(np.sqrt(squared)), float(utility)
