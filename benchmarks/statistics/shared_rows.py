"""The row variance that is shared by all seeds of an entry, without the interaction of seeds and rows.

All seeds are evaluated on the same rows. The interaction of seeds and rows is already included in the variance of the
seeds' means. Therefore

    var(mean over S seeds) = shared + var(seeds' means) / S        shared = var(row means) / rows - interaction

that is, the row variance plus the seed variance minus their common component (sample.py; two-way clustering, Cameron,
Gelbach and Miller, Journal of Business & Economic Statistics 2011). The shared variance is the covariance of two seeds'
means over the same rows. Negative estimates, which occur by chance, are set to 0.
"""

from __future__ import annotations

from math import isfinite

from .sample import Sample
from .variance_estimate import VarianceEstimate


def estimate_shared_variance(sample: Sample) -> VarianceEstimate:
    """Estimate the variance component of the seeds' mean that comes from rows and is shared by the seeds."""
    return subtract_interaction(sample.spread(), sample.interaction())


def subtract_interaction(rows: VarianceEstimate, interaction: float) -> VarianceEstimate:
    """Subtract from a row variance the interaction that is already included in the seed variance."""
    # NaN, for an unknown row variance, must remain NaN.
    return VarianceEstimate(max(rows.variance - interaction, 0.0), rows.df) if isfinite(rows.variance) else rows
