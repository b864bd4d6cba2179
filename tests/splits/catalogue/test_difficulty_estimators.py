"""Item response theory, Glicko-2 and the rules by them: against a simulated truth, cases worked by hand, and laws."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition, UnknownName
from farshift.loaders.generators import rated_sums
from farshift.splits.measures.difficulty import Ratings, fit_item_response, rate_with_glicko2, update_ratings
from farshift.splits.rules import difficulty
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import norm, spearmanr


def simulated(systems: int, items: int, spread: float, missing: float = 0.0):
    draw = np.random.default_rng(3)
    ability, difficulty = draw.normal(size=systems), draw.uniform(-2, 2, items)
    slope = np.exp(spread * draw.normal(size=items))
    chance = 1 / (1 + np.exp(-slope * (ability[:, None] - difficulty)))
    responses = (draw.random(chance.shape) < chance).astype(float)
    responses[draw.random(chance.shape) < missing] = np.nan
    return responses, difficulty, slope, ability


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_one_parameter_model_finds_simulated_difficulties(missing):
    responses, difficulty, _, ability = simulated(1500, 20, 0.0, missing)
    result = fit_item_response(responses, "1pl")
    assert np.sqrt(np.mean((result.difficulty - difficulty) ** 2)) < 0.1
    assert np.allclose(result.slope, result.slope[0])
    assert result.slope[0] == pytest.approx(1.0, abs=0.06)
    assert np.corrcoef(result.ability, ability)[0, 1] > 0.8


@pytest.mark.parametrize("model", ["1pl", "2pl"])
def test_a_fit_is_the_optimum_of_the_stated_posterior(model):
    responses, *_ = simulated(300, 5, 0.3)
    size, nodes = 6 if model == "1pl" else 10, np.linspace(-5, 5, 101)
    log_weights = norm.logpdf(nodes) - np.log(norm.pdf(nodes).sum())

    def loss(parameters):
        easiness, log_slope = parameters[:5], np.broadcast_to(parameters[5:], 5)
        logit = np.exp(log_slope)[:, None] * nodes + easiness[:, None]
        right, wrong = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
        likelihood = logsumexp(responses @ right + (1 - responses) @ wrong + log_weights, axis=1).sum()
        prior = (easiness**2).sum() / (2 * 4.0**2) + (model == "2pl") * (log_slope**2).sum() / (2 * 0.5**2)
        return prior - likelihood

    best = minimize(loss, np.zeros(size), method="L-BFGS-B", bounds=[(-4, 4)] * size).x
    result = fit_item_response(responses, model)
    assert np.allclose(np.log(result.slope), best[5:], atol=0.02)
    assert np.allclose(-result.difficulty * result.slope, best[:5], atol=0.02)


def test_items_that_all_or_none_solve_have_a_finite_place_at_the_ends():
    responses, *_ = simulated(50, 10, 0.0)
    responses[:, 0], responses[:, 1] = 1, 0
    result = fit_item_response(responses, "1pl").difficulty
    assert np.isfinite(result).all()
    assert result.argmin() == 0 and result.argmax() == 1


def test_many_items_and_few_systems_are_fitted_in_a_few_rounds():
    responses, difficulty, *_ = simulated(40, 1000, 0.0)
    result = fit_item_response(responses, "1pl")
    assert result.iterations < 30
    assert np.corrcoef(result.difficulty, difficulty)[0, 1] > 0.9
    assert result.ability.std() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    ("responses", "told"),
    [
        (np.ones((1, 3)), "two systems"),
        (np.ones(3), "two systems"),
        (np.full((3, 3), 0.5), "1 \\(solved\\)"),
        (np.array([[1, np.nan], [0, np.nan]]), "item 1 has no response"),
        (np.array([[1, 0], [np.nan, np.nan]]), "system 1 has no response"),
    ],
)
def test_matrices_that_say_too_little_are_refused(responses, told):
    with pytest.raises(BadDefinition, match=told):
        fit_item_response(responses)
    with pytest.raises(BadDefinition, match=told):
        rate_with_glicko2(responses, systems_a_period=1)


def test_responses_that_no_slope_is_steep_enough_for_are_refused():
    with pytest.raises(BadDefinition, match="does not converge"):
        fit_item_response(np.array([[1.0] * 8, [0.0] * 8]), "1pl")


def test_an_unknown_model_and_an_empty_period_are_refused():
    with pytest.raises(BadDefinition, match="3pl"):
        fit_item_response(np.eye(2), "3pl")  # type: ignore[arg-type]
    with pytest.raises(BadDefinition, match="systems_a_period = 0"):
        rate_with_glicko2(np.eye(2), systems_a_period=0)


def rated(*players: tuple[float, float]) -> Ratings:
    rating, deviation = np.array(players, float).T
    return Ratings(rating, deviation, np.full(len(players), 0.06))


def test_glickmans_own_example_comes_out():
    result = update_ratings(
        rated((1500, 200)), rated((1400, 30), (1550, 100), (1700, 300)), np.array([[1.0, 0.0, 0.0]])
    )
    assert result.rating[0] == pytest.approx(1464.06, abs=0.01)
    assert result.deviation[0] == pytest.approx(151.52, abs=0.01)
    assert result.volatility[0] == pytest.approx(0.05999, abs=1e-5)


def test_a_player_without_a_game_is_only_less_certain():
    result = update_ratings(rated((1500, 200)), rated((1400, 30)), np.array([[np.nan]]))
    assert result.rating[0] == 1500
    assert result.volatility[0] == 0.06
    assert result.deviation[0] == pytest.approx(np.hypot(200, 0.06 * 173.7178))


def test_volatility_solves_its_equation():
    players, opponents = rated((1500, 80)), rated((1500, 50), (1900, 50), (2000, 50))
    scores = np.ones((1, 3))
    result = update_ratings(players, opponents, scores, tau=0.9).volatility[0]
    phi, g = 80 / 173.7178, 1 / np.sqrt(1 + 3 * (50 / 173.7178) ** 2 / np.pi**2)
    expected = 1 / (1 + 10 ** (-g * (1500 - opponents.rating) / 400))
    variance = 1 / (g**2 * expected * (1 - expected)).sum()
    delta = variance * (g * (1 - expected)).sum()
    x, a = np.log(result**2), np.log(0.06**2)
    total = phi**2 + variance + result**2
    assert result**2 * (delta**2 - total) / (2 * total**2) == pytest.approx((x - a) / 0.9**2, abs=1e-5)


def test_items_rated_against_systems_come_out_in_the_order_of_their_truth():
    responses, difficulty, _, ability = simulated(60, 400, 0.0, 0.1)
    items, systems = rate_with_glicko2(responses, systems_a_period=6)
    assert np.corrcoef(items.rating, difficulty)[0, 1] > 0.93
    assert np.corrcoef(systems.rating, ability)[0, 1] > 0.9
    assert (items.deviation < 150).all()


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
