"""Tables and pages of a real board: what was handed in, as it is shown; and the rows that are kept for it."""

from __future__ import annotations

import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import farshift as fs
import models
import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.statistics.clusters import Clustering
from farshift.benchmarks.statistics.interval import estimate_mean
from farshift.benchmarks.statistics.sample import Replicates
from farshift.core.errors import BadDefinition, Unavailable
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import declare_references, submit_runs, withdraw_entry
from farshift.leaderboard.publish.site import build_site
from farshift.leaderboard.settings import read_board_settings, write_baselines
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.tables import row_scores
from farshift.leaderboard.tables.entry_rows import EntryRows
from farshift.leaderboard.tables.row_scores import deserialise_rows, read_entry_rows, serialise_rows
from farshift.leaderboard.tables.snapshot import take_snapshot
from farshift.leaderboard.tables.table import group_entries

ON = "modadd97/xi35"


class Stages(models.Adder):
    """Two checkpoints, the second one worse; leaves some rows open."""

    def fit(self, train, val, budget):
        return {"steps": 2}

    def checkpoints(self):
        yield "early", models.Adder(self.seed, 0.1)
        yield "late", models.Bad(lambda batch: [None if a < 10 else 0 for a in batch["a"]])


@pytest.fixture(scope="module")
def whole(runs, tmp_path_factory) -> Path:
    """A board with entries of five identities, two of them on one benchmark by different rules; its rows are kept."""
    position = tmp_path_factory.mktemp("whole")
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=position / "quick", name="quick one", budget="quick")
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=position / "short", name="short one", steps=7)
    for rule in ("last", "id_val"):
        fs.evaluate(Stages, on=ON, seeds=2, out=position / rule, selection=rule, name=f"stages {rule}")
    board = Board.init(position / "board", "A test board")
    others = [position / name for name in ("quick", "short", "last", "id_val")]
    names, _ = submit_runs(
        board, pack_runs([*runs, *others], position / "s.zip", team="<script>alert(1)</script>", note="a first <try>")
    )
    declare_references(board, names)
    build_site(board)
    return board.path


@pytest.fixture
def board(whole, tmp_path) -> Board:
    """A copy of it for this test alone."""
    return Board(shutil.copytree(whole, tmp_path / "board"))


def test_entries_of_other_identities_never_share_a_table(board):
    result = {
        tuple(getattr(entries[0], name) for name in ("benchmark", "budget", "steps", "selection")): sorted(
            entry.score.model for entry in entries
        )
        for entries in group_entries(board.standings())
    }
    assert result == {
        ("scan/length", "full", None, "last"): ["echo"],
        (ON, "full", None, "last"): ["good", "stages last", "worse <b>"],
        (ON, "full", None, "id_val"): ["stages id_val"],
        (ON, "full", 7, "last"): ["short one"],
        (ON, "quick", None, "last"): ["quick one"],
    }


def test_the_pages_say_what_sets_tables_apart_and_how_candidates_were_chosen(board):
    index = "".join(path.read_text() for path in sorted((board.path / "site" / "benchmarks").rglob("*.html")))
    said = ("7 steps, set by hand", "candidates chosen by id_val", "Quick budget: fewer steps", "brackets: rows only")
    assert all(words in index for words in said)
    pages = [path.read_text() for path in (board.path / "site" / "entries").iterdir()]
    assert len(pages) == 7
    (last,) = (text for text in pages if "2 candidates, chosen by last" in text)
    assert "abstained and 0 failed; each counts as wrong" in last
    assert "<td>oracle</td>" in last
    assert "n/a (the model gave no class probabilities)" in last
    assert any("Score by severity" in text for text in pages)
    assert all("a first &lt;try&gt;" in text and "<script>" not in text for text in pages)


def test_a_board_shows_the_same_with_its_rows_kept_or_not(board):
    before = take_snapshot(board).record()
    shutil.rmtree(board.path / "derived")
    assert take_snapshot(board).record() == before
    assert len(list((board.path / "derived" / "rows").iterdir())) == 7


def test_a_changed_score_stops_a_board_and_right_again_it_goes_on(board):
    before = take_snapshot(board).record()
    score = next((board.path / "scores").rglob("*.json"))
    right = score.read_bytes()
    score.write_bytes(right.replace(b"0", b"1", 1))
    with pytest.raises(FarshiftError, match="was changed"):
        take_snapshot(board)
    score.write_bytes(right)
    assert take_snapshot(board).record() == before


def hold_the_same(content: bytes, other: bytes) -> bool:
    with np.load(io.BytesIO(content)) as left, np.load(io.BytesIO(other)) as right:
        return set(left) == set(right) and all(left[name].tobytes() == right[name].tobytes() for name in left)


@pytest.mark.attack("disk", "a flipped byte in a board's stored rows")
def test_kept_rows_that_are_not_those_of_the_score_are_made_again(board):
    """Another entry's (two of them have the same scores), what is cut off, empty, or has a flipped byte in a member's
    name in the archive's directory, which its checksums do not cover."""
    stored = sorted((board.path / "derived" / "rows").iterdir())
    before = [path.read_bytes() for path in stored]
    for path, content, other in zip(stored, before, before[1:], strict=False):
        assert serialise_rows(deserialise_rows(content, path.name), path.name) == content
        path.write_bytes(other)
    directory = before[-3].rindex(b"id.bounds")
    stored[-3].write_bytes(before[-3][:directory] + b"iD" + before[-3][directory + 2 :])
    stored[-2].write_bytes(before[-2][: len(before[-2]) // 2])
    stored[-1].write_bytes(b"")
    standings = board.standings()
    result, without = read_entry_rows(board, standings)
    assert without == {}
    # By what they hold: another zlib, as a library may bring into a process, packs the same otherwise.
    assert all(hold_the_same(path.read_bytes(), was) for path, was in zip(stored, before, strict=True))
    for standing in standings:
        value = sum(result[standing.entry].ood.per_seed) / len(standing.score.seeds)
        assert value == pytest.approx(standing.score.ood.value, abs=1e-6)
    full = before[0]
    for position in range(0, len(full), max(1, len(full) // 200)):
        with pytest.raises(ValueError, match="digest"):
            deserialise_rows(full[:position] + bytes([full[position] ^ 1]) + full[position + 1 :], stored[0].name)


def test_a_submission_that_was_changed_gives_no_rows(board):
    shutil.rmtree(board.path / "derived")
    (file,) = (board.path / "submissions").iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(FarshiftError):
        take_snapshot(board)


def test_entries_of_an_older_identity_stand_apart_without_ranks(board, monkeypatch):
    monkeypatch.setattr("farshift.benchmarks.benchmark.Benchmark.identity", lambda *_, **__: "0" * 64)
    result = take_snapshot(board)
    assert all(row.rank is None for table_view in result.views for row in table_view.rows)
    assert any("it has an older identity" in note for note in result.views[0].notes)
    site = build_site(board).parent
    shown = {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*.html")}
    assert b"All entries are of an older identity" in shown["index.html"]
    assert b"Tables of an older identity" in shown["benchmarks/scan/length.html"]


def test_an_entry_of_a_benchmark_that_is_not_known_here_is_shown_without_rank(board, monkeypatch):
    known = {"scan/length": find_benchmark("scan/length")}
    for module in ("table", "row_scores"):
        monkeypatch.setattr(f"farshift.leaderboard.tables.{module}.load_benchmarks", lambda: known)
    result = take_snapshot(board)
    ranks = {table_view.benchmark: {row.rank for row in table_view.rows} for table_view in result.views}
    assert ranks == {"scan/length": {(1, 1)}, ON: {None}}
    assert any("set FARSHIFT_PATH" in note for table_view in result.views for note in table_view.notes)


def test_what_was_withdrawn_is_in_no_table_and_still_counts_as_an_attempt(board):
    name = next(item.entry for item in board.standings() if item.score.model == "good")
    withdraw_entry(board, name, "a bug in our loader")
    result = take_snapshot(board)
    assert name not in {row.standing.entry for table_view in result.views for row in table_view.rows}
    (apart,) = result.record()["apart"]
    assert (apart["entry"], apart["kind"], apart["reason"]) == (name, "withdrawn", "a bug in our loader")
    (table_view,) = (item for item in result.views if len(item.rows) == 2)
    assert {row.attempts for row in table_view.rows} == {3}


def test_the_board_says_which_model_the_others_are_held_against(board):
    assert read_board_settings(board.path).baselines == {}
    write_baselines(board.path, {ON: "worse <b>"})
    (table_view,) = (item for item in take_snapshot(board).views if len(item.rows) == 3)
    assert (table_view.baseline, table_view.rows[0].against["verdict"]) == ("worse <b>", "better")
    assert take_snapshot(board, ON, "good").views[0].baseline != "worse <b>"
    for settings, complaint in (
        ("baselines = 3", "baselines = 3: write a table"),
        ("[baseline]", "baseline: no such key: did you mean baselines?"),
        ('[server]\nbenchmarks = ["scan/lenght"]', "server.benchmarks: no benchmark named 'scan/lenght': did you mean"),
    ):
        (board.path / "settings.toml").write_text(settings)
        with pytest.raises(BadDefinition, match=re.escape(f"settings.toml: {complaint}")):
            take_snapshot(board)


def test_a_plain_baseline_without_an_entry_or_a_benchmark_is_named(board, command):
    write_baselines(board.path, {ON: "absent", "scan/lenght": "mlp"})
    done = command("board", "standings", board.path)
    assert "No entry is compared with absent: it has no ranked entry in this table." in " ".join(done.stdout.split())
    assert "baselines name no benchmark known here: scan/lenght" in " ".join(done.stderr.split())


def test_a_benchmark_or_model_that_the_board_does_not_have_is_refused_by_name(whole, command):
    for wrong, message in (
        (["modadd97/xi53"], f"did you mean {ON}?"),
        ([ON, "--baseline", "goood"], "did you mean good?"),
    ):
        output = command("board", "standings", whole, "--benchmark", *wrong)
        assert (output.returncode, output.stdout) == (2, "")
        assert message in output.stderr


def test_the_command_prints_tables_in_every_form(board, command):
    output = command("board", "standings", board.path, "--benchmark", ON)
    assert output.returncode == 0, output.stderr
    assert "modadd97/xi35 (7 steps, set by hand): accuracy" in output.stdout
    assert "Rank sets: all 3 true OOD ranks" in output.stdout
    assert "scan/length" not in output.stdout
    record = json.loads(command("board", "standings", board.path, "--json").stdout)
    assert sum(len(table["rows"]) for table in record["tables"]) == 7


@pytest.mark.parametrize("treated", [(None, None), (1, "one"), (4, "fixed"), (30, "random")])
def test_rows_of_a_score_that_is_no_mean_are_kept_with_how_their_clusters_were_treated(treated):
    sizes = np.full(5, 8)
    without = np.array([[0.6, 0.7, 0.65, 0.62, 0.7], [0.5, 0.55, 0.52, 0.6, 0.58]])
    sample = Replicates([0.65, 0.55], without, sizes, (0.0, 1.0), Clustering(*treated))
    rows = EntryRows(sample, replace(sample, per_seed=[0.4, 0.45]))
    again = deserialise_rows(serialise_rows(rows, "a.npz"), "a.npz")
    assert [estimate_mean(view).to_dict() for view in (again.id, again.ood)] == [
        estimate_mean(view).to_dict() for view in (rows.id, rows.ood)
    ]
    assert estimate_mean(again.id).clustering == Clustering(*treated)


def test_an_entry_whose_data_cannot_be_had_or_whose_rows_give_another_score_says_so(board, monkeypatch):
    def gone(*_):
        raise Unavailable("rows.csv is not available: it has no mirrors")

    shutil.rmtree(board.path / "derived")
    with monkeypatch.context() as patch:
        patch.setattr(row_scores, "validate_submission", gone)
        result, without = read_entry_rows(board, board.standings())
    assert result == {}
    assert set(without.values()) == {"its data are unavailable here: rows.csv is not available: it has no mirrors"}
    right = row_scores.compute_entry_rows
    monkeypatch.setattr(row_scores, "compute_entry_rows", lambda *one: replace(right(*one), id=right(*one).ood))
    without = read_entry_rows(board, board.standings())[1]
    assert any("do not match the score in the ledger" in reason for reason in without.values())
