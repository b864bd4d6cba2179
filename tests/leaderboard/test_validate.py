"""Validation: what may be scored, and every problem of the runs of what may not, by name."""

from __future__ import annotations

import copy
import dataclasses
import io
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import farshift as fs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift.benchmarks.benchmark import Benchmark, load_benchmarks
from farshift.benchmarks.scoring.score import score_predictions
from farshift.core.errors import BadSubmission
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.submission.validate import validate_submission
from farshift.leaderboard.validation.problem import REMEDIES, Problem, to_problem_records
from fuzz.kept import Validator
from fuzz.packing import Parts, parts

ON = "modadd97/xi35"
Change = Callable[[dict[str, Any], pa.Table], tuple[dict[str, Any], pa.Table]]


def bytes_of(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def changed(good: Parts, change: Change) -> Parts:
    """The parts of one run whose card and table `change` made other, with digests that fit."""
    card, table = change(copy.deepcopy(good.run), pq.read_table(io.BytesIO(good.predictions)))
    return dataclasses.replace(good, run=card, predictions=bytes_of(table)).signed()


@pytest.fixture(scope="module")
def look() -> Iterator[Validator]:
    """`validate_submission`, for bytes."""
    validator = Validator(load_benchmarks())
    yield validator
    validator.end()


def refused(look: Validator, content: bytes) -> list[Problem]:
    """The problems for which these bytes are refused, each of which has a name, a place and a remedy."""
    with pytest.raises(BadSubmission) as refusal:
        look(content)
    assert str(refusal.value).startswith("s.zip: ")
    assert "\n" not in str(refusal.value)
    for problem in refusal.value.problems:
        assert problem.remedy == REMEDIES[problem.name]
        assert problem.file
    assert str(refusal.value.problems[0]) in str(refusal.value)
    return list(refusal.value.problems)


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


def within(card: dict, part: str, **values) -> dict:
    return card | {part: card[part] | values}


def without(card: dict, part: str, name: str) -> dict:
    return card | {part: {key: value for key, value in card[part].items() if key != name}}


def as_list(table: pa.Table) -> pa.Table:
    scores = table["scores"].cast(pa.list_(pa.float32()))
    return table.set_column(table.column_names.index("scores"), "scores", scores)


def test_a_good_submission_passes_with_its_digest_card_and_entries(good, tmp_path):
    (tmp_path / "s.zip").write_bytes(good.packed())
    result = validate_submission(tmp_path / "s.zip")
    from farshift.core.files import compute_file_sha256

    assert result.digest == compute_file_sha256(tmp_path / "s.zip")
    assert [entry.model for entry in result.entries] == ["good"]
    assert result.entries[0].predictions.equals(pq.read_table(io.BytesIO(good.predictions)).select(
        ["part", "row_id", "seed", "candidate", "status", "prediction"]
    ))  # fmt: skip
    assert result.entries[0].predictions.schema.metadata is None


def test_probabilities_travel_with_a_submission(look, good):
    content = changed(good, lambda card, table: (card, scored_with(table, 1 / 97))).packed()
    assert look(content).entries[0].predictions["scores"].type.list_size == 97


@pytest.mark.attack("entrant", "invalid numbers and strings in a run card")
@pytest.mark.parametrize(
    ("change", "name", "complaint"),
    [
        (lambda card, table: (card, table.slice(1)), "rows-missing", "part id_test, seed 0: 1 missing row ids (first "),
        (
            lambda card, table: (card, pa.concat_tables([table, table.slice(0, 2)])),
            "rows-repeated",
            "2 repeated row ids (first ",
        ),
        (lambda card, table: (card, first(table, "row_id", 7)), "rows-missing", "1 missing row ids"),
        (
            lambda card, table: (card, first(table, "row_id", 7)),
            "rows-unknown",
            "1 unknown row ids (first 0000000000000007)",
        ),
        (
            lambda card, table: (card, first(table, "part", "test")),
            "rows-of-nothing",
            "part 'test', seed 0, candidate 'last': not in this run",
        ),
        (
            lambda card, table: (card, first(table, "seed", 5)),
            "rows-of-nothing",
            "seed 5, candidate 'last': not in this run",
        ),
        (
            lambda card, table: (card, first(table, "candidate", "best")),
            "rows-of-nothing",
            "candidate 'best': not in this run",
        ),
        (lambda card, table: (card, first(table, "prediction", 97)), "value-class", "class 97 is not one of 0..96"),
        (lambda card, table: (card, first(table, "prediction", -1)), "value-class", "class -1 is not one of 0..96"),
        (lambda card, table: (card, first(table, "prediction", None)), "value-status", "status 0 without a prediction"),
        (lambda card, table: (card, first(table, "status", 3)), "value-status", "status is not one of 0, 1, 2"),
        (lambda card, table: (card, first(table, "status", 1)), "value-status", "a prediction with another status"),
        (lambda card, table: (card, first(table, "candidate", None)), "value-missing", "has missing values (1)"),
        (lambda card, table: (card, first(table, "row_id", None)), "value-missing", "has missing values (1)"),
        (lambda card, table: (card, scored_with(table, 0.5)), "value-scores", "rows are not probabilities"),
        (lambda card, table: (card, scored_with(table, float("nan"))), "value-scores", "rows are not probabilities"),
        (lambda card, table: (card, scored_with(table, -1 / 97)), "value-scores", "rows are not probabilities"),
        (
            lambda card, table: (card, scored_with(table, 0.5, classes=2)),
            "parquet-type",
            "expected a fixed-size list of 97 floats",
        ),
        (lambda card, table: (card, as_list(scored_with(table, 1 / 97))), "parquet-type", "is list<"),
        (lambda card, table: (card, table.drop(["seed"])), "parquet-column", "column seed: is missing"),
        (lambda card, table: (card, table.append_column("seed", table["seed"])), "parquet-column", "occurs twice"),
        (
            lambda card, table: (card, table.append_column("label", table["seed"])),
            "parquet-column",
            "column label: is not a column of a predictions file",
        ),
        (
            lambda card, table: (card, column(table, "prediction", table["prediction"].cast("double"))),
            "parquet-type",
            "is 'double', expected 'int64'",
        ),
        (
            lambda card, table: (card, column(table, "part", table["part"].combine_chunks().dictionary_encode())),
            "parquet-type",
            "column part: is 'dictionary<",
        ),
        (
            lambda card, table: (card, pa.concat_tables([table] * 40)),
            "parquet-rows",
            "rows, far more than the",
        ),
        (lambda card, table: (within(card, "budget", seeds=[0, 0]), table), "run-value", "listed twice"),
        (lambda card, table: (within(card, "budget", seeds=[2**70]), table), "run-value", "integers from 0 to"),
        (lambda card, table: (within(card, "budget", steps="many"), table), "run-value", "steps must be"),
        (lambda card, table: (within(card, "budget", name="huge"), table), "run-value", "neither full nor quick"),
        (lambda card, table: (within(card, "budget", name="quick"), table), "identity-other", "another version"),
        (lambda card, table: (within(card, "model", name="x" * 101), table), "run-value", "the model's name"),
        (lambda card, table: (within(card, "model", candidates=[]), table), "run-value", "candidates must list 1 to"),
        (
            lambda card, table: (within(card, "model", candidates=["last", "last"]), table),
            "run-value",
            "a candidate is listed twice",
        ),
        (
            lambda card, table: (within(card, "model", candidates=["a\x00b"], finals=["a\x00b"]), table),
            "run-value",
            "201 printable characters",
        ),
        (lambda card, table: (within(card, "model", finals=["best"]), table), "run-value", "finals must list"),
        (lambda card, table: (within(card, "model", finals=["last"] * 2), table), "run-value", "is listed twice"),
        (lambda card, table: (within(card, "benchmark", name="scan/lenght"), table), "benchmark-unknown", "did you mean"),
        (lambda card, table: (within(card, "benchmark", selection="oracle"), table), "selection-unknown", "allows last or"),
        (lambda card, table: (within(card, "benchmark", selection=3), table), "run-value", "selection must be a string"),
        (lambda card, table: (within(card, "spent", by_seed=3), table), "run-value", "spent must have a table for each seed"),
        (lambda card, table: (within(card, "spent", by_seed={"seed_0": 3}), table), "run-value", "spent must have a table for each seed"),
        (lambda card, table: (within(card, "spent", touched={"<script>": 1}), table), "run-value", "touched must be a list of ood_val, unlabelled"),
        (lambda card, table: (within(card, "spent", touched=["everything"]), table), "run-value", "touched must be a list of"),
        (lambda card, table: (within(card, "budget", device={"a": 1}), table), "run-value", "device must be a string"),
        (lambda card, table: (without(card, "spent", "by_seed"), table), "run-value", "must have a table for each seed"),
        (lambda card, table: (without(card, "spent", "touched"), table), "run-value", "touched must be a list of"),
        (lambda card, table: (card | {"format": 9}, table), "run-edited", "format 9 is not 2"),
        (lambda card, table: ({k: v for k, v in card.items() if k != "spent"}, table), "run-edited", "lacks [spent]"),
    ],
)  # fmt: skip
def test_a_bad_run_is_refused_with_what_and_where(look, good, change, name, complaint):
    problems = refused(look, _relisted(changed(good, change)).packed())
    assert name in {problem.name for problem in problems}
    assert any(complaint in str(problem) for problem in problems), problems


def _relisted(submission: Parts) -> Parts:
    """The listing made to name what the run's card says of benchmark and model."""
    assert isinstance(submission.card, dict)
    assert isinstance(submission.run, dict)
    stated = {"benchmark": submission.run["benchmark"]["name"], "model": submission.run["model"]["name"]}
    submission.card = submission.card | {"runs": [submission.card["runs"][0] | stated]}
    return submission


def test_a_refused_submission_leaves_no_trace_on_a_board(good, board, tmp_path):
    (tmp_path / "s.zip").write_bytes(changed(good, lambda card, table: (card, table.slice(1))).packed())
    with pytest.raises(BadSubmission):
        submit_runs(board, tmp_path / "s.zip")
    assert board.standings() == []


def test_regressions_and_texts_are_held_to_their_kind(look, runs, tmp_path):
    """NaN, infinity and texts without an end are refused; the column names the first row concerned."""
    fs.evaluate(
        lambda batch: [0.5] * len(batch["inputs"]), on="linear_unit_test_1/shuffled", seeds=1, out=tmp_path / "run"
    )
    numbers, texts = parts(fs.read_run(tmp_path / "run")), parts(fs.read_run(runs[2]))
    for submission, bad, name in (
        (numbers, float("nan"), "value-number"),
        (numbers, float("-inf"), "value-number"),
        (texts, "x" * 100_001, "value-text"),
        (texts, "x" * 400_001, "value-text"),
    ):
        submission = changed(submission, lambda card, table, b=bad: (card, first(table, "prediction", b)))
        (problem,) = refused(look, submission.packed())
        assert problem.name == name
        assert problem.column == "prediction"


def test_every_problem_is_told_at_once_with_file_column_and_row(look, good):
    def change(card, table):
        return card, first(first(table, "prediction", -1), "row_id", 7)

    content = changed(good, change).packed()
    problems = refused(look, content)
    assert [(item.name, item.column, item.row) for item in problems] == [
        ("rows-missing", "row_id", problems[0].row),
        ("rows-unknown", "row_id", "0000000000000007"),
        ("value-class", "prediction", "0000000000000007"),
    ]
    assert {item.file for item in problems} == {"predictions/0.parquet"}
    with pytest.raises(BadSubmission, match="^s.zip: 3 problems: ") as refusal:
        look(content)
    assert to_problem_records(refusal.value)[1] == {
        "name": "rows-unknown",
        "file": "predictions/0.parquet",
        "column": "row_id",
        "row": "0000000000000007",
        "what": "part id_test, seed 0: 1 unknown row ids (first 0000000000000007)",
        "remedy": "predict every row once, for every seed and candidate",
    }


def test_many_problems_are_counted_and_some_of_each_file_told(look, good):
    def change(card, table):
        seeds = list(range(100))
        return within(card, "budget", seeds=seeds), table

    with pytest.raises(BadSubmission, match="294 problems: .*; and 282 more$") as refusal:
        look(changed(good, change).packed())
    assert len(refusal.value.problems) == 50


def test_text_that_is_no_utf8_is_refused(look, runs):
    def change(card, table):
        raw = pa.array([b"\xff"] * table.num_rows, pa.binary())
        return card, table.set_column(table.column_names.index("prediction"), "prediction", raw.view(pa.string()))

    (problem,) = refused(look, changed(parts(fs.read_run(runs[2])), change).packed())
    assert problem.name == "parquet-unreadable"
    assert "not readable Parquet" in problem.what


def test_what_is_not_as_listed_is_refused(look, good):
    listed = good.card["runs"][0]
    edited = dataclasses.replace(good, run=good.run | {"environment": {}})
    other = dataclasses.replace(good, card=good.card | {"runs": [listed | {"model": "better"}]})
    swapped = dataclasses.replace(good, predictions=good.predictions + b" ")
    absent = dataclasses.replace(good, card=good.card | {"runs": [listed, listed]})
    for submission, name, complaint in (
        (edited, "run-edited", "its digest does not match its content"),
        (other, "run-not-listed", "differs from submission.toml in model"),
        (swapped, "digest-differs", "its digest differs from that in runs/0.toml"),
        (absent, "entry-missing", "is missing"),
    ):
        problems = refused(look, submission.packed())
        assert name in {problem.name for problem in problems}
        assert any(complaint in problem.what for problem in problems)


def test_two_runs_that_could_not_be_told_apart_are_refused(look, runs, good):
    from fuzz.raw_zip import Entry, written

    again = changed(good, lambda card, table: (within(card, "budget", device="cuda"), table))
    both = dataclasses.replace(good, card=good.card | {"runs": [good.card["runs"][0], again.card["runs"][0]]})
    entries = [entry for entry in again.listed() if entry.name != "submission.toml"]
    renamed = [Entry(entry.name.replace("0", "1"), entry.content) for entry in entries]
    (problem,) = refused(look, written([*both.listed(), *renamed]))
    assert problem.name == "run-repeated"
    assert "two runs are both good on modadd97/xi35" in problem.what


def test_only_the_runs_that_are_asked_for_are_looked_at(runs, tmp_path):
    shutil.copy(pack_runs(runs, tmp_path / "s.zip"), tmp_path / "again.zip")
    assert [entry.model for entry in validate_submission(tmp_path / "again.zip", only={1}).entries] == ["worse <b>"]


def test_a_run_of_an_earlier_scorer_is_scored_by_this_one(look, good, monkeypatch):
    monkeypatch.setattr("farshift.benchmarks.benchmark.SCORER", 3)
    monkeypatch.setattr("farshift.benchmarks.benchmark.KNOWN", (2, 3))
    built: Benchmark = fs.benchmark(ON)
    old, new = built.identity("full", None, "last", 2), built.identity("full", None, "last", 3)
    for stated, fits in ((old, True), (new, True), ("0" * 64, False)):
        submission = changed(good, lambda card, table, s=stated: (within(card, "benchmark", entry_identity=s), table))
        if fits:
            assert look(submission.packed()).entries[0].entry_identity == new
        else:
            assert [item.name for item in refused(look, submission.packed())] == ["identity-other"]


def test_the_same_bytes_are_scored_the_same_whatever_the_order_of_rows(look, runs, good):
    order = np.random.default_rng(0)
    submission = changed(good, lambda card, table: (card, table.take(order.permutation(table.num_rows))))
    entry = look(submission.packed()).entries[0]
    assert score_predictions(entry.benchmark, entry.predictions, entry).json() == fs.score(runs[0]).json()


def test_data_that_cannot_be_had_are_not_the_submissions_fault(look, good, monkeypatch):
    from farshift.core.errors import Unavailable

    def unavailable(self, name):
        raise Unavailable("no network")

    monkeypatch.setattr(Benchmark, "part", unavailable)
    with pytest.raises(Unavailable, match="no network"):
        look(good.packed())
