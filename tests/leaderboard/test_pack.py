"""Packing: the same runs and card give the same bytes, and nothing is written that a board would refuse."""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path

import farshift as fs
import pyarrow.parquet as pq
import pytest
import tomli_w
from farshift import FarshiftError
from farshift.benchmarks.runs.run import compute_card_digest
from farshift.core.documents import read_toml
from farshift.core.errors import BadRun, BadSubmission
from farshift.core.files import compute_file_sha256
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.submission.validate import validate_submission
from farshift.leaderboard.validation.card import ModelCard
from farshift.leaderboard.validation.problem import REMEDIES


def test_the_same_runs_and_card_pack_to_the_same_bytes(runs, tmp_path):
    card = {"team": "t", "model": {"training_data": ["scan/length"], "pretraining": []}}
    item = pack_runs(runs, tmp_path / "one.zip", card=card).read_bytes()
    assert pack_runs(list(reversed(runs)), tmp_path / "other.zip", team="t", card=card).read_bytes() == item
    assert pack_runs([fs.read_run(run) for run in runs], tmp_path / "read.zip", card=card).read_bytes() == item
    assert pack_runs(runs, tmp_path / "more.zip", card=card, note="n").read_bytes() != item


def test_a_submission_holds_cards_and_predictions_and_nothing_else(runs, tmp_path):
    with zipfile.ZipFile(pack_runs(runs[:2], tmp_path / "s.zip")) as bundle:
        assert bundle.namelist() == [
            "submission.toml",
            "runs/0.toml",
            "predictions/0.parquet",
            "runs/1.toml",
            "predictions/1.parquet",
        ]
        for number, run in enumerate(runs[:2]):
            assert bundle.read(f"runs/{number}.toml") == (run / "run.toml").read_bytes()
            assert bundle.read(f"predictions/{number}.parquet") == (run / "predictions.parquet").read_bytes()


def test_arguments_go_before_what_the_card_says(runs, tmp_path):
    (tmp_path / "card.toml").write_text(
        'name = "a name"\nteam = "theirs"\nnote = "a note"\n[model]\nparameters = 3\npretraining = ["C4"]\n'
    )
    result = validate_submission(pack_runs(runs[:1], tmp_path / "s.zip", team="ours", card=tmp_path / "card.toml"))
    assert (result.card.name, result.card.team, result.card.note) == ("a name", "ours", "a note")
    assert result.card.model == ModelCard(pretraining=["C4"], parameters=3)


def test_a_wrong_card_is_named_by_its_file_and_nothing_is_written(runs, tmp_path):
    (tmp_path / "card.toml").write_text('title = "x"\n[model]\nlink = "https://example.org"\n')
    with pytest.raises(
        BadSubmission, match="^pack: 2 problems: .*key model.link: no such key: did you mean links"
    ) as refusal:
        pack_runs(runs[:1], tmp_path / "s.zip", card=tmp_path / "card.toml")
    where = {(item.file, item.column) for item in refusal.value.problems}
    assert where == {(str(tmp_path / "card.toml"), key) for key in ("title", "model.link")}
    with pytest.raises(BadSubmission, match="key team: String should have at most 100"):
        pack_runs(runs[:1], tmp_path / "s.zip", team="x" * 101)
    assert not (tmp_path / "s.zip").exists()


def edited(run: Path, folder: Path, change) -> Path:
    """A copy of a run whose table `change` made another, signed again."""
    shutil.copytree(run, folder)
    pq.write_table(change(pq.read_table(folder / "predictions.parquet")), folder / "predictions.parquet")
    card = read_toml(folder / "run.toml")
    card["digests"]["predictions"] = compute_file_sha256(folder / "predictions.parquet")
    card["digests"]["run"] = compute_card_digest(card)
    (folder / "run.toml").write_text(tomli_w.dumps(card))
    return folder


def test_what_a_board_would_refuse_is_not_packed(runs, tmp_path):
    short = edited(runs[0], tmp_path / "short", lambda table: table.slice(1))
    with pytest.raises(
        BadSubmission, match="^s.zip: predictions/0.parquet, column row_id, row [0-9a-f]{16}: part id_test"
    ):
        pack_runs([short], tmp_path / "s.zip")
    with pytest.raises(BadRun, match="is not a run"):
        pack_runs([tmp_path], tmp_path / "s.zip")
    with pytest.raises(FarshiftError, match="name at least one run folder"):
        pack_runs([], tmp_path / "s.zip")
    assert not (tmp_path / "s.zip").exists()


def test_runs_that_could_not_be_told_apart_are_not_packed(runs, tmp_path):
    shutil.copytree(runs[0], tmp_path / "twin")
    with pytest.raises(FarshiftError, match="are both good on modadd97/xi35"):
        pack_runs([runs[0], tmp_path / "twin"], tmp_path / "x.zip")


def test_a_run_folder_that_is_handed_in_is_told_to_be_packed(runs):
    with pytest.raises(BadSubmission, match="is a folder; pack the run first: farshift pack RUN --out"):
        validate_submission(runs[0])


def test_the_docs_list_every_problem_with_its_remedy():
    text = (Path(__file__).parent.parent.parent / "docs" / "submitting.md").read_text()
    listed = dict(line.strip("| ").split("` | ", 1) for line in text.split("## List of problems")[1].splitlines()[4:])
    assert {name.strip("`"): remedy for name, remedy in listed.items()} == REMEDIES


def test_every_problem_that_the_validator_names_has_a_remedy():
    package = Path(fs.__file__).parent / "leaderboard"
    sources = [*(package / "validation").glob("*.py"), package / "submission" / "validate.py"]
    named = [re.findall(r'(?:problems\.add|because|hold)\(\s*"([a-z]+-[a-z-]+)"', file.read_text()) for file in sources]
    assert {name for names in named for name in names} <= set(REMEDIES)
    assert sum(map(len, named)) > 30
