"""Recorded results: small files from which the very scores come again, under both budgets, and what is marked."""

import json
import shutil
from dataclasses import replace

import farshift as fs
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError
from farshift.baselines.running import results as results_module
from farshift.baselines.running.recorded_scores import (
    SMOKE,
    RecordedScore,
    find_low_id_scores,
    make_trained_check,
    read_recorded_scores,
    rescore_recorded,
    write_recorded_score,
)
from farshift.baselines.running.results import (
    HOME,
    find_recorded_run,
    get_result_path,
    get_results_home,
    list_results,
    record_run,
)
from farshift.baselines.running.sweep import run_baseline
from farshift.benchmarks.benchmark import KNOWN, SCORER, find_benchmark, load_suite
from farshift.benchmarks.runs.predictions import ARROW_TYPES
from farshift.cli.options import parse_run_path
from farshift.core.errors import BadRun, Unavailable, UnknownName

ON = "modadd97/xi35"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_baseline("mlp", ON, seeds=[0, 3], steps=4, out=tmp_path_factory.mktemp("runs") / "mlp")


def test_a_recorded_result_scores_as_the_run_did(run, tmp_path):
    file = record_run(run, tmp_path)
    again = find_recorded_run(ON, "mlp", tmp_path)
    first, second = fs.score(run), fs.score(again)
    for name in ("id", "ood", "gap", "seeds"):
        assert getattr(first, name) == getattr(second, name)
    assert again.seeds == (0, 3)
    assert again.entry_identity == run.entry_identity
    assert file.stat().st_size < (run.path / "predictions.parquet").stat().st_size / 10


def test_a_search_is_recorded_with_every_setting_under_a_name_of_its_own(tmp_path):
    settings = {"slow": {"lr": 0.0001}, "fast": {"lr": 0.01}}
    run = run_baseline("mlp", ON, seeds=[0, 1], steps=4, settings=settings, selection="id_val", out=tmp_path / "run")
    record_run(run, tmp_path)
    again = find_recorded_run(ON, "mlp (2 settings)", tmp_path)
    assert again.candidates == run.candidates == ("slow/last", "fast/last")
    first, second = fs.score(run), fs.score(again)
    assert (first.ood, first.selections) == (second.ood, second.selections)


def test_a_recorded_result_holds_no_row_ids(run, tmp_path):
    assert pq.read_schema(record_run(run, tmp_path)).names == ["part", "seed", "prediction", "status"]


def test_class_probabilities_are_recorded_where_the_primary_metric_needs_them():
    needs = {name: find_benchmark(name).metrics[0].needs for name, _ in list_results()}
    for benchmark, name in list_results():
        kept = "scores" in pq.read_schema(get_result_path(HOME, benchmark, name)).names
        assert kept == (needs[benchmark] == "scores"), (benchmark, name)
    assert "scores" in needs.values()


def test_the_same_run_is_recorded_as_the_same_bytes(run, tmp_path):
    assert record_run(run, tmp_path / "a").read_bytes() == record_run(run, tmp_path / "b").read_bytes()


@pytest.mark.parametrize("damage", ["cut off", "foreign", "other version"])
def test_a_damaged_file_is_one_line_that_names_it(run, tmp_path, damage):
    file = record_run(run, tmp_path)
    if damage == "cut off":
        file.write_bytes(file.read_bytes()[:100])
    else:
        table = pq.read_table(file)
        stated = {} if damage == "foreign" else {b"farshift": b'{"format":99}'}
        pq.write_table(table.replace_schema_metadata(stated), file)
    with pytest.raises(BadRun, match=r"mlp\.parquet") as raised:
        find_recorded_run(ON, "mlp", tmp_path)
    assert "\n" not in str(raised.value)


def test_a_run_of_ones_own_model_is_no_baseline(tmp_path):
    import numpy as np

    own = fs.evaluate(lambda batch: np.zeros(len(batch["a"]), np.int64), on=ON, seeds=1, out=tmp_path / "own")
    with pytest.raises(BadRun, match="which is not a baseline"):
        record_run(own, tmp_path)


def test_a_result_of_another_version_of_the_benchmark_says_so(run, tmp_path, monkeypatch):
    record_run(run, tmp_path)
    monkeypatch.setattr("farshift.benchmarks.benchmark.SCORER", 99)
    monkeypatch.setattr("farshift.benchmarks.benchmark.KNOWN", (98,))
    with pytest.raises(BadRun, match="run the baseline again"):
        find_recorded_run(ON, "mlp", tmp_path)


SHIPPED: dict[str, list[str]] = {}
for _on, _name in list_results():
    SHIPPED.setdefault(_on, []).append(_name)


@pytest.mark.parametrize("on", SHIPPED)
def test_shipped_results_are_of_the_benchmark_as_it_is(on):
    """All of them by what their files say, without the benchmark's data."""
    benchmark = find_benchmark(on)
    for name in SHIPPED[on]:
        file = pq.ParquetFile(HOME / on.replace("/", "__") / f"{name}.parquet")
        card = json.loads(file.schema_arrow.metadata[b"farshift"])
        budget, stated = card["budget"], card["benchmark"]
        assert stated["name"] == on
        assert card["model"]["name"] == name
        assert budget["seeds"] == [0, 1, 2, 3, 4]
        scorer = benchmark.made_under(
            stated["entry_identity"], budget["name"], budget.get("steps"), stated["selection"]
        )
        assert scorer in (*KNOWN, SCORER), name
        assert str(file.schema_arrow.field("prediction").type) == ARROW_TYPES[benchmark.task.type], name
        counts = {item["values"]: item["counts"] for item in file.read(["part"])["part"].value_counts().to_pylist()}
        assert set(counts) >= set(benchmark.predicted_parts)
        assert all(count % 5 == 0 for count in counts.values()), "as many rows of each seed"


@pytest.mark.parametrize(
    "on",
    ["scan/length", "vowel/speakers_unlabelled", "optdigits/writers", "interventions/cut_off", "geoquery/template"],
)
def test_a_shipped_result_is_read_to_the_last_row(on):
    """Of texts, classes, numbers and pictures, whose data are small or published."""
    try:
        assert find_recorded_run(on, SHIPPED[on][0]).model == SHIPPED[on][0]
    except Unavailable as error:
        pytest.skip(str(error))


def test_every_benchmark_of_the_core_suite_has_results_and_many_have_thirty():
    counts = {item.name: sum(on == item.name for on, _ in list_results()) for item in load_suite("core")}
    assert min(counts.values()) >= 2
    assert sum(count >= 4 for count in counts.values()) >= 12
    assert sum(count >= 30 for count in counts.values()) >= 5
    assert len({name for _, name in list_results()}) >= 30


def test_recorded_results_are_listed_best_first(command):
    listed = json.loads(command("baselines", "results", "--on", "xor_clusters/eta10", "--json").stdout)
    values = [item["ood"]["value"] for item in listed]
    assert values == sorted(values, reverse=True)
    assert {item["model"] for item in listed} == {name for on, name in list_results() if on == "xor_clusters/eta10"}
    shown = command("baselines", "results", "--on", "xor_clusters/eta10")
    places = [shown.stdout.index(f" {item['model']} ") for item in listed]
    assert places == sorted(places)
    assert "nothing to do" not in shown.stderr
    refused = command("baselines", "results", "--on", "rush_hour/above_25")
    assert "error: rush_hour/above_25 has no recorded results: train a baseline on it" in refused.stderr


def test_the_command_line_takes_a_recorded_baseline_for_a_run(run, tmp_path, monkeypatch, capsys):
    from farshift.cli.options import parse_run_path

    record_run(run, tmp_path)
    monkeypatch.setattr("farshift.baselines.running.results.HOME", tmp_path)
    assert parse_run_path(f"baseline:mlp@{ON}").is_dir()
    assert parse_run_path("runs/mlp").name == "mlp"
    with pytest.raises(FarshiftError, match="mlp"):
        parse_run_path(f"baseline:lp@{ON}")
    assert tmp_path != HOME


def test_every_kept_score_is_of_the_file_that_is_there():
    """What scores.json says of each: the file's digest, this scorer, the benchmark as it is."""
    lacking = {on: sorted(set(names) - set(read_recorded_scores(on))) for on, names in SHIPPED.items()}
    assert not any(lacking.values()), (
        "farshift baselines record, or farshift.baselines.running.recorded_scores.write_recorded_score"
    )


def test_kept_scores_are_what_the_predictions_come_to():
    names = {name for on, name in list_results() if on == ON}
    stored = read_recorded_scores(ON)
    assert set(stored) == names
    for name in sorted(names)[::8]:
        assert stored[name].to_dict() == RecordedScore.of(rescore_recorded(ON, name)).to_dict(), name


def test_a_score_of_another_file_or_scorer_is_not_taken(tmp_path, monkeypatch):
    home = tmp_path / "results"
    shutil.copytree(HOME / ON.replace("/", "__"), home / ON.replace("/", "__"))
    assert "mlp" in read_recorded_scores(ON, home)
    monkeypatch.setattr("farshift.baselines.running.recorded_scores.SCORER", 0)
    assert read_recorded_scores(ON, home) == {}
    monkeypatch.undo()
    shutil.copy(home / ON.replace("/", "__") / "linear.parquet", home / ON.replace("/", "__") / "mlp.parquet")
    assert "mlp" not in read_recorded_scores(ON, home)
    assert "linear" in read_recorded_scores(ON, home)
    (home / ON.replace("/", "__") / "scores.json").write_text('{"mlp": {}}')
    with pytest.raises(BadRun, match=r"scores\.json cannot be read as scores of recorded results"):
        read_recorded_scores(ON, home)


def test_errors_are_listed_in_their_own_unit(command):
    listed = json.loads(command("baselines", "results", "--on", "interventions/held_out", "--json").stdout)
    values = [item["ood"]["value"] for item in listed]
    assert values == sorted(values)
    shown = command("baselines", "results", "--on", "interventions/held_out").stdout
    for item in listed:
        assert f"{item['ood']['value']:.3f} [{item['ood']['low']:.3f}, " in shown
    assert f" {100 * values[0]:.1f} [" not in shown


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty place for recorded results."""
    monkeypatch.setattr(results_module, "HOME", tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One baseline under both budgets, so short that steps are all they differ in."""
    position = tmp_path_factory.mktemp("runs")
    return {
        budget: run_baseline("mlp", ON, seeds=[0], steps=steps, budget=budget, out=position / budget)
        for budget, steps in (("quick", 2), ("full", 6))
    }


def test_a_result_is_kept_where_those_of_its_budget_are(home, runs):
    files = {budget: record_run(run) for budget, run in runs.items()}
    assert files == {
        "quick": home / "modadd97__xi35" / "mlp.parquet",
        "full": home / "full" / "modadd97__xi35" / "mlp.parquet",
    }
    assert list_results(get_results_home("quick")) == list_results(get_results_home("full")) == [(ON, "mlp")]
    for budget, run in runs.items():
        result = find_recorded_run(ON, "mlp", budget=budget)
        assert (result.budget, result.steps) == (budget, run.steps)
        assert fs.score(result).ood == fs.score(run).ood


def test_the_command_line_names_a_result_under_the_full_budget(home, runs):
    for run in runs.values():
        record_run(run)
    paths = {parse_run_path(f"baseline:{name}@{ON}") for name in ("mlp", "mlp:quick", "mlp:full")}
    assert {fs.read_run(path).budget for path in paths} == {"quick", "full"}
    with pytest.raises(UnknownName, match="no budget named 'ful'"):
        parse_run_path(f"baseline:mlp:ful@{ON}")


def test_results_under_the_full_budget_alone_are_refused_as_such(home, runs):
    record_run(runs["quick"])
    with pytest.raises(FarshiftError, match="no recorded results under the budget full"):
        find_recorded_run(ON, "mlp", budget="full")


def test_scores_of_both_budgets_are_kept_apart(home, runs):
    for budget, run in runs.items():
        record_run(run)
        write_recorded_score(rescore_recorded(ON, "mlp", get_results_home(budget)), get_results_home(budget))
    for budget in runs:
        assert read_recorded_scores(ON, get_results_home(budget))["mlp"].budget == budget


ON_LEARNT = "scan/length"


@pytest.fixture(scope="module")
def kept() -> dict[str, RecordedScore]:
    return read_recorded_scores(ON_LEARNT)


def with_seeds(one: RecordedScore, *scores: float, gap: float = 0.2) -> RecordedScore:
    mean = sum(scores) / len(scores)
    there = replace(one.gap, value=gap, low=gap - 0.1, high=gap + 0.1)
    return replace(one, seeds=tuple(range(len(scores))), id=replace(one.id, value=mean, per_seed=scores), gap=there)


def test_what_does_not_fit_short_commands_is_marked_with_its_reason(kept):
    marked = find_low_id_scores(ON_LEARNT, kept)
    assert {"transformer-randomised", "transformer-alibi", "universal-transformer", "most-frequent"} <= set(marked)
    assert not {"lstm", "transformer", "gru"} & set(marked)
    assert marked["transformer-randomised"].startswith(
        "seed 4 scores 0.0112 on ID, less than half way from a constant prediction"
    )


def test_one_seed_that_is_not_past_half_way_and_a_gap_mark_a_result(kept):
    rule = make_trained_check(
        ON_LEARNT, {"a": with_seeds(kept["lstm"], 0.9, 0.9), "most-frequent": with_seeds(kept["lstm"], 0.1, 0.1)}
    )
    assert (rule.floor, rule.best, rule.least) == pytest.approx((0.1, 0.9, 0.5))
    assert rule.reason(with_seeds(kept["lstm"], 0.51, 0.9)) == ""
    assert rule.reason(with_seeds(kept["lstm"], 0.9, 0.49)).startswith("seed 1 scores 0.49 on ID, less than half way")
    assert rule.reason(with_seeds(kept["lstm"], 0.5, 0.9)).startswith("seed 0 scores 0.5 on ID, less than half way")
    assert rule.reason(with_seeds(kept["lstm"], 0.49, 0.9, gap=0.05)) == "", "it loses nothing that one could see"
    assert "no better than a constant prediction" in rule.reason(with_seeds(kept["lstm"], 0.1, 0.9, gap=0.0))


def test_an_algorithm_that_gives_up_the_misleading_half_is_not_marked():
    marked = find_low_id_scores("colored_mnist_irm/color")
    assert "irm" not in marked
    assert {"iga", "most-frequent"} <= set(marked)


def test_all_are_marked_where_nothing_is_better_than_a_constant_answer(kept):
    assert make_trained_check(ON_LEARNT, {}) is None
    scores = {"most-frequent": with_seeds(kept["lstm"], 0.6), "lstm": with_seeds(kept["lstm"], 0.55, 0.62)}
    rule = make_trained_check(ON_LEARNT, scores)
    assert (rule.floor, rule.best) == (0.6, 0.6)
    assert "no better than a constant prediction" in rule.reason(scores["lstm"])
    assert find_low_id_scores(ON_LEARNT, scores).keys() == scores.keys()


@pytest.mark.parametrize(("scores", "smoke"), [((0.5, 0.54), True), ((0.5, 0.56), False)])
def test_results_are_smoke_runs_where_none_is_half_way_to_a_perfect_score(kept, scores, smoke):
    scores = {f"net {score}": with_seeds(kept["lstm"], score, gap=0.0) for score in scores}
    marked = find_low_id_scores(ON_LEARNT, scores | {"most-frequent": with_seeds(kept["lstm"], 0.1, gap=0.0)})
    assert set(marked) == ({*scores, "most-frequent"} if smoke else {"most-frequent"})
    assert all(why.startswith(SMOKE) == smoke for why in marked.values())


def test_a_task_is_hard_where_a_model_that_no_budget_shortens_is_as_good_as_the_best(kept):
    scores = {"net": with_seeds(kept["lstm"], 0.54, gap=0.0), "most-frequent": with_seeds(kept["lstm"], 0.1, gap=0.0)}
    assert find_low_id_scores(ON_LEARNT, scores)["net"].startswith(SMOKE)
    assert set(find_low_id_scores(ON_LEARNT, scores | {"boosted-trees": scores["net"]})) == {"most-frequent"}


def test_smoke_runs_are_left_out_of_tables_and_listed_with_the_mark(command):
    on = "texture_shape/no_texture"
    best = command("baselines", "results").stdout
    assert "scan/length" in best and on not in best and "smoke runs left out" in best
    assert command("baselines", "results", "--on", on).stdout.count(SMOKE) >= 3
    (over,) = json.loads(command("splits", "show", on, "--json").stdout)["benchmarks"]
    assert "best" not in over
