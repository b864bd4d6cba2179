"""What a card shows to be against the protocol is listed, with the reason, and not ranked."""

from __future__ import annotations

import farshift as fs
import models
import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.runs.run import RunCard
from farshift.leaderboard.submission.validate import ValidRun
from farshift.leaderboard.tables.entry_rows import compute_entry_rows
from farshift.leaderboard.tables.row_scores import deserialise_rows, serialise_rows
from farshift.leaderboard.validation.card import ModelCard

ON = "modadd97/xi35"


class Stages(models.Adder):
    """Two checkpoints, the first one better by far."""

    def fit(self, train, val, budget):
        return {"steps": 20}

    def checkpoints(self):
        yield "early", models.Adder(self.seed, 0.1)
        yield "late", models.Adder(self.seed + 100, 0.4)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> fs.Run:
    out = tmp_path_factory.mktemp("run") / "stages"
    return fs.evaluate(Stages, on=ON, seeds=2, out=out, selection="id_val", name="stages")


def valid(run: fs.Run, **changed) -> ValidRun:
    """The run as a board reads it, with some tables of its card changed."""
    card: RunCard = run.card.model_copy(update=changed)
    return ValidRun(card, find_benchmark(ON), run.predictions())


def test_an_honest_run_has_nothing_against_it_and_its_rows_say_so_when_read_back(run):
    rows = compute_entry_rows(valid(run), ModelCard())
    assert rows.odd == ()
    assert rows.floor == pytest.approx(1 / 97, abs=0.01)
    again = deserialise_rows(serialise_rows(rows, "a.npz"), "a.npz")
    assert (again.odd, again.floor) == (rows.odd, rows.floor)


@pytest.mark.attack("entrant", "training on data that the protocol does not allow")
def test_training_that_touched_what_the_protocol_does_not_open_is_named(run):
    odd = compute_entry_rows(
        valid(run, spent=run.card.spent.model_copy(update={"touched": ("ood_val", "unlabelled")})), ModelCard()
    ).odd
    assert odd == tuple(
        f"its training used {name}, which the protocol does not permit" for name in ("ood_val", "unlabelled")
    )


@pytest.mark.attack("entrant", "training with more steps than the board's budget allows")
def test_a_run_of_more_steps_than_its_table_says_is_named(run):
    short = run.card.budget.model_copy(update={"steps": 7})
    assert compute_entry_rows(valid(run, budget=short), ModelCard()).odd == (
        "a seed used 20 steps, and its table is of 7",
    )
