"""Groupwise regret: an online regression for each group of rows, and sleeping experts over those of a row's groups.

Acharya, Arunachaleswaran, Kannan, Roth and Ziani, "Oracle efficient algorithms for groupwise regret" (ICLR 2024,
arXiv:2310.04652): each group has one learner, which sees the rounds of its members only; those of the groups that a row
is in are combined by AdaNormalHedge with sleeping experts (Luo and Schapire, "Achieving all with no parameters", COLT
2015, arXiv:1502.05934). The learners are the forward algorithm (Vovk 2001; Azoury and Warmuth 2001) of linear
regression, clipped to [0, 1]. After T rounds, on every group g with n_g of them, with N groups, losses in [0, 1] and
labels in [0, 1]:

    loss_g <= min over u of (loss_g(u) + ridge |u|^2) + ln det(I + sum of x x' / ridge) + sqrt(3 C_g ln(N B)),
    B = 5/2 + 3/2 ln(1 + T),    C_g <= n_g: the sum of the absolute differences between the loss and the learner's

Here labels are classes, each an indicator; the loss is the squared error, its mean over the classes.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ..core.errors import ModelError

Floats = NDArray[np.float64]

_WIDEST = 512


def compute_weights(regrets: Floats, sizes: Floats) -> Floats:
    """AdaNormalHedge's weights from each expert's regret R and the sum C of its absolute regrets, before they are
    normalised: (Phi(R + 1, C + 1) - Phi(R - 1, C + 1)) / 2, with Phi(R, C) = exp(max(R, 0)^2 / 3 C)."""
    above, below = ((regrets + step).clip(min=0) ** 2 / (3 * (sizes + 1)) for step in (1, -1))
    weights: Floats = (np.exp(above) - np.exp(below)) / 2
    return weights


class SleepingExperts(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose training rows are rounds, in their order: each is predicted before its label is seen.

    The groups are all rows, and the rows with a 1 in a column that has only 0 and 1 in training (a category's value).
    After `fit`: `round_predictions_` (T, classes), `memberships_` (T, groups), `regrets_` and `sizes_` (groups,), the
    regret against each group's learner and the sum of its absolute values. `ModelError` for more than 512 columns."""

    def __init__(self, ridge: float = 1.0) -> None:
        self.ridge = ridge

    def fit(self, features: Floats, labels: NDArray[Any]) -> Self:
        """Play a round with each row of features (n, k) and its label (n,)."""
        features = np.asarray(features, np.float64)
        if features.shape[1] > _WIDEST:
            raise ModelError(
                f"sleeping experts read tables of up to {_WIDEST} columns, and these are {features.shape[1]}"
            )
        self.classes_, codes = np.unique(labels, return_inverse=True)
        targets = np.eye(len(self.classes_))[codes]
        self.columns_ = np.flatnonzero(np.isin(features, (0, 1)).all(axis=0))
        self.memberships_ = self._find_memberships(features)
        groups = self.memberships_.shape[1]
        rows = np.concatenate([features, np.ones((len(features), 1))], axis=1)
        width = rows.shape[1]
        self.inverse_ = np.repeat(np.eye(width)[None] / self.ridge, groups, axis=0)
        self.moments_ = np.zeros((groups, width, len(self.classes_)))
        self.regrets_, self.sizes_ = np.zeros(groups), np.zeros(groups)
        self.round_predictions_ = np.zeros_like(targets)
        for turn, (row, target) in enumerate(zip(rows, targets, strict=True)):
            awake = np.flatnonzero(self.memberships_[turn])
            # As an expert's learner sees only its own rounds, a sleeping one does not change.
            known = self.inverse_[awake] @ row
            grown = 1 + known @ row
            advice = (np.einsum("gk,gkc->gc", known, self.moments_[awake]) / grown[:, None]).clip(0, 1)
            weights = self._weigh(self.memberships_[turn : turn + 1, awake], awake)[0]
            self.round_predictions_[turn] = weights @ advice
            losses = ((advice - target) ** 2).mean(axis=1)
            regrets = weights @ losses - losses
            self.regrets_[awake] += regrets
            self.sizes_[awake] += np.abs(regrets)
            self.inverse_[awake] -= known[:, :, None] * known[:, None] / grown[:, None, None]
            self.moments_[awake] += row[:, None] * target
        return self

    def predict_proba(self, features: Floats) -> Floats:
        """What the learners say after the last round, (n, classes); nothing is learnt from these rows."""
        features = np.asarray(features, np.float64)
        rows = np.concatenate([features, np.ones((len(features), 1))], axis=1)
        weights = self._weigh(self._find_memberships(features), slice(None))
        scores: Floats = np.full((len(rows), len(self.classes_)), 1e-12)  # for rows of which no learner says any class
        for group, (inverse, moments) in enumerate(zip(self.inverse_, self.moments_, strict=True)):
            known = rows @ inverse
            advice = (known @ moments / (1 + (known * rows).sum(axis=1, keepdims=True))).clip(0, 1)
            scores += weights[:, [group]] * advice
        scores /= scores.sum(axis=1, keepdims=True)
        return scores

    def predict(self, features: Floats) -> NDArray[Any]:
        """The likeliest class of each row, (n,)."""
        return self.classes_[self.predict_proba(features).argmax(axis=1)]  # type: ignore[no-any-return]

    def _weigh(self, members: NDArray[np.bool_], groups: Any) -> Floats:
        """The share of each of `groups` for rows, from their memberships, (n, groups): alike for a row without a group
        whose learner has done better than the mixture."""
        weights = members * compute_weights(self.regrets_[groups], self.sizes_[groups])
        weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, members)
        return weights / weights.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]

    def _find_memberships(self, features: Floats) -> NDArray[np.bool_]:
        everyone = np.ones((len(features), 1), bool)
        return np.concatenate([everyone, features[:, self.columns_] == 1], axis=1)
