"""What a card or its predictions show to be against the protocol is listed, with the reason, and not ranked."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import farshift as fs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.runs.card import BudgetTable, RunCard
from farshift.leaderboard.submission.validate import ValidRun
from farshift.leaderboard.tables.row_scores import packed, rows_of, unpacked

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import models

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


def valid(run: fs.Run, table: pa.Table | None = None, **changed) -> ValidRun:
    """The run as a board reads it, with some tables of its card changed."""
    card: RunCard = replace(run.card, **changed)
    return ValidRun(card, find_benchmark(ON), run.predictions() if table is None else table)


def test_an_honest_run_has_nothing_against_it_and_its_rows_say_so_when_read_back(run):
    rows = rows_of(valid(run))
    assert rows.odd == ()
    assert rows.floor == pytest.approx(1 / 97, abs=0.01)
    again = unpacked(packed(rows))
    assert (again.odd, again.floor) == (rows.odd, rows.floor)
    assert np.array_equal(again.given.answers, rows.given.answers)
    assert np.array_equal(again.given.wrong, rows.given.wrong)


@pytest.mark.attack("entrant", "training that touched what the protocol does not open")
def test_training_that_touched_what_the_protocol_does_not_open_is_named(run):
    odd = rows_of(valid(run, spent=replace(run.card.spent, touched=("ood_val", "unlabelled")))).odd
    assert odd == tuple(
        f"its training touched {name}, which the protocol does not open" for name in ("ood_val", "unlabelled")
    )


@pytest.mark.attack("entrant", "more steps than the table is of")
def test_a_run_of_more_steps_than_its_table_says_is_named(run):
    budget = run.card.budget
    short = BudgetTable(budget.name, budget.seeds, 7, budget.device)
    assert rows_of(valid(run, budget=short)).odd == ("a seed spent 20 steps, and its table is of 7",)


def forged(run: fs.Run, candidate: str) -> pa.Table:
    """The predictions with those of a candidate on validation rows taken from the labels, which every team has."""
    table = run.predictions()
    part = find_benchmark(ON).part("id_val")
    truth = dict(zip(part.row_ids.tolist(), part.given().tolist(), strict=True))
    here = pc.and_(pc.equal(table["part"], "id_val"), pc.equal(table["candidate"], candidate)).to_pylist()
    ids, before = table["row_id"].to_pylist(), table["prediction"].to_pylist()
    after = [truth[row] if there else old for there, row, old in zip(here, ids, before, strict=True)]
    return table.set_column(table.column_names.index("prediction"), "prediction", pa.array(after, pa.int64()))


@pytest.mark.attack("entrant", "a candidate chosen by forged validation predictions")
def test_a_candidate_chosen_by_forged_validation_predictions_is_named(run):
    (odd,) = rows_of(valid(run, forged(run, "late"))).odd
    assert odd.startswith("its candidate ")
    assert odd.endswith("its choice cannot be trusted")
    last = replace(run.card.benchmark, selection="last")
    assert rows_of(valid(run, forged(run, "late"), benchmark=last)).odd == (), "nothing was chosen by them"
