"""Validation: what may be scored, and every problem of the cards and runs of what may not, by name."""

from __future__ import annotations

import copy
import dataclasses
import io
from collections.abc import Callable, Iterator
from typing import Any

import farshift as fs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift.benchmarks.benchmark import Benchmark, load_benchmarks
from farshift.benchmarks.scoring.score import score_predictions
from farshift.core.errors import BadSubmission, Unavailable
from farshift.core.files import compute_file_sha256
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.submission.validate import validate_submission
from farshift.leaderboard.validation.card import TEMPLATE, ModelCard, parse_submission_card, parse_team_card
from farshift.leaderboard.validation.limits import FileRejected
from farshift.leaderboard.validation.problem import REMEDIES, Problem, Problems, to_problem_records
from farshift.leaderboard.validation.reader import read_card
from fuzz.kept import Validator
from fuzz.packing import Parts, parts
from fuzz.raw_zip import Entry, written

ON = "modadd97/xi35"
Change = Callable[[dict[str, Any], pa.Table], tuple[dict[str, Any], pa.Table]]
RUN = {"benchmark": "a/b", "model": "m", "run": "0" * 64, "predictions": "0" * 64}
GOOD = {"format": 2, "name": "n", "team": "t", "note": "", "model": {}, "runs": [RUN]}


def told(card: dict[str, Any]) -> list[tuple[str, str]]:
    problems = Problems()
    parse_submission_card(card, "submission.toml", problems)
    return [(item.name, item.column) for item in problems.items]


def test_a_card_says_who_and_what_was_declared():
    model = {
        "training_data": ["scan/length", "a corpus"],
        "pretraining": [],
        "parameters": 12,
        "budget": "two days",
        "links": ["https://example.org/a"],
        "contact": "me",
    }
    result = parse_submission_card(GOOD | {"model": model}, "submission.toml", Problems())
    assert result.model == ModelCard(**model)
    assert result.model.record() == model
    assert (result.name, result.team, result.runs[0].model) == ("n", "t", "m")
    undeclared = parse_submission_card(GOOD, "submission.toml", Problems()).model
    assert undeclared.record() == {"training_data": ["unknown"], "pretraining": ["unknown"]}


@pytest.mark.attack("entrant", "a score, weights or other keys stated in a submission's card")
@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"team": 3}, "team"),
        ({"team": "x" * 101}, "team"),
        ({"note": "a\nb"}, "note"),
        ({"note": "evil \N{RIGHT-TO-LEFT OVERRIDE}txt"}, "note"),
        ({"name": ["n"]}, "name"),
        ({"score": 1.0}, "score"),
        ({"model": 3}, "model"),
        ({"model": {"weights": "m.pkl"}}, "model.weights"),
        ({"model": {"parameters": -1}}, "model.parameters"),
        ({"model": {"parameters": True}}, "model.parameters"),
        ({"model": {"parameters": 2**63}}, "model.parameters"),
        ({"model": {"training_data": "all"}}, "model.training_data"),
        ({"model": {"training_data": ["a", "a"]}}, "model.training_data"),
        ({"model": {"pretraining": ["unknown", "a"]}}, "model.pretraining"),
        ({"model": {"pretraining": [""]}}, "model.pretraining[0]"),
        ({"model": {"pretraining": ["x" * 201]}}, "model.pretraining[0]"),
        ({"model": {"links": ["javascript:alert(1)"]}}, "model.links[0]"),
        ({"model": {"links": ["file:///etc/passwd"]}}, "model.links[0]"),
        ({"model": {"links": ["https://a b"]}}, "model.links[0]"),
        ({"model": {"links": ["https://e.org"] * 11}}, "model.links"),
        ({"model": {"contact": {}}}, "model.contact"),
        ({"signature": {"key": "0"}}, "signature.key"),
        ({"runs": []}, "runs"),
        ({"runs": {"0": RUN}}, "runs"),
        ({"runs": [3]}, "runs[0]"),
        ({"runs": [RUN | {"extra": "x"}]}, "runs[0].extra"),
        ({"runs": [RUN, RUN | {"run": 3}]}, "runs[1].run"),
    ],
)
def test_a_wrong_value_of_a_card_is_named(change, column):
    assert ("card-value", column) in told(GOOD | change)


def test_every_wrong_value_is_told_at_once():
    wrong = GOOD | {"team": 3, "model": {"links": 3}, "x": 1}
    assert told(wrong) == [("card-value", key) for key in ("team", "model.links", "x")]


@pytest.mark.parametrize("stated", [1, None, "9" * 5000])
def test_another_format_is_told_what_to_do(look, good, stated):
    assert told(GOOD | {"format": stated}) == [("format-unknown", "format")]
    (problem,) = refused(look, dataclasses.replace(good, card=b"format = 1\n").packed())
    assert "format '1' is not 2 (pack the runs again with farshift pack)" in str(problem)


def test_a_listing_of_more_runs_than_are_taken_is_refused(look, good):
    (problem,) = refused(look, dataclasses.replace(good, card=good.card | {"runs": [RUN] * 501}).packed())
    assert problem.name == "zip-too-many"


@pytest.mark.parametrize(
    "text",
    [
        b"a = ",
        b"a = 1\na = 2",
        b"\xff\xfe",
        b"a = " + b"9" * 5000,
        b"a = " + b"[" * 2000 + b"]" * 2000,
        b"a = " + b"{b=" * 2000 + b"1" + b"}" * 2000,
        b".".join([b"a"] * 140) + b" = 1",
        b"a.b = nan",
        b"a = [inf]",
        b"a = 1979-05-27",
        b"a = 07:32:00",
        b"a = 0x" + b"f" * 3600,
    ],
)
def test_toml_that_no_card_needs_is_refused(text):
    with pytest.raises(FileRejected) as refusal:
        read_card(text)
    ((name, what, _),) = refusal.value.findings
    assert name == "toml-invalid"
    assert len(what) < 300


def test_the_template_is_a_card_that_declares_nothing():
    assert parse_team_card(read_card(TEMPLATE.encode()), "card.toml", "pack").model == ModelCard()
    stated = "\n".join(line.removeprefix("# ") if " = " in line else line for line in TEMPLATE.splitlines())
    model = parse_team_card(read_card(stated.encode()), "card.toml", "pack").model
    assert (model.parameters, len(model.links)) == (1_000_000, 2)


def bytes_of(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def changed(good: Parts, change: Change) -> Parts:
    """The parts of one run whose card and table `change` made other, with digests and a listing that fit."""
    card, table = change(copy.deepcopy(good.run), pq.read_table(io.BytesIO(good.predictions)))
    result = dataclasses.replace(good, run=card, predictions=bytes_of(table)).signed()
    stated = {"benchmark": card["benchmark"]["name"], "model": card["model"]["name"]}
    return dataclasses.replace(result, card=result.card | {"runs": [result.card["runs"][0] | stated]})


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
    """The table with another value in its first row."""
    values = table[name].to_pylist()
    return column(table, name, pa.array([value, *values[1:]], table[name].type))


def scored_with(table: pa.Table, share: float, classes: int = 97, first_row: bool = True) -> pa.Table:
    """The table with the same `share` of probability for each class; the first row may have none."""
    missing = np.arange(table.num_rows) < (0 if first_row else 1)
    flat = pa.array(np.full(table.num_rows * classes, share, np.float32))
    return table.append_column(
        "scores", pa.FixedSizeListArray.from_arrays(flat, classes, mask=pa.array(missing, pa.bool_()))
    )


def as_list(table: pa.Table) -> pa.Table:
    return column(table, "scores", table["scores"].cast(pa.list_(pa.float32())))


def within(card: dict, part: str, **values) -> dict:
    """A run's card with other values in one of its tables; without those that are `...`."""
    return card | {part: {key: value for key, value in (card[part] | values).items() if value is not ...}}


def test_a_good_submission_passes_with_its_digest_card_and_entries(good, tmp_path):
    (tmp_path / "s.zip").write_bytes(good.packed())
    result = validate_submission(tmp_path / "s.zip")
    assert result.digest == compute_file_sha256(tmp_path / "s.zip")
    (entry,) = result.entries
    assert entry.model == "good"
    order = ["part", "row_id", "seed", "candidate", "status", "prediction"]
    assert entry.predictions.equals(pq.read_table(io.BytesIO(good.predictions)).select(order))
    assert entry.predictions.schema.metadata is None


def test_probabilities_travel_with_a_submission(look, good):
    content = changed(good, lambda card, table: (card, scored_with(table, 1 / 97))).packed()
    assert look(content).entries[0].predictions["scores"].type.list_size == 97


@pytest.mark.parametrize(
    ("name", "value", "problem", "complaint"),
    [
        ("row_id", 7, "rows-missing", "1 missing row ids"),
        ("row_id", 7, "rows-unknown", "1 unknown row ids (first 0000000000000007)"),
        ("part", "test", "rows-of-nothing", "part 'test', seed 0, candidate 'last': not in this run"),
        ("seed", 5, "rows-of-nothing", "seed 5, candidate 'last': not in this run"),
        ("candidate", "best", "rows-of-nothing", "candidate 'best': not in this run"),
        ("prediction", 97, "value-class", "class 97 is not one of 0..96"),
        ("prediction", -1, "value-class", "class -1 is not one of 0..96"),
        ("prediction", None, "value-status", "status 0 without a prediction"),
        ("status", 3, "value-status", "status is not one of 0, 1, 2"),
        ("status", 1, "value-status", "a prediction with another status"),
        ("candidate", None, "value-missing", "has missing values (1)"),
        ("row_id", None, "value-missing", "has missing values (1)"),
    ],
)
def test_a_wrong_cell_is_refused_with_what_and_where(look, good, name, value, problem, complaint):
    problems = refused(look, changed(good, lambda card, table: (card, first(table, name, value))).packed())
    assert any(item.name == problem and complaint in item.what for item in problems), problems


@pytest.mark.parametrize(
    ("change", "name", "complaint"),
    [
        (lambda table: table.slice(1), "rows-missing", "part id_test, seed 0: 1 missing row ids (first "),
        (lambda table: pa.concat_tables([table, table.slice(0, 2)]), "rows-repeated", "2 repeated row ids (first "),
        (lambda table: pa.concat_tables([table] * 40), "parquet-rows", "rows, far more than the"),
        (lambda table: scored_with(table, 0.5), "value-scores", "rows are not probabilities"),
        (lambda table: scored_with(table, float("nan")), "value-scores", "rows are not probabilities"),
        (lambda table: scored_with(table, -1 / 97), "value-scores", "rows are not probabilities"),
        (
            lambda table: scored_with(table, 1 / 97, first_row=False),
            "value-scores",
            "scores are missing for some rows: give them for all",
        ),
        (lambda table: scored_with(table, 0.5, 2), "parquet-type", "expected a fixed-size list of 97 floats"),
        (lambda table: as_list(scored_with(table, 1 / 97)), "parquet-type", "is list<"),
        (lambda table: table.drop(["seed"]), "parquet-column", "is missing"),
        (lambda table: table.append_column("seed", table["seed"]), "parquet-column", "occurs twice"),
        (lambda table: table.append_column("label", table["seed"]), "parquet-column", "is not a column of a pred"),
        (
            lambda table: column(table, "prediction", table["prediction"].cast("double")),
            "parquet-type",
            "is 'double', expected 'int64'",
        ),
        (
            lambda table: column(table, "part", table["part"].combine_chunks().dictionary_encode()),
            "parquet-type",
            "is 'dictionary<",
        ),
    ],
)
def test_wrong_rows_and_columns_are_refused_with_what_and_where(look, good, change, name, complaint):
    problems = refused(look, changed(good, lambda card, table: (card, change(table))).packed())
    assert any(item.name == name and complaint in item.what for item in problems), problems


@pytest.mark.attack("entrant", "invalid numbers and strings in a run card")
@pytest.mark.parametrize(
    ("part", "values", "where"),
    [
        ("budget", {"seeds": [0, 0]}, "budget.seeds"),
        ("budget", {"seeds": [2**70]}, "budget.seeds[0]"),
        ("budget", {"seeds": []}, "budget.seeds"),
        ("budget", {"steps": "many"}, "budget.steps"),
        ("budget", {"name": "huge"}, "budget.name"),
        ("budget", {"device": {"a": 1}}, "budget.device"),
        ("model", {"name": "x" * 101}, "model.name"),
        ("model", {"candidates": []}, "model.candidates"),
        ("model", {"candidates": ["last", "last"]}, "model.candidates"),
        ("model", {"candidates": ["a\x00b"], "finals": ["a\x00b"]}, "model.candidates[0]"),
        ("model", {"finals": ["best"]}, "model"),
        ("model", {"finals": ["last"] * 2}, "model.finals"),
        ("model", {"deterministic": "yes"}, "model.deterministic"),
        ("benchmark", {"selection": 3}, "benchmark.selection"),
        ("spent", {"by_seed": 3}, "spent.by_seed"),
        ("spent", {"by_seed": {"seed_0": 3}}, "spent.by_seed.seed_0"),
        ("spent", {"finished": 3}, "spent.finished"),
        ("spent", {"touched": {"<script>": 1}}, "spent.touched"),
        ("spent", {"touched": ["everything"]}, "spent.touched[0]"),
        ("spent", {"touched": ...}, "spent.touched"),
    ],
)
def test_a_wrong_value_of_a_runs_card_is_named(look, good, part, values, where):
    problems = refused(look, changed(good, lambda card, table: (within(card, part, **values), table)).packed())
    assert {(item.name, item.file) for item in problems} == {("run-value", "runs/0.toml")}
    assert any(where == item.column or f"card: {where}: " in item.what for item in problems)


@pytest.mark.parametrize(
    ("card", "name", "complaint"),
    [
        (lambda card: within(card, "budget", name="quick"), "identity-other", "another version"),
        (lambda card: within(card, "benchmark", name="scan/lenght"), "benchmark-unknown", "did you mean"),
        (lambda card: within(card, "benchmark", selection="oracle"), "selection-unknown", "allows last or"),
        (lambda card: card | {"format": 9}, "run-edited", "format 9 is not 2"),
        (lambda card: {k: v for k, v in card.items() if k != "spent"}, "run-edited", "lacks [spent]"),
    ],
)
def test_a_run_that_this_version_does_not_score_is_refused(look, good, card, name, complaint):
    (problem,) = refused(look, changed(good, lambda run, table: (card(run), table)).packed())
    assert problem.name == name
    assert complaint in problem.what


def test_a_refused_submission_leaves_no_trace_on_a_board(good, board, tmp_path):
    (tmp_path / "s.zip").write_bytes(changed(good, lambda card, table: (card, table.slice(1))).packed())
    with pytest.raises(BadSubmission):
        submit_runs(board, tmp_path / "s.zip")
    assert board.standings() == []


def test_regressions_and_texts_are_held_to_their_kind(look, runs, tmp_path):
    """NaN, infinity, endless texts and invalid UTF-8 are refused."""
    fs.evaluate(
        lambda batch: [0.5] * len(batch["inputs"]), on="linear_unit_test_1/shuffled", seeds=1, out=tmp_path / "run"
    )
    numbers, texts = parts(fs.read_run(tmp_path / "run")), parts(fs.read_run(runs[2]))

    def invalid(card, table):
        raw = pa.array([b"\xff"] * table.num_rows, pa.binary())
        return card, column(table, "prediction", raw.view(pa.string()))

    cases: list[tuple[Parts, Change, str]] = [(texts, invalid, "parquet-unreadable")]
    for submission, bad, name in (
        (numbers, float("nan"), "value-number"),
        (numbers, float("-inf"), "value-number"),
        (texts, "x" * 100_001, "value-text"),
        (texts, "x" * 400_001, "value-text"),
    ):
        cases.append((submission, lambda card, table, b=bad: (card, first(table, "prediction", b)), name))
    for submission, change, name in cases:
        (problem,) = refused(look, changed(submission, change).packed())
        assert problem.name == name


def test_every_problem_is_told_at_once_with_file_column_and_row(look, good):
    content = changed(good, lambda card, table: (card, first(first(table, "prediction", -1), "row_id", 7))).packed()
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


def test_rows_of_nothing_and_missing_values_are_named_by_their_row_and_long_names_cut(look, good):
    """A candidate's name is shown up to 60 characters, so that what a stranger wrote fills no page."""
    foreign = changed(good, lambda card, table: (card, first(table.slice(0, 9), "candidate", "x" * 99)))
    table = pq.read_table(io.BytesIO(foreign.predictions))
    problems = {item.name: item for item in refused(look, foreign.packed())}
    named = problems["rows-of-nothing"]
    assert (named.row, named.what) == (
        f"{table['row_id'][0].as_py():016x}",
        f"part 'id_test', seed 0, candidate '{'x' * 60}..': not in this run",
    )
    (missing,) = (
        item
        for item in refused(look, changed(good, lambda card, table: (card, first(table, "candidate", None))).packed())
        if item.name == "value-missing"
    )
    assert (missing.column, missing.row) == ("candidate", f"{table['row_id'][0].as_py():016x}")


def test_a_candidate_without_all_rows_is_named(look, good):
    def add_candidate(card, table):
        two = [*card["model"]["candidates"], "y" * 99]
        return within(card, "model", candidates=two), table

    problems = refused(look, changed(good, add_candidate).packed())
    assert any(f"seed 0, candidate {'y' * 60}..: " in item.what for item in problems), problems


def test_many_problems_are_counted_and_some_of_each_file_told(look, good):
    content = changed(good, lambda card, table: (within(card, "budget", seeds=list(range(100))), table)).packed()
    with pytest.raises(BadSubmission, match="294 problems: .*; and 282 more$") as refusal:
        look(content)
    assert len(refusal.value.problems) == 50


def test_what_is_not_as_listed_is_refused(look, good):
    listed = good.card["runs"][0]
    for name, change in (
        ("run-edited", {"run": good.run | {"environment": {}}}),
        ("run-not-listed", {"card": good.card | {"runs": [listed | {"model": "better"}]}}),
        ("digest-differs", {"predictions": good.predictions + b" "}),
        ("entry-missing", {"card": good.card | {"runs": [listed, listed]}}),
    ):
        problems = refused(look, dataclasses.replace(good, **change).packed())
        assert name in {problem.name for problem in problems}


def test_two_runs_that_could_not_be_told_apart_are_refused(look, good):
    again = changed(good, lambda card, table: (within(card, "budget", device="cuda"), table))
    both = dataclasses.replace(good, card=good.card | {"runs": [good.card["runs"][0], again.card["runs"][0]]})
    renamed = [Entry(entry.name.replace("0", "1"), entry.content) for entry in again.listed()[1:]]
    (problem,) = refused(look, written([*both.listed(), *renamed]))
    assert problem.name == "run-repeated"
    assert "two runs are both good on modadd97/xi35" in problem.what


def test_only_the_runs_that_are_asked_for_are_looked_at(runs, tmp_path):
    packed = pack_runs(runs, tmp_path / "s.zip")
    assert [entry.model for entry in validate_submission(packed, only={1}).entries] == ["worse <b>"]


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
    def unavailable(self, name):
        raise Unavailable("no network")

    monkeypatch.setattr(Benchmark, "part", unavailable)
    with pytest.raises(Unavailable, match="no network"):
        look(good.packed())
