"""The noise of rows that all seeds of an entry share, apart from the noise of each seed's own luck with each row.

Seeds answer the same rows. Of the variance of their mean, what is each seed's own, the interaction of seeds and rows,
lies already in how the seeds' means vary. So

    var(mean over S seeds) = shared + var(seeds' means) / S        shared = var(row means) / rows - interaction

by rows, plus by seeds, less what is in both (sample.py; two-way clustering, Cameron, Gelbach and Miller, Journal of
Business & Economic Statistics 2011). What is shared is the covariance of two seeds' means over the same rows. Less than
none, which only chance can make, counts as none.
"""

from __future__ import annotations

from math import isfinite

from .sample import Sample
from .variance_estimate import VarianceEstimate


def estimate_shared_variance(sample: Sample) -> VarianceEstimate:
    """The part of the variance of the seeds' mean that comes from rows and that its seeds share."""
    return subtract_interaction(sample.spread(), sample.interaction())


def subtract_interaction(rows: VarianceEstimate, interaction: float) -> VarianceEstimate:
    """What is left of a row term without what lies in that of the seeds already."""
    # NaN, where rows have no variance that is known, must stay NaN.
    return VarianceEstimate(max(rows.variance - interaction, 0.0), rows.df) if isfinite(rows.variance) else rows
