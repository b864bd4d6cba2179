"""Groupwise regret against brute force: the forward algorithm, AdaNormalHedge's weights, and the bound on each group."""

import numpy as np
import pytest
from farshift.baselines.sleeping_experts import SleepingExperts, compute_weights
from farshift.core.errors import ModelError
from numpy.linalg import inv, lstsq, slogdet


def draw_rounds(kind: str, rows: int = 300):
    """Two overlapping binary groups and a number; what the number means differs by group."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, (rows, 2)).astype(float)
    number = rng.uniform(-1, 1, rows)
    by_group = number * (1 - 2 * groups[:, 0])
    labels = {
        "apart": by_group > 0,
        "noise": rng.integers(0, 2, rows),
        "drift": by_group * np.where(np.arange(rows) < rows // 2, 1, -1) > 0,
    }[kind]
    return np.column_stack([groups, number]), labels.astype(int)


def play(features, labels, ridge):
    """The same game by other means: each learner solves its least squares anew in every round."""
    rows, targets = np.column_stack([features, np.ones(len(features))]), np.eye(2)[labels]
    active = [[0, *(1 + np.flatnonzero(row[:2] == 1))] for row in features]
    regret, size, said = [0.0] * 3, [0.0] * 3, []
    for turn, awake in enumerate(active):
        advice, weights = {}, {}
        for group in awake:
            past = [t for t in range(turn) if group in active[t]]
            x, y = rows[past], targets[past]
            matrix = ridge * np.eye(4) + x.T @ x + np.outer(rows[turn], rows[turn])
            advice[group] = np.clip(rows[turn] @ inv(matrix) @ (x.T @ y), 0, 1)
            up, down = (max(0, regret[group] + step) ** 2 / (3 * (size[group] + 1)) for step in (1, -1))
            weights[group] = (np.exp(up) - np.exp(down)) / 2
        weights = weights if any(weights.values()) else dict.fromkeys(awake, 1.0)
        total = sum(weights.values())
        losses = {group: ((advice[group] - targets[turn]) ** 2).mean() for group in awake}
        mixed = sum(weights[group] * losses[group] for group in awake) / total
        said.append(sum(weights[group] * advice[group] for group in awake) / total)
        for group in awake:
            regret[group] += mixed - losses[group]
            size[group] += abs(mixed - losses[group])
    return np.array(said), np.array(regret)


def test_every_round_is_what_brute_force_says():
    features, labels = draw_rounds("apart", 60)
    model = SleepingExperts(0.5).fit(features, labels)
    said, regret = play(features, labels, 0.5)
    assert np.allclose(model.round_predictions_, said, rtol=0, atol=1e-9)
    assert np.allclose(model.regrets_, regret, rtol=0, atol=1e-9)
    assert model.memberships_.sum(axis=1).tolist() == [1 + row[:2].sum() for row in features]


@pytest.mark.parametrize("kind", ["apart", "noise", "drift"])
def test_the_loss_on_every_group_is_within_the_papers_bound_of_the_best_line_in_hindsight(kind):
    features, labels = draw_rounds(kind)
    ridge, targets = 1.0, np.eye(2)[labels]
    model = SleepingExperts(ridge).fit(features, labels)
    rows = np.column_stack([features, np.ones(len(features))])
    losses = ((model.round_predictions_ - targets) ** 2).mean(axis=1)
    gap = 3 * np.log(3 * (2.5 + 1.5 * np.log(1 + len(rows))))
    for group, own in enumerate(model.memberships_.T):
        x, y = rows[own], targets[own]
        widened = np.concatenate([x, np.sqrt(ridge) * np.eye(4)]), np.concatenate([y, np.zeros((4, 2))])
        best = lstsq(*widened, rcond=None)[0]
        hindsight = (((x @ best - y) ** 2).sum() + ridge * (best**2).sum()) / 2
        learner = slogdet(np.eye(4) + x.T @ x / ridge)[1]
        assert losses[own].sum() <= hindsight + learner + np.sqrt(gap * model.sizes_[group])
        assert model.sizes_[group] <= own.sum()


def test_it_does_better_on_groups_of_opposite_meanings_than_one_regression_for_all():
    features, labels = draw_rounds("apart")
    features = np.column_stack([1 - features[:, 0], features])  # a category of two values, each a group
    model = SleepingExperts().fit(features, labels)
    alone = SleepingExperts().fit(features[:, 3:], labels)  # no binary column: one group
    for own in (features[:, 0] == 1, features[:, 1] == 1):
        late = own & (np.arange(len(own)) > 100)
        errors = [np.mean(one.round_predictions_[late].argmax(axis=1) != labels[late]) for one in (model, alone)]
        assert errors[0] < errors[1]
    assert (model.predict(features) == labels).mean() > 0.8


def test_weights_grow_with_regret_and_a_wide_table_is_refused():
    weights = compute_weights(np.array([-3.0, 0.0, 2.0]), np.array([3.0, 3.0, 3.0]))
    assert weights[0] == 0 < weights[1] < weights[2]
    with pytest.raises(ModelError, match="512 columns"):
        SleepingExperts().fit(np.zeros((2, 600)), np.array([0, 1]))
