"""submission.toml: every wrong key is named; nothing in it is believed, followed or run."""

from __future__ import annotations

import dataclasses
from typing import Any

import farshift as fs
import pytest
from farshift.core.errors import BadSubmission
from farshift.leaderboard.submission.validate import validate_submission
from farshift.leaderboard.validation.card import TEMPLATE, ModelCard, parse_submission_card
from farshift.leaderboard.validation.limits import FileRejected
from farshift.leaderboard.validation.problem import Problems
from farshift.leaderboard.validation.reader import read_card
from fuzz.packing import parts

RUN = {"benchmark": "a/b", "model": "m", "run": "0" * 64, "predictions": "0" * 64}
GOOD = {"format": 2, "name": "n", "team": "t", "note": "", "model": {}, "runs": [RUN]}


def told(card: dict[str, Any]) -> list[tuple[str, str]]:
    problems = Problems()
    parse_submission_card(card, "submission.toml", problems)
    return [(item.name, item.column) for item in problems.items]


def test_a_card_says_who_and_what_was_declared():
    model = {
        "parameters": 12,
        "training_data": ["scan/length", "a corpus"],
        "pretraining": [],
        "budget": "two days",
        "links": ["https://example.org/a"],
        "contact": "me",
    }
    result = parse_submission_card(GOOD | {"model": model}, "submission.toml", Problems())
    assert result.model == ModelCard(
        ("scan/length", "a corpus"), (), 12, "two days", "", ("https://example.org/a",), "me"
    )
    assert result.model.record() == model
    assert (result.name, result.team, result.runs) == ("n", "t", (RUN,))


def test_what_is_not_declared_is_unknown():
    assert told(GOOD) == []
    assert parse_submission_card(GOOD, "submission.toml", Problems()).model == ModelCard(("unknown",), ("unknown",))


@pytest.mark.attack("entrant", "a score, weights or other keys stated in a submission's card")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"format": 1}, [("format-unknown", "format")]),
        ({"format": None}, [("format-unknown", "format")]),
        ({"format": "9" * 5000}, [("format-unknown", "format")]),
        ({"team": 3}, [("card-value", "team")]),
        ({"team": "x" * 101}, [("card-value", "team")]),
        ({"note": "a\nb"}, [("card-value", "note")]),
        ({"note": "evil \N{RIGHT-TO-LEFT OVERRIDE}txt"}, [("card-value", "note")]),
        ({"name": ["n"]}, [("card-value", "name")]),
        ({"score": 1.0}, [("card-key", "score")]),
        ({"model": 3}, [("card-value", "model")]),
        ({"model": {"weights": "m.pkl"}}, [("card-key", "model.weights")]),
        ({"model": {"parameters": -1}}, [("card-value", "model.parameters")]),
        ({"model": {"parameters": True}}, [("card-value", "model.parameters")]),
        ({"model": {"parameters": 2**63}}, [("card-value", "model.parameters")]),
        ({"model": {"training_data": "all"}}, [("card-value", "model.training_data")]),
        ({"model": {"training_data": ["a", "a"]}}, [("card-value", "model.training_data")]),
        ({"model": {"pretraining": ["unknown", "a"]}}, [("card-value", "model.pretraining")]),
        ({"model": {"pretraining": [""]}}, [("card-value", "model.pretraining")]),
        ({"model": {"pretraining": ["x" * 201]}}, [("card-value", "model.pretraining")]),
        ({"model": {"links": ["javascript:alert(1)"]}}, [("card-value", "model.links")]),
        ({"model": {"links": ["file:///etc/passwd"]}}, [("card-value", "model.links")]),
        ({"model": {"links": ["https://a b"]}}, [("card-value", "model.links")]),
        ({"model": {"links": ["https://e.org"] * 11}}, [("card-value", "model.links")]),
        ({"model": {"contact": {}}}, [("card-value", "model.contact")]),
        ({"runs": []}, [("card-value", "runs")]),
        ({"runs": {"0": RUN}}, [("card-value", "runs")]),
        ({"runs": [3]}, [("card-value", "runs[0]")]),
        ({"runs": [RUN | {"extra": "x"}]}, [("card-value", "runs[0]")]),
        ({"runs": [RUN, RUN | {"run": 3}]}, [("card-value", "runs[1]")]),
        ({"team": 3, "model": {"links": 3}, "x": 1}, [("card-key", "x"), ("card-value", "team"), ("card-value", "model.links")]),
    ],
)  # fmt: skip
def test_a_wrong_card_is_told_key_by_key(change, expected):
    assert told(GOOD | change) == expected


def test_a_submission_of_format_1_is_told_what_to_do(runs, tmp_path):
    good = parts(fs.read_run(runs[0]))
    (tmp_path / "s.zip").write_bytes(dataclasses.replace(good, card=b'format = 1\nteam = ""\n').packed())
    with pytest.raises(BadSubmission, match="format '1' is not 2 .pack the runs again with farshift pack"):
        validate_submission(tmp_path / "s.zip")


def test_a_listing_of_more_runs_than_are_taken_is_refused(runs, tmp_path):
    good = parts(fs.read_run(runs[0]))
    (tmp_path / "s.zip").write_bytes(dataclasses.replace(good, card=good.card | {"runs": [RUN] * 501}).packed())
    with pytest.raises(BadSubmission, match="lists 501 runs; at most 500") as refusal:
        validate_submission(tmp_path / "s.zip")
    assert [item.name for item in refusal.value.problems] == ["zip-too-many"]


@pytest.mark.parametrize(
    ("text", "name", "column"),
    [
        (b"a = ", "toml-invalid", ""),
        (b"a = 1\na = 2", "toml-invalid", ""),
        (b"\xff\xfe", "toml-invalid", ""),
        (b"a = " + b"9" * 5000, "toml-invalid", ""),
        (b"a = " + b"[" * 2000 + b"]" * 2000, "toml-nesting", ""),
        (b"a = " + b"{b=" * 2000 + b"1" + b"}" * 2000, "toml-nesting", ""),
        (b".".join([b"a"] * 14) + b" = 1", "toml-nesting", ".".join(["a"] * 13)),
        (b"a = " + b"[" * 13 + b"]" * 13, "toml-nesting", "a"),
        (b"a.b = nan", "toml-value", "a.b"),
        (b"a = [inf]", "toml-value", "a"),
        (b"a = 1979-05-27", "toml-value", "a"),
        (b"a = 07:32:00", "toml-value", "a"),
        (b'a = "' + b"x" * 100_001 + b'"', "toml-value", "a"),
        (b'"' + b"x" * 100_001 + b'" = 1', "toml-value", ""),
        (b"a = 0x" + b"f" * 3600, "toml-invalid", ""),  # no limit of digits holds for these
        (b"a = [" + b"1," * 200_001 + b"]", "toml-value", ""),
    ],
)
def test_toml_that_no_card_needs_is_refused(text, name, column):
    with pytest.raises(FileRejected) as refusal:
        read_card(text)
    ((result, what, where),) = refusal.value.findings
    assert (result, where) == (name, column)
    assert len(what) < 300


def test_the_template_is_a_card_that_declares_nothing():
    from farshift.leaderboard.validation.card import parse_team_and_model

    problems = Problems()
    assert parse_team_and_model(read_card(TEMPLATE.encode()), "card.toml", problems).model == ModelCard()
    assert problems.items == []
    uncommented = TEMPLATE.replace("# parameters", "parameters").replace("# budget", "budget")
    uncommented = (
        uncommented.replace("# protocol", "protocol").replace("# links", "links").replace("# contact", "contact")
    )
    result = parse_team_and_model(read_card(uncommented.encode()), "card.toml", problems).model
    assert problems.items == []
    assert (result.parameters, len(result.links)) == (1_000_000, 2)
