"""Recorded results: small files from which the very scores come again, and errors that say what is wrong."""

from __future__ import annotations

import json
import shutil

import farshift as fs
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError
from farshift.baselines.running.recorded_scores import RecordedScore, read_recorded_scores, rescore_recorded
from farshift.baselines.running.results import HOME, find_recorded_run, get_result_path, list_results, record_run
from farshift.baselines.running.sweep import run_baseline
from farshift.benchmarks.benchmark import KNOWN, SCORER, find_benchmark, load_suite
from farshift.benchmarks.runs.predictions import ARROW_TYPES
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


def test_a_recorded_result_is_compared_with_a_run(run, tmp_path):
    record_run(run, tmp_path)
    result = fs.compare(run, find_recorded_run(ON, "mlp", tmp_path))
    assert result.id.value == 0


def test_results_are_listed_by_benchmark_and_name(run, tmp_path):
    record_run(run, tmp_path)
    assert list_results(tmp_path) == [(ON, "mlp")]


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


def test_what_is_not_recorded_is_refused_with_what_is(run, tmp_path):
    record_run(run, tmp_path)
    with pytest.raises(UnknownName, match="mlp"):
        find_recorded_run(ON, "mpl", tmp_path)


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
