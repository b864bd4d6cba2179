"""A window: committed before it opens, one submission of each team while it is open, revealed and verified after it."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.core.errors import BadSubmission, FarshiftError
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.export import export
from farshift.leaderboard.operations.verify import verify
from farshift.leaderboard.sealed import close as closing
from farshift.leaderboard.sealed import seal as sealing
from farshift.leaderboard.sealed import submit as collecting
from farshift.leaderboard.sealed import verify as verifying
from farshift.leaderboard.sealed.answers import check_answers
from farshift.leaderboard.sealed.close import close
from farshift.leaderboard.sealed.draw_folder import read_draw
from farshift.leaderboard.sealed.drawing import draw
from farshift.leaderboard.sealed.results import results
from farshift.leaderboard.sealed.seal import opening_files, seal, seed_file
from farshift.leaderboard.sealed.submit import submit_answers
from farshift.leaderboard.sealed.verify import verify_sealed
from farshift.leaderboard.sealed.window import Places, moment, windows
from farshift.leaderboard.storage.readers import ExportReader

sys.path.insert(0, str(Path(__file__).parent))
from sealed_cases import CLOSES, ON, OPENS, SEED, Clock, sealed
from sealed_fixtures import board, clock, coins, handed, opened  # noqa: F401  (fixtures)

WINDOW = "coins__longer-1"


@pytest.fixture(scope="module")
def over(coins, handed, tmp_path_factory):  # noqa: F811
    """The folder of a board whose window had three teams and is over."""
    clock = Clock("2030-12-31T00:00:00Z")  # noqa: F811
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("farshift.leaderboard.ledger.book.now", clock.told)
        made = Board.init(tmp_path_factory.mktemp("over") / "board", "A board of windows")
        sealed(made, clock)
        clock.set(OPENS, seconds=60)
        for file in handed.answers.values():
            submit_answers(made, WINDOW, file, clock=clock)
        clock.set(CLOSES, seconds=1)
        close(made, WINDOW, clock)
    return made.path


@pytest.fixture
def revealed(over, tmp_path):
    """A copy of that board."""
    shutil.copytree(over, tmp_path / "revealed")
    return Board(tmp_path / "revealed")


_READ = {}
_DRAWN = {}


@pytest.fixture(autouse=True)
def once(monkeypatch):
    """The same answers to the same window are decoded once, and the same seed drawn once: both are pure, and tested
    elsewhere."""

    def check(file, against):
        key = (Path(file).read_bytes(), against.draw.commitment, against.drawn is None)
        if key not in _READ:
            _READ[key] = check_answers(file, against)
        return _READ[key]

    for user in (collecting, closing, verifying):
        monkeypatch.setattr(user, "check_answers", check)

    def drawn(benchmark, seed):
        key = (benchmark.manifest.identity, seed)
        if key not in _DRAWN:
            _DRAWN[key] = draw(benchmark, seed)
        return _DRAWN[key]

    for user in (sealing, closing, verifying):
        monkeypatch.setattr(user, "draw", drawn)


def kinds(board) -> list[str]:  # noqa: F811
    return [record.kind for record in board.ledger.records()]


def test_the_commitment_comes_before_the_window_and_binds_seed_and_terms(board):  # noqa: F811
    assert kinds(board) == ["opened", "seed_committed", "window_opened"]
    window = windows(board.ledger.records())[WINDOW]
    assert window.terms.commitment(SEED) == window.commitment
    assert window.terms.commitment(bytes(32)) != window.commitment
    for name in ("window", "benchmark", "manifest", "opens", "closes"):
        assert replace(window.terms, **{name: "other"}).commitment(SEED) != window.commitment


@pytest.mark.parametrize(
    ("opens", "closes", "why"),
    [
        ("2020-01-01", "2031-01-01", "is past"),
        ("2031-01-02", "2031-01-01", "before it opens"),
        ("soon", "2031-01-01", "is no time"),
        ("2031-01-02", "2031-13-01", "is no time"),
    ],
)
def test_times_that_make_no_window_are_refused(board, clock, opens, closes, why):  # noqa: F811
    with pytest.raises(FarshiftError, match=why):
        seal(board, ON, opens, closes, clock)
    assert kinds(board) == ["opened", "seed_committed", "window_opened"]


def test_times_are_utc_whatever_zone_they_are_written_in():
    assert moment("2031-01-01T02:00:00+02:00") == moment("2031-01-01") == moment("2031-01-01T00:00:00Z")


def test_windows_of_one_benchmark_are_numbered(board, clock):  # noqa: F811
    assert sealed(board, clock, bytes(32)).name == "coins__longer-2"
    assert list(windows(board.ledger.records())) == [WINDOW, "coins__longer-2"]


def test_answers_are_taken_while_the_window_is_open_only(board, handed, clock):  # noqa: F811
    file = handed.answers["ann"]
    for at, state in (("2030-12-31T23:59:59Z", "announced"), (CLOSES, "due")):
        clock.set(at)
        with pytest.raises(FarshiftError, match=f"it is {state} now"):
            submit_answers(board, WINDOW, file, clock=clock)
    clock.set(OPENS)
    assert submit_answers(board, WINDOW, file, clock=clock).new
    clock.set(CLOSES)
    close(board, WINDOW, clock)
    clock.set(OPENS)  # a board whose clock was set back
    with pytest.raises(FarshiftError, match="takes answers from"):
        submit_answers(board, WINDOW, handed.answers["bob"], clock=clock)


def test_one_submission_is_taken_of_each_team(opened, handed, clock, tmp_path, monkeypatch):  # noqa: F811
    first = submit_answers(opened, WINDOW, handed.answers["ann"], clock=clock)
    again = submit_answers(opened, WINDOW, handed.answers["ann"], clock=clock)
    assert (again.new, again.seq, again.submission) == (False, first.seq, first.submission)
    check = collecting.check_answers

    def renamed(file, sealed):
        submission, entry = check(file, sealed)
        return replace(submission, card=replace(submission.card, team="  ANN ")), entry

    monkeypatch.setattr(collecting, "check_answers", renamed)
    with pytest.raises(FarshiftError, match="one submission is taken of each team"):
        submit_answers(opened, WINDOW, handed.answers["bob"], clock=clock)
    assert kinds(opened).count("submitted") == 1


def test_a_team_that_once_gave_a_key_must_give_it_ever_after(opened, handed, clock):  # noqa: F811
    submit_answers(opened, WINDOW, handed.answers["ann"], "a long secret", clock)
    clock.set("2030-12-31T00:00:00Z")
    again = sealed(opened, clock)  # the same seed again: the same answers fit but for the window's name
    clock.set(OPENS)
    known = windows(opened.ledger.records()).values()
    for key, refused in (("", True), ("another", True), ("a long secret", False)):
        hashed = collecting.key_digest("Ann ", key)
        if refused:
            with pytest.raises(FarshiftError, match="submitted with a key before"):
                collecting._require_key(known, "Ann ", hashed)
        else:
            collecting._require_key(known, "Ann ", hashed)
    assert again.name == "coins__longer-2"
    assert "a long secret" not in str([record.body for record in opened.ledger.records()])


def test_answers_to_another_window_are_refused(opened, handed, clock):  # noqa: F811
    clock.set("2030-12-31T00:00:00Z")
    sealed(opened, clock, bytes(32))
    clock.set(OPENS)
    with pytest.raises(BadSubmission, match="another version"):
        submit_answers(opened, "coins__longer-2", handed.answers["ann"], clock=clock)


def test_a_window_is_not_closed_before_its_time(opened, clock):  # noqa: F811
    with pytest.raises(FarshiftError, match=f"closes at {CLOSES}: it is open now"):
        close(opened, WINDOW, clock)
    assert "window_closed" not in kinds(opened)


def test_at_the_close_every_answer_is_scored_and_the_seed_revealed(revealed):
    assert kinds(revealed)[3:] == ["submitted"] * 3 + ["window_closed"] + ["scored"] * 3 + ["seed_revealed"]
    window = windows(revealed.ledger.records())[WINDOW]
    assert window.seed == SEED
    found = results(revealed, WINDOW)
    assert found["state"] == "revealed"
    for entry in found["entries"]:
        score = entry["score"]
        assert score["entry_identity"] and score["metric"] == "accuracy@1"
        assert (score["id"]["rows"], score["ood"]["rows"]) == (88, 176)
        assert score["views"]["public_ood"]["rows"] == 176
        assert 0.5 < score["ood"]["value"] < 0.9


def test_the_team_that_knew_the_published_test_is_flagged_and_no_other(revealed):
    entries = {entry["team"]: entry["contrast"] for entry in results(revealed, WINDOW)["entries"]}
    for view in ("id", "ood"):
        assert entries["cheat"][view]["flag"] == "better on public"
        assert entries["cheat"][view]["low"] > 0
        assert entries["cheat"][view]["p_holm"] <= 3 * entries["cheat"][view]["p"] + 1e-5
        assert entries["ann"][view]["flag"] == entries["bob"][view]["flag"] == ""


def test_closing_again_changes_nothing(revealed, clock):  # noqa: F811
    before = len(revealed.ledger.records())
    assert close(revealed, WINDOW, clock).seed == SEED
    assert len(revealed.ledger.records()) == before


def test_a_revealed_window_verifies_on_the_board_and_from_an_export(revealed, tmp_path):
    assert verify(revealed).differences == []
    export(revealed, tmp_path / "export")
    found = verify(ExportReader(tmp_path / "export"))
    assert (found.differences, found.not_recomputed) == ([], [])
    assert list((tmp_path / "export").rglob("answers/*.zip"))


@pytest.mark.parametrize("what", ["draw/draw.toml", "draw/inputs.parquet", "profile.json", "scores", "answers"])
def test_a_changed_or_missing_file_is_found(revealed, what):
    place = revealed.path / "sealed" / WINDOW / what
    path = next(iter(sorted(place.iterdir()))) if place.is_dir() else place
    content = path.read_bytes()
    path.write_bytes(content + b" ")
    assert any(path.name in line and "changed" in line for line in verify(revealed).differences)
    path.unlink()
    assert any(path.name in line and "missing" in line for line in verify(revealed).differences)


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, path: str) -> Path | None:
        return self.path / path if (self.path / path).is_file() else None


def changed(board, kind, **body):  # noqa: F811
    """The board's records, those of a kind with another body."""
    return [
        replace(record, body=record.body | body) if record.kind == kind else record for record in board.ledger.records()
    ]


def test_a_seed_other_than_the_committed_one_is_found(revealed):
    records = changed(revealed, "seed_revealed", seed="00" * 32)
    differences, _ = verify_sealed(Folder(revealed.path), records)
    assert any("is not the one that was committed to" in line for line in differences)


def test_terms_that_were_changed_after_the_commitment_are_found(revealed):
    records = changed(revealed, "seed_committed", closes="2032-01-01T00:00:00Z")
    differences, _ = verify_sealed(Folder(revealed.path), records)
    assert any("other terms" in line for line in differences)


def test_other_inputs_than_the_seed_gives_are_found(revealed, tmp_path):
    """A board that hands out rows of its own choice and reveals the committed seed."""
    window = windows(revealed.ledger.records())[WINDOW]
    benchmark = find_benchmark(ON)
    forged = opening_files(window.terms, SEED, draw(benchmark, bytes(32)), benchmark)
    shutil.copytree(revealed.path / "sealed", tmp_path / "sealed")
    for path, content in forged.items():
        (tmp_path / path).write_bytes(content)
    digest = read_draw((tmp_path / Places(WINDOW).card).parent).digest
    records = changed(revealed, "window_opened", inputs=digest)
    differences, _ = verify_sealed(Folder(tmp_path), records)
    assert any("gives another draw than the published one" in line for line in differences)


def test_a_score_that_the_answers_do_not_give_is_found(revealed, tmp_path):
    shutil.copytree(revealed.path / "sealed", tmp_path / "sealed")
    path = min((tmp_path / "sealed" / WINDOW / "scores").iterdir())
    path.write_text(path.read_text().replace('"accuracy@1"', '"accuracy@2"'))
    differences, _ = verify_sealed(Folder(tmp_path), revealed.ledger.records())
    assert any("computed again, their score differs" in line for line in differences)


def test_records_in_an_order_that_no_board_writes_are_found(revealed):
    records = revealed.ledger.records()
    by_kind = {record.kind: record for record in records}
    late = [record for record in records if record.kind != "seed_committed"]
    assert any("before the board committed" in line for line in verify_sealed(Folder(revealed.path), late)[0])
    twice = [*records, replace(by_kind["submitted"], seq=99)]
    found = verify_sealed(Folder(revealed.path), twice)[0]
    assert any("took answers after it was closed" in line for line in found)
    team = by_kind["submitted"].body | {"submission": "0" * 64}
    second = [*records[:4], replace(records[3], body=team), *records[4:]]
    found = verify_sealed(Folder(revealed.path), second)[0]
    assert any("has more than one submission" in line for line in found)
    outside = [
        replace(record, time="2031-02-01T00:00:00Z") if record.kind == "submitted" else record for record in records
    ]
    assert any("outside the window" in line for line in verify_sealed(Folder(revealed.path), outside)[0])
    unscored = [record for record in records if record.kind != "scored"]
    assert any("were never scored" in line for line in verify_sealed(Folder(revealed.path), unscored)[0])


class Killed(BaseException):
    """What a test ends a process with."""


def interrupted(monkeypatch, step: int, places) -> None:
    """Die before or after the step-th thing that goes to the disk: even numbers before it, odd ones after it."""
    count = 0

    def wrap(function):
        def call(*arguments, **options):
            nonlocal count
            mine, count = count, count + 1
            if 2 * mine == step:
                raise Killed
            done = function(*arguments, **options)
            if 2 * mine + 1 == step:
                raise Killed
            return done

        return call

    for owner, name in places:
        monkeypatch.setattr(owner, name, wrap(getattr(owner, name)))


def test_sealing_that_is_cut_off_anywhere_is_carried_on_with_its_own_seed(coins, clock, tmp_path):  # noqa: F811
    finished = False
    for step in range(20):
        made = Board.init(tmp_path / str(step), "B")
        with pytest.MonkeyPatch.context() as patch:
            places = [(sealing, "write_private"), (made.ledger, "append"), (made.ledger.store, "append")]
            interrupted(patch, step, places)
            try:
                sealed(made, clock)
                finished = True
            except Killed:
                pass
        after = Board(tmp_path / str(step))
        committed = [record.body["commitment"] for record in after.ledger.records() if record.kind == "seed_committed"]
        seed = seed_file(after, WINDOW)
        begun = seed.read_text() if seed.exists() else None
        window = (
            sealed(after, clock, bytes(32))
            if "window_opened" not in kinds(after)
            else windows(after.ledger.records())[WINDOW]
        )
        assert kinds(after) == ["opened", "seed_committed", "window_opened"], step
        assert window.terms.commitment(bytes.fromhex(seed.read_text())) == window.commitment
        assert begun in (None, seed.read_text())
        assert not committed or committed == [window.commitment]
        assert verify(after).differences == []
        if finished:
            break
    assert finished and step >= 8


def test_a_close_that_is_cut_off_anywhere_is_carried_on(opened, handed, clock, tmp_path):  # noqa: F811
    submit_answers(opened, WINDOW, handed.answers["ann"], clock=clock)
    clock.set(CLOSES)
    finished = False
    for step in range(20):
        shutil.copytree(opened.path, tmp_path / f"copy-{step}")
        made = Board(tmp_path / f"copy-{step}")
        with pytest.MonkeyPatch.context() as patch:
            interrupted(patch, step, [(made.ledger, "append"), (made.ledger.store, "append"), (closing, "result")])
            try:
                close(made, WINDOW, clock)
                finished = True
            except Killed:
                pass
        after = Board(tmp_path / f"copy-{step}")
        if not finished:
            close(after, WINDOW, clock)
        assert kinds(after)[3:] == ["submitted", "window_closed", "scored", "seed_revealed"], step
        assert verify(after).differences == []
        if finished:
            break
    assert finished and step >= 6


def test_a_seed_that_is_lost_after_the_commitment_is_asked_for(board, clock):  # noqa: F811
    seed_file(board, WINDOW).unlink()
    clock.set(CLOSES)
    with pytest.raises(FarshiftError, match="is missing: put it back"):
        close(board, WINDOW, clock)


def test_a_window_nobody_answered_is_revealed_all_the_same(opened):  # noqa: F811
    close(opened, WINDOW, Clock(CLOSES))
    assert results(opened, WINDOW)["entries"] == []
    assert verify(opened).differences == []


def test_a_window_of_a_benchmark_that_is_not_here_is_not_recomputed(revealed, monkeypatch):
    monkeypatch.delenv("FARSHIFT_PATH")
    differences, not_recomputed = verify_sealed(Folder(revealed.path), revealed.ledger.records())
    assert differences == []
    assert len(not_recomputed) == 1
    assert "no benchmark named 'coins/longer'" in not_recomputed[0]
