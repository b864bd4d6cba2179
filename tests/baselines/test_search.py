"""Random search: every setting is drawn by its own name, inside its published range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.baselines.recipe import find_recipe
from farshift.baselines.running import search
from farshift.baselines.running.search import TRAINER, draw_settings
from farshift.core.errors import BadDefinition

ON = "modadd97/xi35"


def with_space(monkeypatch: pytest.MonkeyPatch, **space: list[Any]) -> None:
    monkeypatch.setattr(search, "read_literal", lambda file, name: space)


def test_the_first_draw_is_the_defaults() -> None:
    assert draw_settings("irm", ON, 3)["draw-0"] == {}


def test_draws_are_the_same_each_time_and_differ_from_each_other() -> None:
    result = draw_settings("irm", ON, 20)
    assert result == draw_settings("irm", ON, 20)
    assert len({str(values) for values in result.values()}) == 20


def test_one_more_setting_moves_no_other_and_one_more_draw_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    with_space(monkeypatch, dropout=["uniform", 0.0, 0.5])
    before = draw_settings("mlp", ON, 10)
    with_space(monkeypatch, width=["choice", 32, 64, 128], dropout=["uniform", 0.0, 0.5])
    after = draw_settings("mlp", ON, 10)
    assert {name: {"width": after[name].get("width")} | values for name, values in before.items() if values} == {
        name: values for name, values in after.items() if values
    }
    assert list(draw_settings("mlp", ON, 11).values())[:10] == list(after.values())


def test_draws_fill_their_ranges_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    with_space(monkeypatch, dropout=["uniform", 0.1, 0.5], depth=["uniform", 1.0, 3.0], width=["choice", 8, 16])
    result = list(draw_settings("mlp", ON, 2001).values())[1:]
    dropout, rate = (np.array([values[name] for values in result]) for name in ("dropout", "lr"))
    assert np.histogram(dropout, bins=4, range=(0.1, 0.5))[0] == pytest.approx(500, abs=80)
    exponents = np.histogram(np.log10(rate), bins=4, range=TRAINER["lr"][1:])[0]
    assert exponents == pytest.approx(500, abs=80)
    assert exponents.sum() == len(result)
    assert {values["depth"] for values in result} == {1, 2, 3}
    assert all(type(values["depth"]) is int for values in result), "a whole number where the default is one"
    assert sum(values["width"] == 8 for values in result) == pytest.approx(1000, abs=100)


def test_a_range_of_an_algorithm_wins_over_the_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    with_space(monkeypatch, lr=["choice", 0.125])
    assert {values["lr"] for values in list(draw_settings("mlp", ON, 5).values())[1:]} == {0.125}


def test_a_space_of_an_unknown_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with_space(monkeypatch, dropout=["normal", 0.0, 0.5])
    with pytest.raises(
        BadDefinition, match="search space of mlp/dropout: 'normal' is none of log10, log2, uniform, choice"
    ):
        draw_settings("mlp", ON, 2)


def test_an_estimator_has_no_search_space() -> None:
    assert find_recipe("knn").algorithm is None
    with pytest.raises(FarshiftError, match="^knn is a scikit-learn estimator and has no ranges: give a file"):
        draw_settings("knn", ON, 2)
