"""Before a window closes nothing that a board serves says anything of a label, and the seed is nowhere but in its file.

Two worlds with the same published rows and the same drawn inputs, whose drawn labels are each other's opposite: every
byte that is served must be the same in both.
"""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError
from farshift.benchmarks.benchmark import find_benchmark
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.sealed.drawing import draw_sealed_rows
from farshift.leaderboard.sealed.published import export_draw, read_draw
from farshift.leaderboard.sealed.results import make_window_results
from farshift.leaderboard.sealed.seal import get_seed_path
from farshift.leaderboard.sealed.submit import submit_answers
from farshift.splits.rows import compute_first_ids
from fuzz.packing import repack
from sealed_cases import ON, OPENS, SEED, TURNED, WINDOW, draw_folder, make_home, sealed


def broken(answers: Path, out: Path, change) -> Path:
    """A team's answers with changed predictions."""

    def write(content: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        pq.write_table(change(pq.read_table(pa.BufferReader(content))), sink)
        return sink.getvalue().to_pybytes()

    return repack(answers, out, "predictions/0.parquet", write)


def served(folder: Path, clock, handed, odd_ones: list[Path]) -> dict[str, object]:
    """All that a board shows to anybody from the announcement of a window to its last second, by what it is."""
    clock.set(OPENS)
    built = Board.init(folder / "board", "A board")
    sealed(built, clock)
    output: dict[str, object] = {}
    clock.set(OPENS, seconds=60)
    export_draw(built, WINDOW, folder / "draw")
    output["record"] = submit_answers(built, WINDOW, handed.answers["ann"], clock=clock)[0].body
    for number, file in enumerate(odd_ones):
        with pytest.raises(FarshiftError) as refused:
            submit_answers(built, WINDOW, file, clock=clock)
        output[f"refusal {number}"] = str(refused.value)
    output["results"] = make_window_results(built, WINDOW)
    output["ledger"] = [(record.seq, record.time, record.kind, record.body) for record in built.ledger.records()[1:]]
    export_board(built, folder / "export")
    for where in ("board", "draw", "export"):
        for path in sorted((folder / where).rglob("*")):
            name = path.relative_to(folder).as_posix()
            of_the_key = ("board/private", "board/board.toml", "export/board.toml", "export/ledger.jsonl")
            if path.is_file() and not name.startswith((*of_the_key, "board/ledger.sqlite")):
                output[name] = path.read_bytes()
    return output


@pytest.mark.attack("entrant", "labels in anything that is served before a window closes")
def test_every_byte_served_before_the_close_is_the_same_whatever_the_labels(handed, clock, tmp_path, monkeypatch):
    answers = handed.answers["ann"]
    odd_ones = [
        broken(answers, tmp_path / "short.zip", lambda table: table.slice(0, table.num_rows - 1)),
        broken(answers, tmp_path / "turned.zip", lambda table: table),
        answers.with_name("missing.zip"),
    ]
    here = served(tmp_path / "one", clock, handed, odd_ones)
    truth = draw_sealed_rows(find_benchmark(ON), SEED).rows.true_labels()
    other_home = tmp_path / "other"
    monkeypatch.setenv("FARSHIFT_PATH", str(other_home))
    other_home.mkdir()
    make_home(other_home, TURNED)
    other_truth = draw_sealed_rows(find_benchmark(ON), SEED).rows.true_labels()
    there = served(tmp_path / "two", clock, handed, odd_ones)
    assert (truth == 1 - other_truth).all()  # the labels do differ, every one of them
    assert sorted(here) == sorted(there)
    assert len(here) > 12
    for what in here:
        assert str(here[what]).replace("/one/", "/two/") == str(there[what]), what


def test_the_draw_has_inputs_in_the_order_of_their_ids_and_no_statistics(opened):
    folder = draw_folder(opened, sealed_window(opened))
    file = pq.ParquetFile(folder / "inputs.parquet")
    ids = file.read()["row_id"].to_numpy()
    assert file.schema_arrow.names == ["row_id", "coins"]
    assert (ids[1:] > ids[:-1]).all()
    assert not any(key != b"ARROW:schema" for key in file.metadata.metadata or {})
    group = file.metadata.row_group(0)
    assert file.metadata.num_row_groups == 1
    assert not any(group.column(number).is_stats_set for number in range(group.num_columns))


def sealed_window(board):
    from farshift.leaderboard.sealed.window import find_window

    return find_window(board.ledger.records(), WINDOW)


def test_a_row_id_is_a_hash_of_the_inputs_alone_also_where_an_input_has_two_labels(opened):
    """The generator gives a tenth of the inputs twice, with either label: one row of them is drawn, as the first
    occurrence, so that neither the number of an occurrence nor its order can tell."""
    benchmark = find_benchmark(ON)
    given = read_draw(draw_folder(opened, sealed_window(opened)))
    texts = given.inputs["coins"].to_pylist()
    assert len(set(texts)) == len(texts)
    ids = compute_first_ids(given.inputs, benchmark.split.source.schema)
    assert np.array_equal(ids, given.inputs["row_id"].to_numpy())


@pytest.mark.attack("entrant", "search for the seed of a draw in records, pages, exports and logs")
def test_the_seed_is_in_one_private_file_and_nowhere_else(opened, handed, clock, tmp_path):
    submit_answers(opened, WINDOW, handed.answers["ann"], clock=clock)
    export_board(opened, tmp_path / "export")
    export_draw(opened, WINDOW, tmp_path / "draw")
    secret = get_seed_path(opened, WINDOW)
    assert secret.read_text() == SEED.hex()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700
    holders = [
        path
        for path in sorted(tmp_path.rglob("*"))
        if path.is_file() and (SEED.hex().encode() in path.read_bytes() or SEED in path.read_bytes())
    ]
    assert holders == [secret]


def test_answers_of_an_open_window_are_in_no_export(opened, handed, clock, tmp_path):
    record, _ = submit_answers(opened, WINDOW, handed.answers["ann"], clock=clock)
    export_board(opened, tmp_path / "export")
    assert not list((tmp_path / "export").rglob(f"{record.body['submission']}*"))
    assert list((tmp_path / "export").rglob("draw.toml"))


def test_a_draw_that_was_changed_is_not_answered(opened, tmp_path):
    folder = draw_folder(opened, sealed_window(opened))
    shutil.copytree(folder, tmp_path / "draw")
    table = pq.read_table(folder / "inputs.parquet")
    pq.write_table(table.slice(1), tmp_path / "draw" / "inputs.parquet")
    with pytest.raises(FarshiftError, match="missing or was changed"):
        read_draw(tmp_path / "draw")
