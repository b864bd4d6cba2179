"""Answers are signed: one of each key, whatever the names."""

from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import farshift as fs
import numpy as np
import pytest
import tomli_w
from farshift import FarshiftError
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.harness.predictor import limit_time
from farshift.benchmarks.runs.run import Run
from farshift.core.errors import BadSubmission
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.sealed.results import make_window_results
from farshift.leaderboard.sealed.seal import close_window
from farshift.leaderboard.sealed.submit import pack_answers, predict_draw, submit_answers
from farshift.leaderboard.sealed.verify import verify_sealed
from farshift.leaderboard.validation.card import sign_card
from fuzz.packing import repack
from sealed_cases import CLOSES, ON, WINDOW, Clock, Handed, key_of, kinds
from test_window_verify import changed, list_folder

pytestmark = pytest.mark.usefixtures("decoded_once")


def packed_again(answers, out, key=None, **changes):
    """The same answers with another card: signed by a key, or by nobody."""

    def change(text: bytes) -> bytes:
        card = tomllib.loads(text.decode())
        del card["signature"]
        return tomli_w.dumps(card | changes if key is None else sign_card(card | changes, key)).encode()

    return repack(answers, out, "submission.toml", change)


@pytest.mark.attack("entrant", "answers to a window, submitted twice under two names")
def test_one_submission_is_taken_of_each_key_whatever_name_it_gives(opened, handed, clock, tmp_path):
    """A team that answers again under another name, once it has thought again."""
    ann = handed.answers["ann"]
    first = submit_answers(opened, WINDOW, ann, clock)
    again = submit_answers(opened, WINDOW, ann, clock)
    assert first[1]
    assert again == (first[0], False)
    other = packed_again(ann, tmp_path / "other.zip", key_of(ann.parent, "ann"), team="Zoe")
    with pytest.raises(FarshiftError, match="only one is accepted for each key"):
        submit_answers(opened, WINDOW, other, clock)
    assert kinds(opened).count("submitted") == 1


@pytest.mark.attack("entrant", "answers to a window under another team's name, to lock that team out")
def test_a_squatter_of_a_name_locks_nobody_out(opened, handed, clock, tmp_path):
    """A stranger who answers first under the name of a team that is known."""
    bob, key = handed.answers["bob"], key_of(tmp_path, "stranger")
    submit_answers(opened, WINDOW, packed_again(bob, tmp_path / "squat.zip", key, team="ann"), clock)
    assert submit_answers(opened, WINDOW, handed.answers["ann"], clock)[1]
    clock.set(CLOSES)
    close_window(opened, WINDOW, clock)
    names = [entry["team"] for entry in make_window_results(opened, WINDOW)["entries"]]
    assert len(set(names)) == 2
    assert all(name.startswith("ann [") for name in names)  # with the fingerprints of their keys
    assert verify_board(opened).differences == []


@pytest.mark.attack("entrant", "answers without a signature, or with another team's")
def test_answers_that_nobody_signed_or_whose_signature_is_another_s_are_refused(opened, handed, clock, tmp_path):
    ann = handed.answers["ann"]
    with pytest.raises(FarshiftError, match="is not signed: create your team's key with farshift team --create"):
        submit_answers(opened, WINDOW, packed_again(ann, tmp_path / "unsigned.zip"), clock)
    with zipfile.ZipFile(ann) as bundle:
        signature = tomllib.loads(bundle.read("submission.toml").decode())["signature"]
    stolen = packed_again(ann, tmp_path / "stolen.zip", team="eve", signature=signature)
    with pytest.raises(BadSubmission, match="does not match this card"):
        submit_answers(opened, WINDOW, stolen, clock)
    with zipfile.ZipFile(ann) as bundle, zipfile.ZipFile(tmp_path / "swapped.zip", "w") as out:
        for entry in bundle.infolist():
            content = bundle.read(entry)
            out.writestr(zipfile.ZipInfo(entry.filename, (1980, 1, 1, 0, 0, 0)), content.replace(b"ann", b"eve"))
    with pytest.raises(BadSubmission):
        submit_answers(opened, WINDOW, tmp_path / "swapped.zip", clock)
    assert "submitted" not in kinds(opened)


def test_answers_are_not_packed_without_a_key(handed, tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "home"))
    with pytest.raises(FarshiftError, match="farshift team --create"):
        pack_answers(None, tmp_path / "a.zip", handed.draw, "ann")


@pytest.mark.attack("operator", "answers recorded under another key")
def test_answers_recorded_under_another_key_are_found(revealed):
    records = changed(revealed, "submitted", signed_by="0" * 64)
    differences, _ = verify_sealed(list_folder(revealed.path), records, Clock(CLOSES))
    assert any("which differs from the ledger" in line for line in differences)
    assert any("has more than one submission" in line for line in differences)


class Guesses:
    """A factory of models that guess."""

    name = "guesses"

    def __call__(self, seed: int) -> Any:
        return self

    def predict(self, batch: Any) -> Any:
        return np.zeros(len(batch["coins"]), int)


class Endpoint(Guesses):
    """One that paces its own requests, and knows the digest of what decides its answers."""

    keeps_time = True
    code = "e" * 64


Ask = Callable[..., Run]


@pytest.fixture(params=["evaluate", "predict_draw"])
def ask(request: pytest.FixtureRequest, handed: Handed, tmp_path: Path) -> Ask:
    """Both ways in which a model comes to a run."""
    out = tmp_path / "run"
    if request.param == "evaluate":
        return lambda model, **more: fs.evaluate(model, find_benchmark(ON), seeds=1, out=out, **more)
    return lambda model, **more: predict_draw(model, handed.draw, seeds=1, out=out, **more)


@pytest.mark.parametrize(
    ("model", "options", "seconds"),
    [(Guesses(), {}, 600.0), (Endpoint(), {}, 0.0), (Endpoint(), {"time_limit": 5.0}, 5.0)],
    ids=["a model", "one that paces itself", "one with a limit set"],
)
def test_a_model_has_the_time_that_its_own_pacing_asks_for(
    ask: Ask, model: Any, options: dict[str, Any], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    def note(seconds: float, *more: Any) -> AbstractContextManager[None]:
        limits.append(seconds)
        return limit_time(seconds, *more)

    monkeypatch.setattr("farshift.benchmarks.harness.predictor.limit_time", note)
    ask(model, **options)
    assert set(limits) == {seconds}


def test_the_digest_of_its_code_that_a_model_brings_is_on_the_card(ask: Ask) -> None:
    assert ask(Endpoint()).card.model.code == "e" * 64
