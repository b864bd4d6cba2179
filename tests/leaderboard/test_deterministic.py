"""A model that is declared deterministic: one seed is complete, and the declaration is checked."""

from __future__ import annotations

import json
from pathlib import Path

import farshift as fs
import models
import pytest
from farshift.benchmarks.scoring.record import Score
from farshift.cli import app
from farshift.core.errors import BadRun, FarshiftError, ModelError
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.tables.snapshot import take_snapshot
from farshift.leaderboard.validation.card import check_run_values
from farshift.leaderboard.validation.problem import Problems
from typer.testing import CliRunner

ON = "modadd97/xi35"


class Exact(models.Adder):
    """Trained, and the same with every seed."""

    deterministic = True

    def __init__(self, seed: int) -> None:
        super().__init__(wrong=0.05)

    def fit(self, train, val, budget):
        return {"rows": len(train)}


class Seeded(models.Adder):
    deterministic = True


class Wavering(models.Adder):
    """Predicts otherwise each time."""

    asked = 0

    def predict(self, batch):
        type(self).asked += 1
        return (super().predict(batch) + type(self).asked) % 97


@pytest.fixture(scope="module")
def exact(tmp_path_factory) -> fs.Run:
    return fs.evaluate(Exact, on=ON, out=tmp_path_factory.mktemp("exact") / "run")


def test_one_seed_is_complete_and_the_score_says_that_there_is_no_training_noise(exact):
    assert exact.seeds == (0,)
    assert exact.card.model.deterministic
    score = fs.score(exact)
    assert (score.deterministic, score.protocol_seeds, score.ood.seed_se) == (True, 1, None)
    assert "rows (a deterministic model: no training noise)" in score.interval
    assert Score.from_dict(json.loads(score.json())) == score


def test_the_score_of_any_other_model_has_no_such_field():
    score = fs.score(fs.evaluate(models.Adder, on=ON, seeds=1))
    assert not score.deterministic
    assert "deterministic" not in score.to_dict()
    assert score.protocol_seeds == 5


@pytest.mark.attack("entrant", "a model declared deterministic that is not, to pay for one seed")
@pytest.mark.parametrize("model", [Seeded, Wavering])
def test_a_model_that_predicts_otherwise_when_asked_again_is_refused(model, tmp_path):
    with pytest.raises(ModelError, match=r"declared deterministic, but predicts \d+ of 32 rows of \w+ differently"):
        fs.evaluate(model, on=ON, deterministic=True, out=tmp_path / "run")
    with pytest.raises(BadRun):
        fs.read_run(tmp_path / "run")


def test_a_model_that_depends_on_the_rows_before_is_refused():
    class Adaptive(models.Adder):
        deterministic = True

        def reset(self):
            pass

    with pytest.raises(ModelError, match=r"reset\(\)"):
        fs.evaluate(Adaptive, on=ON)


def test_more_seeds_than_one_contradict_the_declaration():
    with pytest.raises(FarshiftError, match="a deterministic model has one, 0: leave out --seeds"):
        fs.evaluate(Exact, on=ON, seeds=2)


def test_it_is_ranked_with_one_seed_and_compared(exact, board, tmp_path):
    five = fs.evaluate(models.Adder, on=ON, out=tmp_path / "five", name="five")
    for run, team in ((exact, "us"), (five, "them")):
        submit_runs(board, pack_runs([run.path], tmp_path / f"{team}.zip", team=team))
    (view,) = take_snapshot(board).views
    assert [row.rank for row in view.rows] == [(1, 1), (2, 2)]
    assert "Declared deterministic, so that there is no training noise: Exact." in view.notes
    assert not any("single seed" in note for note in view.notes)
    assert verify_board(board).is_complete
    assert fs.compare(exact, five).ood.distinguishable


@pytest.mark.attack("entrant", "a run of several hand-picked seeds that states to be deterministic")
@pytest.mark.parametrize(("stated", "seeds"), [(True, [0, 1]), (True, [3]), (False, [0]), ("yes", [0])])
def test_a_card_that_contradicts_itself_is_refused(exact, stated, seeds):
    card = exact.card.to_dict()
    card["model"]["deterministic"], card["budget"]["seeds"] = stated, seeds
    assert not check_run_values(card, "run.toml", Problems())


def test_the_command_line_declares_it_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("adder.py").write_text("def add(batch):\n    return (batch['a'] + batch['b']) % 97\n")
    done = CliRunner().invoke(app, ["evaluate", "adder.py:add", "--on", ON, "--deterministic", "--out", "run"])
    assert done.exit_code == 0, done.output
    assert fs.read_run("run").card.model.deterministic
