"""Validation: what may be scored, and every problem of what may not, by name."""

from __future__ import annotations

import io
import re
import shutil
import zipfile
from pathlib import Path

import farshift as fs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from farshift.benchmarks.run import card_digest
from farshift.leaderboard.submission import pack
from farshift.leaderboard.validate import check
from farshift.splits.errors import BadSubmission
from farshift.splits.plugins import read_toml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recomputed import verified

ON = "modadd97/xi35"


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


def scored_with(table: pa.Table, share: float, classes: int = 97) -> pa.Table:
    """The table with the same `share` of probability for each class."""
    flat = pa.array(np.full(table.num_rows * classes, share, np.float32))
    return table.append_column("scores", pa.FixedSizeListArray.from_arrays(flat, classes))


def with_model(card: dict, **values) -> dict:
    return card | {"model": card["model"] | values}


def test_probabilities_travel_with_a_submission(runs, tmp_path):
    file = repacked(runs, tmp_path, lambda card, table: (card, scored_with(table, 1 / 97)))
    assert check(file).entries[0].predictions["scores"].type.list_size == 97


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda card, table: (card, table.slice(1)), "part id_test, seed 0: 1 missing row ids (first "),
        (lambda card, table: (card, pa.concat_tables([table, table.slice(0, 2)])), "2 repeated row ids (first "),
        (lambda card, table: (card, first(table, "row_id", 7)), "1 missing row ids"),
        (lambda card, table: (card, first(table, "row_id", 7)), "1 unknown row ids (first 0000000000000007)"),
        (lambda card, table: (card, first(table, "prediction", 97)), "class 97 is not one of 0..96"),
        (
            lambda card, table: (card, first(table, "part", "test")),
            "part 'test', seed 0, candidate 'last': nothing of this run",
        ),
        (lambda card, table: (card, first(table, "seed", 5)), "seed 5, candidate 'last': nothing of this run"),
        (lambda card, table: (card, first(table, "prediction", None)), "status 0 and no prediction"),
        (lambda card, table: (card, table.drop(["seed"])), "columns {"),
        (lambda card, table: (card, column(table, "prediction", table["prediction"].cast("double"))), "'double'"),
        (lambda card, table: (card | {"budget": card["budget"] | {"seeds": [0, 0]}}, table), "listed twice"),
        (lambda card, table: (card | {"budget": card["budget"] | {"name": "quick"}}, table), "another version"),
        (lambda card, table: (card | {"model": {"name": "x" * 101}}, table), "the model's name"),
        (
            lambda card, table: (card | {"benchmark": card["benchmark"] | {"name": "scan/lenght"}}, table),
            "did you mean",
        ),
        (lambda card, table: (card | {"format": 9}, table), "format 9 is not 2"),
        (lambda card, table: (card | {"budget": card["budget"] | {"seeds": [2**70]}}, table), "each from 0 to"),
        (lambda card, table: (card | {"budget": card["budget"] | {"steps": "many"}}, table), "steps must be"),
        (lambda card, table: (card, table.append_column("seed", table["seed"])), "(each once)"),
        (lambda card, table: (card, first(table, "candidate", None)), "has missing values"),
        (lambda card, table: (card, first(table, "candidate", "best")), "candidate 'best': nothing of this run"),
        (lambda card, table: (card, first(table, "status", 3)), "a status is none of 0, 1, 2"),
        (lambda card, table: (card, first(table, "status", 1)), "a prediction and another status"),
        (lambda card, table: (card, scored_with(table, 0.5)), "rows are no probabilities"),
        (lambda card, table: (card, scored_with(table, float("nan"))), "rows are no probabilities"),
        (lambda card, table: (card, scored_with(table, 0.5, classes=2)), "expected a fixed-size list of 97 floats"),
        (lambda card, table: (with_model(card, candidates=[]), table), "candidates must list 1 to 1000 names"),
        (lambda card, table: (with_model(card, candidates=["last", "last"]), table), "a candidate is listed twice"),
        (lambda card, table: (with_model(card, finals=["best"]), table), "finals must list the last checkpoint"),
        (
            lambda card, table: (card | {"benchmark": card["benchmark"] | {"selection": "oracle"}}, table),
            "allows last or",
        ),
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


def test_scoring_needs_no_order_of_rows(runs, tmp_path):
    order = np.random.default_rng(0)

    def shuffled(card, table):
        return card, table.take(order.permutation(table.num_rows))

    submission = check(repacked(runs, tmp_path, shuffled))
    from farshift.benchmarks.score import score_predictions

    entry = submission.entries[0]
    again = score_predictions(entry.benchmark, entry.predictions, entry)
    assert again.json() == fs.score(runs[0]).json()
