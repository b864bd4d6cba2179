"""A new scorer: entries are scored anew from stored predictions, and both values are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from farshift.benchmarks.benchmark import SCORER
from farshift.core.errors import BadSubmission
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations import submit as rescoring
from farshift.leaderboard.operations.submit import rescore_entries, submit_runs
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.submission.pack import pack_runs
from newer_scorer import newer_scorer
from recomputed import verified

pytestmark = pytest.mark.usefixtures("remembered")


@pytest.fixture(scope="module")
def files(runs, tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("packed")
    return [pack_runs(runs[:2], folder / "a.zip", team="us"), pack_runs(runs[2:], folder / "b.zip", team="them")]


@pytest.fixture
def entered(board, files) -> Board:
    for file in files:
        submit_runs(board, file)
    return board


def test_every_entry_is_scored_anew_and_both_scores_are_kept(entered):
    before = {row.entry: row.score for row in entered.standings()}
    with newer_scorer(SCORER + 1):
        result = rescore_entries(entered)
        after = {row.entry: row.score for row in entered.standings()}
        assert verified(entered) == (3, [])
        assert rescore_entries(entered).rescored == [], "what is of this scorer is left"
    assert result.left == []
    assert before.keys() == after.keys() == {item["entry"] for item in result.rescored}
    for entry, score in after.items():
        assert (before[entry].scorer, score.scorer) == (SCORER, SCORER + 1)
        assert before[entry].entry_identity != score.entry_identity
        stored = {path.name: json.loads(path.read_text()) for path in (entered.path / "scores" / entry).iterdir()}
        assert stored == {f"{SCORER}.json": before[entry].to_dict(), f"{SCORER + 1}.json": score.to_dict()}
    body = entered.ledger.records()[-1].body
    assert (body["replaces"], body["scorer"]) == (SCORER, SCORER + 1)
    assert body["before"]["ood"] == before[body["entry"]].ood.value
    assert body["after"]["ood"] == after[body["entry"]].ood.value


def test_an_old_and_a_new_identity_are_counted_as_tables_of_their_own(entered):
    old = entered.attempts()
    with newer_scorer(SCORER + 1):
        rescore_entries(entered)
    new = {key: count for key, count in entered.attempts().items() if key not in old}
    assert sorted(old.values()) == sorted(new.values()) == [1, 2]


def test_an_identity_of_another_protocol_is_left_and_said_to_be(entered, monkeypatch):
    with newer_scorer(SCORER + 1), monkeypatch.context() as changed:
        changed.setattr("farshift.benchmarks.benchmark.KNOWN", ())
        result = rescore_entries(entered)
        checked = verify_board(entered)
    assert result.rescored == []
    assert len(result.left) == 3
    assert all("it has an older identity" in why for why in result.left)
    assert all("it has an older identity" in why for why in checked.not_recomputed)


def test_a_submission_that_cannot_be_scored_anew_is_left_and_the_others_are_not(entered, monkeypatch):
    real = rescoring.validate_submission

    def refusing(path, only):
        if len(only) == 2:
            raise BadSubmission("it no longer validates")
        return real(path, only)

    monkeypatch.setattr(rescoring, "validate_submission", refusing)
    with newer_scorer(SCORER + 1):
        result = rescore_entries(entered)
    assert len(result.rescored) == 1
    assert len(result.left) == 2
    assert all("it no longer validates" in why for why in result.left)


def test_a_rescoring_that_was_cut_short_goes_on(entered, monkeypatch):
    real = rescoring._commit_scores

    def once(board, those, scores):
        if len(those) == 1:
            raise KeyboardInterrupt
        return real(board, those, scores)

    with newer_scorer(SCORER + 1):
        with monkeypatch.context() as interrupted, pytest.raises(KeyboardInterrupt):
            interrupted.setattr(rescoring, "_commit_scores", once)
            rescore_entries(entered)
        assert len(rescore_entries(entered).rescored) == 1
        assert verified(entered) == (3, [])


def test_an_old_score_that_was_changed_is_found_although_a_newer_one_stands(entered):
    with newer_scorer(SCORER + 1):
        rescore_entries(entered)
        file = sorted((entered.path / "scores").glob(f"*/{SCORER}.json"))[0]
        file.write_text("{}")
        (difference,) = verify_board(entered).differences
    assert difference == f"{file.relative_to(entered.path)} was changed: its sha256 differs from the ledger's"


def test_a_value_before_that_is_not_the_old_score_s_is_found(entered, monkeypatch):
    real = rescoring.extract_headline_values
    monkeypatch.setattr(rescoring, "extract_headline_values", lambda record: real(record) | {"ood": 0.123})
    with newer_scorer(SCORER + 1):
        rescore_entries(entered)
        result = verify_board(entered).differences
    assert len(result) == 6
    assert f"the value before its rescoring by scorer {SCORER + 1} differs from scores/" in result[0]
    assert f"the value after its rescoring by scorer {SCORER + 1} differs from scores/" in result[1]
