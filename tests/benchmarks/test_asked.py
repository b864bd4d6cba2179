"""What of a benchmark is asked: N rows of each part on trial, and no validation part that nothing is chosen by."""

from __future__ import annotations

import numpy as np
import pytest
from farshift import FarshiftError, compare, evaluate, score
from farshift.benchmarks.benchmark import find_benchmark, select_limited_rows
from farshift.benchmarks.runs.run import Run
from farshift.core.errors import BadSubmission
from farshift.core.progress import report_to
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.submission.pack import pack_runs
from support import Heard

ON = "prefix_sums/32_to_64"


class External:
    """A model elsewhere, which is not trained: it answers each part of each row with the running parity, or not."""

    one_candidate = True
    name = "external"

    def __init__(self) -> None:
        self.asked = 0

    def predict(self, batch):
        texts = batch["bits"].tolist() if "bits" in batch else next(iter(batch.values())).tolist()
        self.asked += len(texts)
        return ["".join(texts[0].split()) for _ in texts]


def parts(run: Run) -> dict[str, int]:
    counted = run.predictions().group_by("part").aggregate([("row_id", "count")]).to_pylist()
    return {row["part"]: row["row_id_count"] for row in counted}


def test_the_rows_of_a_limit_are_the_same_each_time_and_among_those_of_a_larger_one():
    ids = np.arange(1000, dtype=np.uint64) * np.uint64(7919)
    ten, hundred = (select_limited_rows(ON, "id_test", ids, count) for count in (10, 100))
    assert ten.tolist() == select_limited_rows(ON, "id_test", ids, 10).tolist() == sorted(ten.tolist())
    assert set(ten) < set(hundred)
    assert set(ten) != set(select_limited_rows(ON, "ood_test", ids, 10))
    assert select_limited_rows(ON, "id_test", ids, 5000).tolist() == list(range(1000))


def test_a_limited_run_is_scored_on_its_rows_and_no_board_or_comparison_takes_it(tmp_path):
    model, heard = External(), Heard()
    with report_to(heard):
        run = evaluate(model, ON, seeds=1, budget="quick", limit=40, out=tmp_path / "r")
    assert set(parts(run).values()) == {40}
    assert model.asked == run.predictions().num_rows
    assert any("predicting 40 rows of each part" in line for line in heard.lines)
    assert run.card.model.extra["limit"] == 40
    result = score(run)
    assert result.answers["ood"].rows == 40
    assert " on 40 rows of each part" in str(result)
    assert repr(run) == f"Run({run.card.model.name} on {ON}, budget quick: {run.path})"
    assert repr(result).startswith(f"Score({run.card.model.name} on {ON}: id 0.000 [") and "\n" not in repr(result)
    with pytest.raises(BadSubmission, match=r"a trial run on 40 rows of each part \(--limit\)"):
        pack_runs([run], tmp_path / "s.zip", team="t")
    assert not (tmp_path / "s.zip").exists()
    full = evaluate(External(), ON, seeds=1, budget="quick", out=tmp_path / "whole")
    with pytest.raises(FarshiftError, match=r"a trial on 40 rows of each part \(--limit\)"):
        compare(run, full)


def test_an_external_model_is_not_asked_validation_parts_and_a_board_takes_its_run(tmp_path):
    benchmark = find_benchmark(ON)
    run = evaluate(External(), ON, seeds=benchmark.seeds("quick"), budget="quick", out=tmp_path / "r")
    assert benchmark.selection_only_parts == ["id_val"]
    assert set(parts(run)) == set(benchmark.predicted_parts) - {"id_val"}
    assert run.card.model.extra["left_out"] == ["id_val"]
    result = score(run)
    assert "id_val" in result.selections
    board = Board.init(tmp_path / "board", "b")
    entries, new = submit_runs(board, pack_runs([run], tmp_path / "s.zip", team="t"))
    assert (len(entries), new) == (1, True)


def test_validation_parts_are_asked_where_the_rule_judges_by_them_or_something_is_chosen(tmp_path):
    with_rule = evaluate(External(), ON, seeds=1, budget="quick", selection="id_val", out=tmp_path / "rule")
    assert "id_val" in parts(with_rule)
    assert "left_out" not in with_rule.card.model.extra
    plain = External()
    plain.one_candidate = False
    assert "id_val" in parts(evaluate(plain, ON, seeds=1, budget="quick", limit=5, out=tmp_path / "plain"))


def test_a_card_cannot_leave_out_a_part_that_is_scored():
    benchmark = find_benchmark(ON)
    predicted = list(benchmark.predicted_parts)
    left = benchmark.list_parts_without(["ood_test", "id_val"])
    assert left == [name for name in predicted if name != "id_val"]
