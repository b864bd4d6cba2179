"""Submissions made by hand, with digests that fit: what no harness would write is refused, and never breaks a board."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import farshift as fs
import models
import pytest
import tomli_w
from farshift import read_run
from farshift.benchmarks.runs.run import compute_card_digest
from farshift.core.errors import BadSubmission
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.submission.validate import validate_submission

ON = "modadd97/xi35"


def submission(folder: Path, changes: dict[str, dict[str, Any]]) -> Path:
    """A run with tables of its card changed and signed again, packed."""
    run = fs.evaluate(models.Adder(), on=ON, seeds=1, out=folder / "r")
    card = run.card.to_dict()
    for table, values in changes.items():
        card[table] = {key: value for key, value in (card[table] | values).items() if value is not None}
    card["digests"]["run"] = compute_card_digest(card)
    (folder / "r" / "run.toml").write_text(tomli_w.dumps(card))
    return pack_runs([read_run(folder / "r")], folder / "s.zip")


def test_a_run_as_the_harness_wrote_it_is_taken(tmp_path):
    assert len(validate_submission(submission(tmp_path, {})).entries) == 1


@pytest.mark.attack("entrant", "invalid numbers and strings in a run card")
@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"spent": {"by_seed": 3}}, "spent must have a table for each seed"),
        ({"spent": {"by_seed": {"seed_0": 3}}}, "spent must have a table for each seed"),
        ({"spent": {"by_seed": None}}, "spent must have a table for each seed"),
        ({"spent": {"touched": {"<script>": 1}}}, "touched must be a list of ood_val, unlabelled"),
        ({"spent": {"touched": ["everything"]}}, "touched must be a list of"),
        ({"spent": {"touched": None}}, "touched must be a list of"),
        ({"budget": {"device": {"a": 1}}}, "device must be a string"),
    ],
)
def test_what_a_card_says_was_spent_and_touched_is_held_to_its_form(tmp_path, changes, complaint):
    with pytest.raises(BadSubmission, match=complaint):
        validate_submission(submission(tmp_path, changes))


@pytest.mark.attack("entrant", "invalid numbers and strings in a run card")
def test_a_number_of_thousands_of_digits_is_no_card(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "s.zip", "w") as bundle:
        bundle.writestr("submission.toml", f"format = {'9' * 5000}\n")
    with pytest.raises(BadSubmission, match=r"submission\.toml: not valid TOML"):
        validate_submission(tmp_path / "s.zip")
