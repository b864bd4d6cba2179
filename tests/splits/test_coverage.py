"""Coverage of rows by training: what is reached by exchanging fragments that were seen to act alike."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.baselines.reproduce.facts import compute_fact
from farshift.core.errors import BadDefinition
from farshift.splits.measures.coverage import count_rows_to_cover, find_covered


def by_search(train: np.ndarray, asked: np.ndarray, evidence: int) -> list[bool]:
    """The same, one fragment after another."""
    contexts: dict[tuple[int, int], set[int]] = {}
    for state, fragment, context in train.tolist():
        contexts.setdefault((state, fragment), set()).add(context)
    result = []
    for state, fragment, context in asked.tolist():
        reached, waiting = {(state, fragment)}, [(state, fragment)]
        while waiting:
            item = waiting.pop()
            for other in contexts.keys() - reached:
                if other[0] == state and len(contexts[other] & contexts.get(item, set())) >= evidence:
                    reached.add(other)
                    waiting.append(other)
        result.append(any(context in contexts.get(item, set()) for item in reached))
    return result


def test_a_fragment_is_exchanged_for_one_that_acts_alike_in_enough_contexts() -> None:
    train = np.array([[0, 1, 5], [0, 1, 6], [0, 2, 6], [0, 2, 7], [0, 3, 7], [0, 3, 8], [1, 4, 5], [1, 4, 9]])
    requested = np.array([[0, 1, 8], [0, 2, 5], [0, 1, 9], [1, 4, 6], [0, 9, 5], [1, 4, 5]])
    assert find_covered(train, requested, 1).tolist() == [True, True, False, False, False, True]
    assert find_covered(train, requested, 2).tolist() == [False, False, False, False, False, True]
    with pytest.raises(BadDefinition, match="evidence = 0"):
        find_covered(train, requested, 0)


@pytest.mark.parametrize(("evidence", "count"), [(1, 40), (2, 70), (3, 100)])
def test_coverage_is_what_a_search_finds(evidence: int, count: int) -> None:
    rng = np.random.default_rng(evidence)
    rows = rng.permutation(np.stack(np.meshgrid(range(4), range(7), range(9)), axis=-1).reshape(-1, 3))
    result = find_covered(rows[:count], rows, evidence)
    assert result.tolist() == by_search(rows[:count], rows, evidence)
    assert count < result.sum() < len(rows)


def test_the_fewest_rows_that_cover_are_enough_and_one_less_is_not() -> None:
    rows = np.random.default_rng(0).permutation(np.stack(np.meshgrid(range(3), range(6), range(8)), -1).reshape(-1, 3))
    for share in (0.5, 0.9, 1.0):
        count = count_rows_to_cover(rows, share, 2)
        shares = [find_covered(rows[:some], rows, 2).mean() for some in (count - 1, count)]
        assert shares[0] < share <= shares[1]


def test_rows_with_a_hop_that_training_has_not_are_not_covered() -> None:
    of = {"state": "bridge", "fragment": "x1,x2", "context": "x3", "evidence": 1}
    assert compute_fact("coverage", "coverage/n10000", of | {"part": "train"}) == 1
    assert compute_fact("coverage", "coverage/n10000", of | {"part": "ood_test"}) == 0


def test_growth_is_of_two_hops_in_a_chain() -> None:
    requested = {"tokens": [6, 12], "evidence": 1, "share": 0.9}
    assert 1 < float(compute_fact("growth_of_rows_to_cover", "coverage/n10000", requested)) < 4
    with pytest.raises(BadDefinition, match="coverage_non_tree/n10000 has non_tree"):
        compute_fact("growth_of_rows_to_cover", "coverage_non_tree/n10000", requested)
