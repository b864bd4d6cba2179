"""Published claims: every file can be run, facts are those of the rows, and the README shows what is recorded."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from claim_pages import describe_quantity, format_claim_table, list_shipped_claims, name_papers, render_claim
from farshift import FarshiftError
from farshift.baselines.compatibility import check_task
from farshift.baselines.recipe import resolve_settings
from farshift.baselines.reproduce.facts import MEASURES, compute_fact
from farshift.baselines.reproduce.measured import DISAGREEMENT, ID, Evidence, read_diagnostics
from farshift.baselines.reproduce.reproduce import (
    judge_evidence,
    make_run_plan,
    record_outcome,
    reproduce_claim,
    rescore_claim,
)
from farshift.baselines.running.recorded_scores import read_recorded_scores
from farshift.baselines.running.results import HOME as RESULTS
from farshift.baselines.running.results import digest_result, get_results_home
from farshift.benchmarks.claims.claim import DiagnosticCorrelation, Fact, RankCorrelation, load_claim, load_claims
from farshift.benchmarks.claims.outcome import HOME, ClaimEntry, Outcome, read_recorded_outcome
from farshift.core.clock import Stopwatch
from farshift.core.errors import BadDefinition, BadRun, Unavailable, UnknownName
from farshift.core.files import compute_file_sha256
from farshift.splits.catalogue import find_manifest
from support import ROOT

from .small_claim import SMALL, made

ALL = load_claims()
RECORDED = [name for name, item in ALL.items() if read_recorded_outcome(item) is not None]


@pytest.mark.parametrize("name", ALL)
def test_every_claim_can_be_run_as_written(name, tmp_path):
    item = ALL[name]
    assert item.premises or not item.runs, "whether the networks have learnt the task"
    for run in item.runs.values():
        if run.recorded:
            assert run.recipe in read_recorded_scores(run.on)
            continue
        for quick in (False, True):
            plan = make_run_plan(run, tmp_path, quick, None, "cpu")
            check_task(plan.recipe, plan.benchmark.task)
            assert resolve_settings(plan.recipe, run.on).items() >= run.settings.items()
    for quantity in item.quantities.values():
        if isinstance(quantity, Fact):
            assert set(quantity.arguments) == set(MEASURES[quantity.measure].__annotations__) - {"split", "return"}
            assert find_manifest(quantity.split)
        if isinstance(quantity, RankCorrelation):
            assert len(set(read_recorded_scores(quantity.left.on)) & set(read_recorded_scores(quantity.right.on))) > 6
        if isinstance(quantity, DiagnosticCorrelation):
            assert quantity.diagnostic in {ID, *DISAGREEMENT} or _names_diagnostic(quantity)
            assert len(read_recorded_scores(quantity.on)) > 6


def _names_diagnostic(quantity: DiagnosticCorrelation) -> bool:
    """Whether more than six recorded baselines have the values of a diagnostic."""
    stored = read_diagnostics(quantity.on, RESULTS).values()
    return sum(any(quantity.diagnostic in values for values in seeds.values()) for seeds in stored) > 6


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_outcome_is_of_the_rule_and_the_files_that_are_here(name):
    result = read_recorded_outcome(ALL[name])
    assert result.form == "full"
    for run, output in result.runs.items():
        if "recorded" in output:
            home = get_results_home(ALL[name].runs[run].budget)
            assert output["recorded"] == digest_result(output["benchmark"], output["model"], home)
        else:
            file = HOME / name / run / output["benchmark"].replace("/", "__") / f"{output['model']}.parquet"
            assert output["predictions"] == compute_file_sha256(file)
    assert Outcome.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_no_recorded_outcome_is_without_a_claim():
    assert {path.name for path in HOME.iterdir()} == set(RECORDED)


SECONDS = 1.0
"""Of one core, as recorded, above which a short form is left to the slow tests."""
SLOWER = {"hamiltonian-unseen-systems", "invariance-under-interventions", "modadd-two-stages"}
"""Recorded as shorter where there is an accelerator, or whose data take as long."""


def _short(name: str):
    result = read_recorded_outcome(ALL[name])
    slow = result is None or result.quick["seconds"] > SECONDS or name in SLOWER
    return pytest.param(name, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("name", [_short(name) for name in ALL])
def test_the_direction_of_a_claim_is_as_recorded(name, tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    try:
        result, _ = reproduce_claim(ALL[name], tmp_path, quick=True)
    except Unavailable as error:
        pytest.skip(str(error))
    recorded = read_recorded_outcome(ALL[name])
    assert recorded is None or result.holds == recorded.quick["holds"]


@pytest.mark.slow
def test_the_kept_predictions_of_a_claim_give_its_verdict_again():
    result, again = read_recorded_outcome(ALL["xor-one-step"]), rescore_claim(ALL["xor-one-step"])
    assert (again.verdict, again.rules) == (result.verdict, result.rules)
    assert {name: item.to_dict() for name, item in again.quantities.items()} == {
        name: item.to_dict() for name, item in result.quantities.items()
    }


def test_a_claim_is_run_kept_and_judged_again(tmp_path):
    item = made()
    result, evidence = reproduce_claim(item, tmp_path / "out")
    assert (result.verdict, result.form, result.runs["network"]["seeds"]) == ("reproduced", "full", [0, 1])
    assert result.quantities["test"].interval == "95 % t interval over test rows and training seeds"
    quick = judge_evidence(evidence, "quick", Stopwatch())
    assert list(quick.quantities) == ["test"]
    files = record_outcome(result, evidence, quick, tmp_path / "home")
    assert [file.name for file in files] == ["mlp.parquet", "verdict.json"]
    recorded = read_recorded_outcome(item, tmp_path / "home")
    assert recorded.quick["holds"]
    assert rescore_claim(item, tmp_path / "home").quantities["test"].to_dict() == result.quantities["test"].to_dict()
    other = made(rules=[{"shape": "at_least", "quantity": "test", "limit": 0.9}])
    assert read_recorded_outcome(other, tmp_path / "home") is None
    with pytest.raises(FarshiftError, match="only a full outcome can be recorded"):
        record_outcome(quick, evidence, home=tmp_path / "home")
    files[-1].write_text("{}")
    with pytest.raises(BadRun, match="is not a recorded outcome"):
        read_recorded_outcome(item, tmp_path / "home")


def test_another_plan_begins_anew_beside_the_one_before(tmp_path):
    first, _ = reproduce_claim(made(), tmp_path)
    again, _ = reproduce_claim(made(), tmp_path)
    assert again.runs["network"]["digest"] == first.runs["network"]["digest"]
    (before,) = tmp_path.iterdir()
    other = made(runs={"network": SMALL["runs"]["network"] | {"settings": {"lr": 0.1}}})
    for item, seeds in ((other, None), (made(), 1)):
        result, _ = reproduce_claim(item, tmp_path, seeds=seeds)
        assert result.runs["network"]["digest"] != first.runs["network"]["digest"]
    assert len(list(tmp_path.iterdir())) == 3
    assert (before / "run.toml").is_file()


def test_the_best_of_several_runs_is_chosen_for_each_seed():
    import farshift as fs

    on, names = "xor_clusters/eta10", ["mlp", "mixup", "sam"]
    view = {"sort": "score", "view": "id"}
    item = made(
        runs={name: {"recipe": name, "on": on, "recorded": True} for name in names},
        quantities={
            **{name: view | {"run": name} for name in names},
            "memorised": view | {"run": "mlp", "view": "memorised"},
            "best": {"sort": "best", "scores": names},
            "mixed": {"sort": "best", "scores": ["mlp", "memorised"]},
            "gain": {"sort": "difference", "left": "best", "right": "mlp"},
            "askew": {"sort": "difference", "left": "best", "right": "memorised"},
        },
        rules=[{"shape": "positive", "quantity": "best"}],
    )
    evidence = Evidence(item, {name: fs.baseline(on, name) for name in names})
    each = [evidence.measure(name) for name in names]
    best = evidence.measure("best")
    assert best.per_seed == tuple(map(max, *(item.per_seed for item in each)))
    assert best.low < best.value < best.high
    assert best.value > max(item.value for item in each), "no run is the best of every seed"
    gain = evidence.measure("gain")
    assert gain.value == pytest.approx(best.value - each[0].value)
    assert gain.low < gain.value < gain.high
    with pytest.raises(BadDefinition, match="best needs means over the same rows"):
        evidence.measure("mixed")
    with pytest.raises(BadDefinition, match="best and memorised have different rows"):
        evidence.measure("askew")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"extra": 1}, "Extra inputs are not permitted"),
        ({"published": {}}, "at least 1 item"),
        ({"rules": []}, "at least 1 item"),
        ({"rules": [{"shape": "eval", "code": "1"}]}, "shape"),
        ({"rules": [{"shape": "positive", "quantity": "none"}]}, "no quantity named 'none'"),
        ({"rules": [{"shape": "within", "quantity": "test", "published": "test", "by": 0.1}]}, "quick.rules"),
        ({"quantities": {"test": {"sort": "score", "run": "other"}}}, "no run named 'other'"),
        (
            {"quantities": SMALL["quantities"] | {"d": {"sort": "difference", "left": "test", "right": "d"}}},
            "is not a score",
        ),
        ({"runs": {"network": {"recipe": "mlp", "on": "modadd97/xi35", "recorded": True, "steps": 4}}}, "recorded run"),
        ({"published": {"test": {"mark": "seen", "where": "here"}}}, "give `value` or `says`"),
    ],
)
def test_a_claim_that_cannot_be_judged_is_refused(changes, complaint, tmp_path):
    with pytest.raises(ValueError, match=complaint):
        made(**changes)


def test_a_claim_from_memory_has_no_verdict():
    assert made().mark == "seen"
    assert made(published={"test": {"value": 0.01, "mark": "from memory", "where": "here"}}).mark == "from memory"
    both = SMALL["published"] | {"other": {"value": 1, "mark": "from memory", "where": "there"}}
    assert made(published=both).mark == "seen"


def test_the_short_form_decides_nothing():
    network = SMALL["runs"]["network"] | {"quick": {"seeds": 1}}
    assert made(runs={"network": network}).identity == made().identity
    assert made(runs={"network": network | {"seeds": 3}}).identity != made().identity


def test_claims_of_one_s_own_are_found(tmp_path, monkeypatch):
    folder = tmp_path / "baselines" / "claims"
    folder.mkdir(parents=True)
    text = (ROOT / "baselines" / "claims" / "scan-length-cut.toml").read_text()
    (folder / "mine.toml").write_text(text.replace('"scan-length-cut"', '"mine"', 1))
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    assert load_claim("mine").kind == "length"
    (folder / "mine.toml").write_text(text)
    with pytest.raises(BadDefinition, match="must be the file's name"):
        load_claim("mine")
    with pytest.raises(UnknownName, match="scan-length-cut"):
        load_claim("scan-length-cat")


def test_facts_are_of_the_rows():
    assert compute_fact("noise_rate", "xor_clusters/eta10", {}) == pytest.approx(0.1)
    assert compute_fact("overlap", "scan/length", {"part": "ood_test", "fields": "command"}) == 0
    assert compute_fact("unseen_words", "scan/length", {"part": "ood_test", "field": "command"}) == 0
    with pytest.raises(UnknownName, match="noise_rate"):
        compute_fact("noise", "xor_clusters/eta10", {})
    with pytest.raises(BadDefinition, match="rows accepts part"):
        compute_fact("rows", "xor_clusters/eta10", {})


@pytest.mark.slow
def test_scores_of_recorded_results_are_those_of_their_predictions(tmp_path):
    item = ALL["xor-linear-at-chance"]
    full, _ = reproduce_claim(item, tmp_path)
    scores = read_recorded_scores("xor_clusters/eta10")
    assert full.quantities["mlp_test"].value == pytest.approx(scores["mlp"].id.value, abs=1e-6)


def test_paired_differences_are_those_of_compare():
    import farshift as fs

    item = ALL["gce-beats-cross-entropy"]
    changed = {name: run.model_copy(update={"on": "xor_clusters/eta10"}) for name, run in item.runs.items()}
    runs = {name: fs.baseline(run.on, run.recipe) for name, run in changed.items()}
    result = Evidence(item.model_copy(update={"runs": changed}), runs).measure("gain")
    compared = fs.compare(runs["method"], runs["cross_entropy"]).id
    assert result.value == pytest.approx(compared.value, abs=1e-6)
    assert (result.low, result.high) == pytest.approx((compared.low, compared.high), abs=1e-6)


def test_the_readme_shows_the_head_of_the_table():
    text = (ROOT / "README.md").read_text("utf-8")
    entries = list_shipped_claims()
    names = name_papers(entry.claim.citation for entry in entries)
    rows = format_claim_table(entries, names, "docs/claims/").splitlines()
    shown = [row for row in text.splitlines() if row.startswith("| [") and "docs/claims/" in row]
    assert len(shown) >= 5
    assert set(shown) <= set(rows)
    assert rows[0] in text


def test_a_claim_without_an_outcome_says_what_it_takes():
    section = render_claim(ClaimEntry(made(), None), "")
    assert "**Not yet run.** Estimated time on one CPU core: 1 min." in section
    result = replace(read_recorded_outcome(ALL["scan-length-cut"]), claim="small")
    assert "**Reproduced.**" in render_claim(ClaimEntry(made(), result), "")


@pytest.mark.parametrize("name", ["disagreement-tells-error", "manifold-dimension-foretells", "sharpness-says-little"])
def test_a_diagnostic_against_the_scores_is_what_was_recorded(name):
    result = Evidence(ALL[name], {}).measure("colour")
    assert result.to_dict() == read_recorded_outcome(ALL[name]).quantities["colour"].to_dict()


def test_a_diagnostic_is_named_in_words_and_one_that_there_is_not_is_refused():
    quantity = {"sort": "diagnostic_correlation", "diagnostic": "disagreement.ood", "on": "colored_mnist_irm/color"}
    rules = [{"shape": "positive", "quantity": "tau"}]
    item = made(runs={}, quantities={"tau": quantity}, rules=rules)
    assert "disagreement.ood and the OOD score on colored_mnist_irm/color" in describe_quantity(
        item, item.quantities["tau"]
    )
    lost = made(runs={}, quantities={"tau": quantity | {"diagnostic": "disagrement.ood"}}, rules=rules)
    with pytest.raises(UnknownName, match="disagreement"):
        Evidence(lost, {}).measure("tau")


def test_oracles_of_linear_models_are_those_of_scikit_learn():
    import farshift as fs
    from sklearn.linear_model import LinearRegression

    split, chosen = "interventions/cut_off", [0, 1, 2, 3]
    train, requested = (fs.load(split, item) for item in ("train", "ood_test"))
    model = LinearRegression().fit(train.numpy()["inputs"][:, chosen], train.true_labels())
    expected = np.sqrt(
        np.square(model.predict(requested.numpy()["inputs"][:, chosen]) - requested.true_labels()).mean()
    )
    given = {"fit": "train", "part": "ood_test", "field": "inputs"}
    assert compute_fact("least_squares_error", split, given | {"inputs": chosen}) == pytest.approx(expected)
    assert compute_fact("least_squares_error", split, given | {"inputs": []}) != pytest.approx(expected, abs=0.01)
    both = compute_fact("least_squares_error", split, {**given, "part": "train", "inputs": []})
    everything = LinearRegression().fit(train.numpy()["inputs"], train.true_labels())
    inside = np.sqrt(np.square(everything.predict(train.numpy()["inputs"]) - train.true_labels()).mean())
    assert both == pytest.approx(inside, rel=0.01)
    assert both > inside


def test_an_oracle_tells_cows_from_camels_where_the_background_is_shuffled():
    requested = {"fit": "ood_test", "part": "ood_test", "field": "inputs", "inputs": []}
    assert compute_fact("logistic_accuracy", "linear_unit_test_2s/shuffled", requested) > 0.95
