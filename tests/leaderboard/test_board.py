"""A board: what goes in is validated, what is in can be recomputed, what was changed is found."""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import farshift as fs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.run import card_digest
from farshift.leaderboard.board import Board
from farshift.leaderboard.ledger import Ledger
from farshift.leaderboard.site import build
from farshift.leaderboard.submission import pack
from farshift.leaderboard.validate import check
from farshift.splits.errors import BadSubmission, FarshiftError
from farshift.splits.plugins import read_toml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import models

ON = "modadd97/xi35"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    """Three runs: two models on one benchmark, one on another."""
    base = tmp_path_factory.mktemp("runs")
    fs.evaluate(lambda seed: models.Adder(seed, 0.1), on=ON, seeds=2, out=base / "good", name="good")
    fs.evaluate(lambda seed: models.Adder(seed, 0.4), on=ON, seeds=2, out=base / "worse", name="worse <b>")
    fs.evaluate(models.Echo(), on="scan/length", seeds=1, out=base / "echo", name="echo")
    return [base / name for name in ("good", "worse", "echo")]


@pytest.fixture
def board(tmp_path) -> Board:
    return Board.init(tmp_path / "board", "A test board")


def verified(board: Board) -> tuple[int, list[str]]:
    """Entries and differences."""
    found = board.verify()
    assert found.not_recomputed == []
    return found.entries, found.differences


def test_the_same_runs_pack_to_the_same_bytes(runs, tmp_path):
    one = pack(runs, tmp_path / "one.zip", team="t").read_bytes()
    assert pack(list(reversed(runs)), tmp_path / "other.zip", team="t").read_bytes() == one
    with pytest.raises(FarshiftError, match="are both good on modadd97/xi35"):
        shutil.copytree(runs[0], tmp_path / "twin")
        pack([runs[0], tmp_path / "twin"], tmp_path / "x.zip")


def test_a_submission_is_scored_from_its_predictions(runs, board, tmp_path):
    entries, new = board.submit(pack(runs, tmp_path / "s.zip", team="us"))
    assert new
    assert len(entries) == 3
    stored = {row.score["model"]: row for row in board.standings()}
    for path in runs:
        run = fs.read_run(path)
        file = board.path / "scores" / f"{stored[run.model].entry}.json"
        assert file.read_bytes() == fs.score(run).json(), "the same bytes offline and on the board"
    assert verified(board) == (3, [])


def test_handing_in_the_same_file_again_changes_nothing(runs, board, tmp_path):
    file = pack(runs, tmp_path / "s.zip")
    first, _ = board.submit(file)
    before = (board.path / "ledger.jsonl").read_bytes()
    assert board.submit(file) == (first, False)
    assert (board.path / "ledger.jsonl").read_bytes() == before


def tampered(board: Board, what: str) -> None:
    ledger, scores = board.path / "ledger.jsonl", sorted((board.path / "scores").glob("*.json"))
    lines = ledger.read_text().splitlines(keepends=True)
    if what == "score":
        record = json.loads(scores[0].read_text())
        record["ood"]["value"] = 0.999
        scores[0].write_text(json.dumps(record))
    elif what == "score gone":
        scores[0].unlink()
    elif what == "score added":
        shutil.copy(scores[0], scores[0].with_name("0123456789abcdef.json"))
    elif what == "submission":
        file = next((board.path / "submissions").iterdir())
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    elif what == "record changed":
        ledger.write_text("".join([lines[0], lines[1].replace('"team":"us"', '"team":"me"')]))
    elif what == "record removed":
        ledger.write_text("".join(lines[1:]))
    elif what == "last record removed":
        ledger.write_text(lines[0])
    elif what == "emptied":
        ledger.write_text("")
        shutil.rmtree(board.path / "scores")
        shutil.rmtree(board.path / "submissions")
    elif what == "record rewritten":
        ledger.write_text(lines[0])
        body = json.loads(lines[1])["body"]
        body["entries"][0]["score"] = "0" * 64
        Ledger(ledger).append([("submitted", body)])
    elif what == "record malformed":
        Ledger(ledger).append([("submitted", {"submission": "x"})])


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ("score", "is missing or is not the ledger's"),
        ("score gone", "is missing or is not the ledger's"),
        ("score added", "belongs to no record"),
        ("submission", "is missing or was changed"),
        ("record changed", "line 2 was changed"),
        ("record removed", "line 1 has number 1"),
        ("last record removed", "belongs to no record"),
        ("emptied", "does not begin with the board's opening"),
        ("record rewritten", "computed again, score differs from the ledger"),
        ("record malformed", "lacks what a submission's record has"),
    ],
)
def test_verify_finds_every_change(runs, board, tmp_path, what, complaint):
    board.submit(pack(runs, tmp_path / "s.zip", team="us"))
    tampered(board, what)
    _, differences = verified(board)
    assert any(complaint in difference for difference in differences), differences


def test_a_line_that_a_crash_cut_off_is_dropped_by_the_next_append(runs, board, tmp_path):
    board.submit(pack(runs[:1], tmp_path / "a.zip"))
    ledger = board.path / "ledger.jsonl"
    with ledger.open("ab") as file:
        file.write(b'{"seq":2,"time":"2026')
    assert verified(board) == (1, [])
    board.submit(pack(runs[1:], tmp_path / "b.zip"))
    assert verified(board) == (3, [])
    assert len(ledger.read_text().splitlines()) == 3


def test_a_record_that_lost_only_its_newline_is_kept(runs, board, tmp_path):
    board.submit(pack(runs[:1], tmp_path / "a.zip"))
    ledger = board.path / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().rstrip(b"\n"))
    assert verified(board) == (1, [])
    board.submit(pack(runs[1:], tmp_path / "b.zip"))
    assert verified(board) == (3, [])


KILLED = """
import os, signal, sys
import farshift.leaderboard.board as board
from farshift.leaderboard.ledger import Ledger
place, target = sys.argv[3], getattr(board, sys.argv[3], None)
def killed(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
if place == "ledger": Ledger.append = killed
elif place == "publish": board.Board._publish = killed
elif place == "staging": board._listed = killed
board.Board(sys.argv[1]).submit(sys.argv[2])
"""


@pytest.mark.parametrize("place", ["staging", "ledger", "publish"])
def test_a_submit_that_is_killed_leaves_all_or_nothing(runs, board, tmp_path, place):
    file = pack(runs, tmp_path / "s.zip")
    done = subprocess.run([sys.executable, "-c", KILLED, board.path, file, place], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert verified(board) == ((3, []) if place == "publish" else (0, []))
    assert board.submit(file)[1] is (place != "publish")
    assert verified(board) == (3, [])
    assert not list((board.path / "incoming").iterdir())


def test_an_init_that_was_killed_can_be_repeated(tmp_path):
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "ledger.jsonl").write_text("")
    assert Board.init(tmp_path / "board", "again").name == "again"


def test_a_board_with_a_changed_score_shows_no_page(runs, board, tmp_path):
    board.submit(pack(runs, tmp_path / "s.zip"))
    tampered(board, "score")
    with pytest.raises(FarshiftError, match="farshift board verify"):
        build(board)


def test_a_run_enters_a_board_once(runs, board, tmp_path):
    board.submit(pack(runs, tmp_path / "a.zip"))
    with pytest.raises(FarshiftError, match="on this board already: pack the others without it"):
        board.submit(pack(runs[:1], tmp_path / "b.zip", note="another card"))


def test_entries_of_an_older_scorer_are_kept_and_said_to_be_old(runs, board, tmp_path, monkeypatch):
    board.submit(pack(runs, tmp_path / "s.zip"))
    monkeypatch.setattr("farshift.benchmarks.benchmark.SCORER", 2)
    found = board.verify()
    assert (found.entries, found.differences) == (3, [])
    assert len(found.not_recomputed) == 3
    assert "older identity" in build(board).read_text()


def test_an_entry_of_an_unknown_benchmark_is_said_to_be_one(runs, board, tmp_path, monkeypatch):
    board.submit(pack(runs, tmp_path / "s.zip", note="a first <try>"))
    assert any("a first &lt;try&gt;" in page.read_text() for page in (build(board).parent / "entries").iterdir())
    known = {"scan/length": find_benchmark("scan/length")}
    monkeypatch.setattr("farshift.benchmarks.benchmark.benchmarks", lambda: known)
    found = board.verify()
    assert found.differences == []
    assert len(found.not_recomputed) == 2
    assert all("no benchmark named 'modadd97/xi35'" in why and "FARSHIFT_PATH" in why for why in found.not_recomputed)


def test_data_that_cannot_be_had_is_no_difference(runs, board, tmp_path, monkeypatch):
    from farshift.splits.errors import Unavailable

    board.submit(pack(runs, tmp_path / "s.zip"))

    def unavailable(*_: object) -> None:
        raise Unavailable("no network")

    monkeypatch.setattr("farshift.leaderboard.board.check", unavailable)
    found = board.verify()
    assert found.differences == []
    assert "no network" in found.not_recomputed[0]


def repacked(runs: list[Path], tmp_path: Path, change) -> Path:
    """A submission of one run whose files `change(card, table) -> (card, table)` made other; digests made to fit."""
    card, table = read_toml(runs[0] / "run.toml"), pq.read_table(runs[0] / "predictions.parquet")
    card, table = change(card, table)
    folder = tmp_path / "changed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    pq.write_table(table, folder / "predictions.parquet")
    from farshift.loaders.cache import file_sha256

    card["digests"]["predictions"] = file_sha256(folder / "predictions.parquet")
    card["digests"]["run"] = card_digest(card)
    (folder / "run.toml").write_text(tomli_w.dumps(card))
    out = tmp_path / "changed.zip"
    with zipfile.ZipFile(out, "w") as bundle:
        listed = {"format": 1, "team": "", "note": "", "runs": [{"digest": card["digests"]["run"]}]}
        bundle.writestr("submission.toml", tomli_w.dumps(listed))
        for name in ("run.toml", "predictions.parquet"):
            bundle.write(folder / name, f"runs/0/{name}")
    return out


def column(table: pa.Table, name: str, values) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def first(table: pa.Table, name: str, value) -> pa.Table:
    values = table[name].to_pylist()
    values[0] = value
    return column(table, name, pa.array(values, table[name].type))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda card, table: (card, table.slice(1)), "part id_test, seed 0: 1 missing row ids (first "),
        (lambda card, table: (card, pa.concat_tables([table, table.slice(0, 2)])), "2 repeated row ids (first "),
        (lambda card, table: (card, first(table, "row_id", 7)), "1 missing row ids"),
        (lambda card, table: (card, first(table, "row_id", 7)), "1 unknown row ids (first 0000000000000007)"),
        (lambda card, table: (card, first(table, "prediction", 97)), "class 97 is not one of 0..96"),
        (lambda card, table: (card, first(table, "part", "test")), "unknown part 'test'"),
        (lambda card, table: (card, first(table, "seed", 5)), "unknown seed '5'"),
        (lambda card, table: (card, first(table, "prediction", None)), "has missing values"),
        (lambda card, table: (card, table.drop(["seed"])), "columns {"),
        (lambda card, table: (card, column(table, "prediction", table["prediction"].cast("double"))), "'double'"),
        (lambda card, table: (card | {"budget": card["budget"] | {"seeds": [0, 0]}}, table), "listed twice"),
        (lambda card, table: (card | {"budget": card["budget"] | {"name": "quick"}}, table), "another version"),
        (lambda card, table: (card | {"model": {"name": "x" * 101}}, table), "the model's name"),
        (
            lambda card, table: (card | {"benchmark": card["benchmark"] | {"name": "scan/lenght"}}, table),
            "did you mean",
        ),
        (lambda card, table: (card | {"format": 9}, table), "format 9 is not 1"),
        (lambda card, table: (card | {"budget": card["budget"] | {"seeds": [2**70]}}, table), "each from 0 to"),
        (lambda card, table: (card | {"budget": card["budget"] | {"steps": "many"}}, table), "steps must be"),
        (lambda card, table: (card, table.append_column("seed", table["seed"])), "(each once)"),
    ],
)
def test_a_bad_submission_is_refused_with_what_and_where(runs, board, tmp_path, change, complaint):
    file = repacked(runs, tmp_path, change)
    with pytest.raises(BadSubmission) as refusal:
        board.submit(file)
    assert complaint in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert verified(board) == (0, [])
    assert not (board.path / "submissions").exists()


def test_a_card_with_values_that_no_run_writes_is_refused(runs, tmp_path):
    good = pack(runs[:1], tmp_path / "good.zip")
    with zipfile.ZipFile(good) as bundle:
        files = {name: bundle.read(name) for name in bundle.namelist()}
    for value in (b"nan", b"1979-05-27"):
        files["runs/0/run.toml"] = re.sub(
            rb"seconds = [0-9.]+", b"seconds = " + value, files["runs/0/run.toml"], count=1
        )
        with zipfile.ZipFile(tmp_path / "bad.zip", "w") as bundle:
            for name, content in files.items():
                bundle.writestr(name, content)
        with pytest.raises(BadSubmission, match="was edited"):
            check(tmp_path / "bad.zip")


def test_text_that_is_no_utf8_is_refused(runs, tmp_path):
    def change(card, table):
        raw = pa.array([b"\xff"] * table.num_rows, pa.binary())
        return card, table.set_column(table.column_names.index("prediction"), "prediction", raw.view(pa.string()))

    with pytest.raises(BadSubmission, match="not readable Parquet"):
        check(repacked(runs[2:], tmp_path, change))


def test_a_damaged_compressed_entry_is_refused(runs, tmp_path):
    good = pack(runs[:1], tmp_path / "good.zip")
    with zipfile.ZipFile(good) as bundle, zipfile.ZipFile(tmp_path / "d.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for name in bundle.namelist():
            packed.writestr(name, bundle.read(name))
    content = bytearray((tmp_path / "d.zip").read_bytes())
    content[60:90] = bytes(30)
    (tmp_path / "d.zip").write_bytes(content)
    with pytest.raises(BadSubmission, match="not a readable zip"):
        check(tmp_path / "d.zip")


def test_all_problems_are_told_at_once(runs, tmp_path):
    def change(card, table):
        return card, first(first(table, "prediction", -1), "row_id", 7)

    with pytest.raises(BadSubmission, match=r"2 problems: .*missing row ids.*class -1"):
        check(repacked(runs, tmp_path, change))


def test_files_that_are_no_submission_are_refused(runs, tmp_path):
    for content, complaint in ((b"", "not a readable zip"), (b"PK\x05\x06" + bytes(18), "submission.toml is missing")):
        (tmp_path / "f.zip").write_bytes(content)
        with pytest.raises(BadSubmission, match=complaint):
            check(tmp_path / "f.zip")
    with pytest.raises(BadSubmission, match="does not exist"):
        check(tmp_path / "absent.zip")
    good = pack(runs, tmp_path / "good.zip")
    with zipfile.ZipFile(good, "a") as bundle:
        bundle.writestr("../../etc/passwd", "x")
        bundle.writestr("model.pkl", b"\x80\x04.")
    with pytest.raises(BadSubmission, match=r"2 problems: unexpected entry '\.\./\.\./etc/passwd'; .*model\.pkl"):
        check(good)


def test_a_changed_prediction_file_is_refused_by_its_digest(runs, tmp_path):
    good = pack(runs[:1], tmp_path / "good.zip")
    with zipfile.ZipFile(good) as bundle:
        files = {name: bundle.read(name) for name in bundle.namelist()}
    table = pq.read_table(io.BytesIO(files["runs/0/predictions.parquet"]))
    sink = io.BytesIO()
    pq.write_table(first(table, "prediction", 3), sink)
    files["runs/0/predictions.parquet"] = sink.getvalue()
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as bundle:
        for name, content in files.items():
            bundle.writestr(name, content)
    with pytest.raises(BadSubmission, match="its digest is not the one in"):
        check(tmp_path / "bad.zip")


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_mutated_submissions_are_refused_by_name_or_still_whole(runs, tmp_path, data):
    content = bytearray(pack(runs[:1], tmp_path / "good.zip").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    (tmp_path / "m.zip").write_bytes(content)
    try:
        check(tmp_path / "m.zip")
    except BadSubmission as refusal:
        assert str(refusal).startswith("m.zip: ")


def test_pages_show_every_entry_escape_names_and_are_the_same_bytes_each_time(runs, board, tmp_path):
    board.submit(pack(runs, tmp_path / "s.zip", team="<script>alert(1)</script>"))
    index = build(board)
    text = index.read_text()
    assert "worse &lt;b&gt;" in text
    assert "<script>" not in text
    assert text.index("good") < text.index("worse"), "ordered by OOD score"
    assert '1 <span class="ci">of 5' in text, "fewer seeds than the protocol asks for are shown"
    pages = {path.name: path.read_bytes() for path in (board.path / "site" / "entries").iterdir()}
    assert len(pages) == 3
    assert any(b"Score by severity" in page for page in pages.values())
    again = build(board, tmp_path / "again")
    assert again.read_bytes() == index.read_bytes()
    assert {path.name: path.read_bytes() for path in (tmp_path / "again" / "entries").iterdir()} == pages


def test_an_empty_board_has_a_page_and_a_folder_in_use_is_not_taken(board, tmp_path):
    assert "No entries yet" in build(board).read_text()
    with pytest.raises(FarshiftError, match="exists and is not empty"):
        Board.init(board.path, "again")
    with pytest.raises(FarshiftError, match="is no board: make one with farshift board init"):
        Board(tmp_path / "absent")


def test_entries_of_other_identities_never_share_a_table(runs, board, tmp_path):
    from farshift.leaderboard.standings import tables

    quick = tmp_path / "quick"
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=quick, name="quick one", budget="quick")
    short = tmp_path / "short"
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=short, name="short one", steps=7)
    board.submit(pack([*runs, quick, short], tmp_path / "s.zip"))
    found = {
        (table.benchmark, table.budget, table.steps): [row.score["model"] for row in table.rows]
        for table in tables(board.standings())
    }
    assert found == {
        ("scan/length", "full", None): ["echo"],
        (ON, "full", None): ["good", "worse <b>"],
        (ON, "full", 7): ["short one"],
        (ON, "quick", None): ["quick one"],
    }


def test_steps_set_by_hand_are_shown(board, tmp_path):
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=tmp_path / "short", steps=7)
    board.submit(pack([tmp_path / "short"], tmp_path / "s.zip"))
    assert "7 steps, set by hand" in build(board).read_text()


def test_scoring_needs_no_order_of_rows(runs, tmp_path):
    order = np.random.default_rng(0)

    def shuffled(card, table):
        return card, table.take(order.permutation(table.num_rows))

    submission = check(repacked(runs, tmp_path, shuffled))
    from farshift.benchmarks.score import score_predictions

    entry = submission.entries[0]
    again = score_predictions(entry.benchmark, entry.predictions, entry)
    assert again.json() == fs.score(runs[0]).json()
