"""Who a team is: by its key where it signs, by its name where it does not."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import tomli_w
from farshift import FarshiftError
from farshift.cli import app
from farshift.core.errors import BadSubmission
from farshift.leaderboard.ledger.keys import SigningKey, create_key
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.submission.validate import validate_submission
from farshift.leaderboard.teams import compute_fingerprint, make_display_names, make_team_identity, normalise_name
from fuzz.packing import repack
from typer.testing import CliRunner


@pytest.fixture(scope="module")
def key(tmp_path_factory) -> SigningKey:
    return create_key(tmp_path_factory.mktemp("key") / "key.pem", "team")


def recarded(file: Path, out: Path, change) -> Path:
    """A submission with another submission.toml."""
    return repack(
        file, out, "submission.toml", lambda text: tomli_w.dumps(change(tomllib.loads(text.decode()))).encode()
    )


@pytest.fixture(scope="module")
def signed(runs, key, tmp_path_factory) -> Path:
    """A submission that a team signed."""
    return pack_runs(runs[:1], tmp_path_factory.mktemp("signed") / "s.zip", team="us", key=key)


def test_the_same_runs_card_and_key_pack_to_the_same_bytes(runs, key, signed, tmp_path):
    item = signed
    assert pack_runs(runs[:1], tmp_path / "two.zip", team="us", key=key).read_bytes() == item.read_bytes()
    assert validate_submission(item).team_key == key.public
    assert validate_submission(pack_runs(runs[:1], tmp_path / "none.zip", team="us")).team_key == ""


@pytest.mark.attack("entrant", "a submission changed after it was signed")
@pytest.mark.parametrize(
    "change",
    [
        lambda card: card | {"team": "them"},
        lambda card: card | {"signature": card["signature"] | {"key": "0" * 64}},
        lambda card: card | {"signature": card["signature"] | {"signature": "0" * 128}},
        lambda card: card | {"signature": {"key": card["signature"]["key"]}},
        lambda card: card | {"signature": "signed"},
    ],
)
def test_a_card_that_was_changed_after_signing_is_refused_in_one_line(signed, tmp_path, change):
    with pytest.raises(BadSubmission, match="^forged.zip: submission.toml, key signature[^\n]*$"):
        validate_submission(recarded(signed, tmp_path / "forged.zip", change))


def test_the_ledger_has_the_key_of_who_signed_and_verify_holds_it_to_the_submission(runs, key, signed, board, tmp_path):
    submit_runs(board, signed)
    submit_runs(board, pack_runs(runs[1:2], tmp_path / "u.zip", team="others"))
    bodies = [record.body for record in board.ledger.records() if record.kind == "submitted"]
    assert [body.get("team_key") for body in bodies] == [key.public, None]
    assert verify_board(board).differences == []


@pytest.mark.attack("entrant", "unsigned submissions under the name of a team that has a key")
def test_an_unsigned_submission_cannot_take_the_name_of_a_team_with_a_key(runs, key, board, tmp_path):
    submit_runs(board, pack_runs(runs[:1], tmp_path / "s.zip", team="Mean Team", key=key))
    for number, name in enumerate(("mean  team", "Mean Team", "ＭＥＡＮ team")):
        with pytest.raises(FarshiftError, match=f"needs a key: .*{compute_fingerprint(key.public)}"):
            submit_runs(board, pack_runs(runs[1:2], tmp_path / f"{number}.zip", team=name))
    other = create_key(tmp_path / "other.pem", "team")
    submit_runs(board, pack_runs(runs[1:2], tmp_path / "o.zip", team="Mean  team", key=other))
    assert make_display_names((entry.team, entry.team_key) for entry in board.standings()) == {
        ("Mean Team", key.public): f"Mean Team [{compute_fingerprint(key.public)}]",
        ("Mean  team", other.public): f"Mean  team [{compute_fingerprint(other.public)}]",
    }


@pytest.mark.attack("entrant", "names of other teams in another case, character width or spacing")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The adders", "the  ADDERS "),
        ("Zoë", "Zoe\u0308"),
        ("TEAM ID", "team id"),
        ("ﬁne", "fine"),
        ("straße", "STRASSE"),
    ],
)
def test_names_are_without_case_width_and_spaces(one, other):
    assert normalise_name(one) == normalise_name(other)


def test_other_names_are_other_teams():
    names = ["adders", "adder", "Adders 2", "Adders 3", "Zoe", "Zoë", "Zоë", "北京", "東京", "MIT", "MIR", "MlT"]
    assert len({normalise_name(name) for name in names}) == len(names)


def test_teams_without_a_name_are_one_and_a_key_without_a_name_is_its_fingerprint():
    nobody, keyed = ("", ""), ("", "ab" * 32)
    assert make_display_names([nobody, keyed]) == {nobody: "", keyed: f"[{compute_fingerprint(keyed[1])}]"}
    assert make_team_identity("", "") == "name:"


def test_the_command_line_makes_a_key_that_pack_signs_with(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "home"))
    run = CliRunner()
    assert "farshift team --create" in str(run.invoke(app, ["team"]).exception)
    built = run.invoke(app, ["team", "--create", "--name", "The adders"])
    assert built.exit_code == 0 and "back it up" in built.output
    assert (tmp_path / "home" / "team" / "key.pem").stat().st_mode & 0o777 == 0o600
    output = json.loads(run.invoke(app, ["team", "--json"]).output)
    assert output["name"] == "The adders" and output["fingerprint"] == compute_fingerprint(output["key"])
    assert output["key"] in built.output
    for options, expected in (([], output["key"]), (["--unsigned"], ""), (["--key", output["file"]], output["key"])):
        file = tmp_path / "s.zip"
        assert run.invoke(app, ["pack", str(runs[0]), "--out", str(file), *options]).exit_code == 0
        result = validate_submission(file)
        assert (result.team_key, result.card.team) == (expected, "" if options else "The adders")
    again = run.invoke(app, ["team", "--create", "--json"])
    assert json.loads(again.output)["key"] == output["key"]
