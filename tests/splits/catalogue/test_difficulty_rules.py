"""Easy-to-hard by estimated difficulty: parts by rank, from a column of responses."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition, UnknownName
from farshift.loaders.generators import rated_sums
from farshift.splits.rules import difficulty
from scipy.stats import spearmanr

SUMS = rated_sums.rows(seed="t", count=600, systems=40, fewest=2, most=9)
TABLE = SUMS.append_column("row_id", [np.arange(600, dtype=np.uint64)])
SHARES = {"easy": 0.5, "hard": 0.25, "id_test": 40, "seed": "s"}

RULES = [
    (difficulty.item_response_theory, {"model": "1pl"}),
    (difficulty.item_response_theory, {"model": "2pl"}),
    (difficulty.glicko2_rating, {"systems_a_period": 5}),
]


@pytest.mark.parametrize(("rule", "own"), RULES)
def test_easy_rows_train_hard_rows_test_and_none_is_between_them(rule, own):
    built = rule(TABLE, responses="responses", **own, **SHARES)
    severity = {part: built.severity[built.part == part] for part in ("train", "id_test", "ood_val", "ood_test")}
    assert len(severity["id_test"]) == 40
    assert len(severity["train"]) + 40 == pytest.approx(300, abs=12)
    assert len(severity["ood_test"]) == pytest.approx(150, abs=12)
    assert max(severity["train"].max(), severity["id_test"].max()) < severity["ood_val"].min()
    assert severity["ood_val"].max() < severity["ood_test"].min()


@pytest.mark.parametrize(("rule", "own"), RULES)
def test_severity_follows_the_true_difficulty(rule, own):
    built = rule(TABLE, responses="responses", **own, **SHARES)
    assert spearmanr(built.severity, TABLE["difficulty"].to_numpy()).statistic > 0.9


def test_rows_of_one_severity_are_never_parted():
    built = difficulty.glicko2_rating(TABLE, responses="responses", systems_a_period=40, **SHARES | {"id_test": 1})
    part = np.where(built.part == "id_test", "train", built.part)
    for value in np.unique(built.severity):
        assert len(set(part[built.severity == value])) == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"easy": 0.8, "hard": 0.3}, "together at most 1"),
        ({"easy": 0.0}, "two shares"),
        ({"id_test": 400}, "only"),
        ({"responses": "question"}, "one character per system"),
    ],
)
def test_parameters_that_cannot_be_are_refused(change, told):
    with pytest.raises(BadDefinition, match=told):
        difficulty.item_response_theory(TABLE, **{"responses": "responses", "model": "1pl"} | SHARES | change)


def test_a_missing_column_is_named():
    with pytest.raises(UnknownName, match="answers"):
        difficulty.item_response_theory(TABLE, responses="answers", model="1pl", **SHARES)


def test_easy_and_hard_rows_that_meet_are_refused():
    same = pa.table({"responses": ["10"] * 8, "row_id": np.arange(8, dtype=np.uint64)})
    with pytest.raises(BadDefinition, match="smaller shares"):
        difficulty.glicko2_rating(same, responses="responses", systems_a_period=1, **SHARES | {"id_test": 1})


def test_simulated_sums_are_sums_and_their_responses_follow_their_difficulty():
    rows = SUMS.to_pylist()
    assert len({row["question"] for row in rows}) == 600
    for row in rows:
        assert row["answer"] == str(eval(row["question"]) % 10)
        assert row["terms"] == len(row["question"].split()) // 2 + 1
        assert len(row["responses"]) == 40
    solved = np.array([row["responses"].count("1") for row in rows])
    assert spearmanr(solved, [row["difficulty"] for row in rows]).statistic < -0.9
    requested = sum(len(row["responses"]) - row["responses"].count("-") for row in rows)
    assert requested / (600 * 40) == pytest.approx(0.9, abs=0.01)


def test_sums_of_one_term_are_refused():
    with pytest.raises(BadDefinition, match="two terms"):
        rated_sums.rows(seed="t", count=10, systems=3, fewest=1, most=2)
