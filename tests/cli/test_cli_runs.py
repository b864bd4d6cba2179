"""The commands about runs and benchmarks: what they print, what they write, what they refuse."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import farshift as fs
import pytest
from farshift.benchmarks.comparison.compare import find_leaders
from farshift.benchmarks.comparison.run_measures import measure_effective_robustness, measure_gap_recovered
from farshift.benchmarks.scoring.apply_selection import ChosenCandidate, list_chosen_candidates
from latex_reader import read_tables
from support import one_line_error

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import models

ON = "modadd97/xi35"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """Adders that are wrong on a share of rows, by that share, two seeds each; and one on another benchmark."""
    base = tmp_path_factory.mktemp("runs")
    result = {}
    for wrong in (0.05, 0.2, 0.4, 0.6):
        name = f"wrong-{wrong}"
        fs.evaluate(lambda seed, wrong=wrong: models.Adder(seed, wrong), on=ON, seeds=2, out=base / name, name=name)
        result[name] = base / name
    fs.evaluate(models.Echo(), on="scan/length", seeds=1, out=base / "echo", name="echo")
    return result | {"echo": base / "echo"}


def test_effective_robustness_is_measured_against_a_line_of_baselines(runs, command_json, command):
    against = [runs[name] for name in ("wrong-0.2", "wrong-0.4", "wrong-0.6")]
    result = command_json("compare", runs["wrong-0.05"], *against, "--statistic", "robustness")
    assert result == measure_effective_robustness(runs["wrong-0.05"], [runs[f"wrong-{w}"] for w in (0.2, 0.4, 0.6)])
    assert result["robustness"]["low"] <= result["robustness"]["value"] <= result["robustness"]["high"]
    assert abs(result["robustness"]["value"]) < 0.05, "an adder's OOD accuracy is what its ID accuracy foretells"
    assert "3 baselines (wrong-0.2, wrong-0.4, wrong-0.6)" in result["line"]
    few = command("compare", runs["wrong-0.05"], runs["wrong-0.2"], "--statistic", "robustness")
    assert "a run and at least three baselines" in one_line_error(few)
    other = command("compare", runs["wrong-0.05"], *against, runs["echo"], "--statistic", "robustness")
    assert "cannot be compared: wrong-0.05 is on modadd97/xi35" in one_line_error(other)


def test_the_gap_recovered_is_a_share_between_a_floor_and_a_ceiling(runs, command_json, command):
    floor, run, ceiling = (runs[f"wrong-{w}"] for w in (0.6, 0.4, 0.05))
    result = command_json("compare", run, floor, ceiling, "--statistic", "recovered")
    assert result == measure_gap_recovered(run, floor, ceiling)
    scores = [fs.score(item).ood.value for item in (floor, run, ceiling)]
    assert result["recovered"]["value"] == pytest.approx((scores[1] - scores[0]) / (scores[2] - scores[0]), abs=1e-5)
    assert result["recovered"]["low"] < result["recovered"]["value"] < result["recovered"]["high"]
    nothing = measure_gap_recovered(run, floor, floor)
    assert "standard errors" in nothing["recovered"]["n/a"] or "n/a" in nothing["recovered"]
    wrong = command("compare", run, floor, ceiling, "--statistic", "recovered", "--view", "odd")
    assert "no view of modadd97/xi35 named 'odd': did you mean ood" in one_line_error(wrong)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_is_written(runs, command_json, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    out = tmp_path / f"figure.{suffix}"
    result = command_json("plot", runs["wrong-0.2"], runs["wrong-0.4"], "--what", "noise", "--out", out)
    assert result == {"file": str(out), "what": "noise", "runs": 2}
    heads = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert out.read_bytes().startswith(heads[suffix])


def test_a_figure_takes_a_title_and_leaves_its_note_for_the_caption(runs, command, command_json, tmp_path):
    pytest.importorskip("matplotlib")
    out, pair = tmp_path / "a.svg", (runs["wrong-0.2"], runs["wrong-0.4"])
    result = command_json("plot", *pair, "--out", out, "--title", "Mine", "--no-note")
    assert result["note"].startswith("Bars and brackets: 95% t interval")
    assert "<dc:title>Mine</dc:title>" in out.read_text()
    refused = command("plot", *pair, "--table", "csv", "--title", "x")
    assert "--title applies to figures: leave out --table" in one_line_error(refused)
    refused = command("plot", *pair, "--table", "csv", "--what", "severity")
    assert "--what applies to figures: leave out --table" in one_line_error(refused)


def test_a_table_is_printed_or_written_and_holds_the_scores(runs, command, tmp_path):
    done = command("plot", runs["wrong-0.2"], runs["wrong-0.4"], "--table", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["model"] for row in rows] == ["wrong-0.2", "wrong-0.4"]
    expected = fs.score(runs["wrong-0.2"]).ood.value
    assert any(value and abs(float(value) - expected) < 1e-9 for value in rows[0].values() if is_number(value))
    command("plot", runs["echo"], "--table", "latex", "--out", tmp_path / "t.tex")
    assert "\\toprule" in (tmp_path / "t.tex").read_text()
    assert "name an image file to write" in one_line_error(command("plot", runs["echo"]))


def test_latex_tables_are_bold_by_the_runs_own_tie_groups_and_take_a_caption_and_a_label(runs, command, tmp_path):
    two = fs.evaluate(lambda seed: models.Adder(seed, 0.06), on=ON, seeds=2, out=tmp_path / "near", name="near").path
    three = [two, runs["wrong-0.05"], runs["wrong-0.6"]]
    assert find_leaders([*three, runs["echo"]]) == [True, True, False, False]
    done = command("plot", *three, "--table", "latex", "--caption", "50 % & more", "--label", "tab:mine")
    (table,) = read_tables(done.stdout)
    assert (table.caption, table.label) == ("50 % & more", "tab:mine")
    assert [row[3].bold != "" for row in table.tabular.rows] == [True, True, False]
    assert "paired rows, 5 %" in table.note.text
    refused = command("plot", *three, "--out", tmp_path / "a.png", "--label", "x")
    assert "--label applies to tables" in one_line_error(refused)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_the_state_of_runs_is_a_table_that_ends_when_all_are_finished(runs, command, command_json):
    folder = runs["echo"].parent
    result = command_json("status", folder)
    assert [Path(item["run"]).name for item in result] == sorted(runs)
    assert {item["state"] for item in result} == {"finished"}
    shown = command("status", folder)
    assert "wrong-0.05" in shown.stdout


def test_of_a_folder_of_runs_the_runs_are_named(runs, command, tmp_path):
    base = runs["echo"].parent
    output = one_line_error(command("score", base))
    assert f"{base} is not a run: it has 5 runs: give one of them, {base / 'echo'}, {base / 'wrong-0.05'}" in output
    assert "is not a run: it has 5 runs" in one_line_error(command("pack", base, "--out", tmp_path / "s.zip"))
    assert "is not a run: the folder does not exist" in one_line_error(command("score", base / "absent"))


@pytest.mark.parametrize("name", ["baseline:lstm", "baseline:lstm@"])
def test_a_recorded_result_without_its_benchmark_is_told_how_it_is_named(command, name):
    output = one_line_error(command("score", name))
    assert f"{name}: write baseline:NAME@BENCHMARK for a recorded result, such as baseline:lstm@" in output


def test_benchmarks_are_listed_and_one_is_shown_in_full(command_json, command):
    listed = command_json("benchmarks", "list")
    assert {"name", "kind", "task", "metrics", "selection", "parts"} <= listed[0].keys()
    assert [item["name"] for item in listed] == sorted(item["name"] for item in listed)
    shown = command_json("benchmarks", "show", ON)
    bench = fs.benchmark(ON)
    assert shown["identities"]["last"] == bench.identity("full", None, "last")
    assert len(set(shown["identities"].values())) == len(shown["identities"]) == 3
    assert shown["rows"]["train"] == len(bench.part("train"))
    words = command("benchmarks", "show", "optdigits/writers").stdout
    assert "crafted_shift" in words
    assert "did you mean scan/length" in one_line_error(command("benchmarks", "show", "scan/lenth"))


COMMAND = """
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    if "task" not in row:
        print(json.dumps({"id": row["id"], "prediction": (row["inputs"]["a"] + row["inputs"]["b"]) % 97}), flush=True)
"""


def test_a_command_is_a_model(command_json, tmp_path):
    script = tmp_path / "adder.py"
    script.write_text(COMMAND)
    result = command_json(
        "evaluate",
        f"cmd:{sys.executable} {script}",
        "--on",
        ON,
        "--seeds",
        1,
        "--out",
        tmp_path / "r",
        "--name",
        "jsonl",
    )
    assert result["score"]["id"]["value"] == 1.0
    assert result["score"]["model"] == "jsonl"


def test_settings_are_read_from_a_file(command_json, command, tmp_path):
    (tmp_path / "m.py").write_text(
        "class M:\n    def __init__(self, seed, shift=0): self.shift = shift\n"
        "    def predict(self, batch): return (batch['a'] + batch['b'] + self.shift) % 97\n"
    )
    (tmp_path / "s.toml").write_text("[off]\nshift = 1\n[right]\nshift = 0\n")
    given = ["evaluate", f"{tmp_path / 'm.py'}:M", "--on", ON, "--seeds", 1]
    result = command_json(
        *given, "--settings", tmp_path / "s.toml", "--selection", "clean_val", "--out", tmp_path / "r"
    )["score"]
    assert (result["id"]["value"], result["selection"], result["candidates"]) == (1.0, "clean_val", 2)
    rescored = command_json("score", tmp_path / "r", "--selection", "last")[0]
    assert rescored["id"]["value"] == 0.0
    (tmp_path / "bad.toml").write_text("shift = 1\n")
    done = command(*given, "--settings", tmp_path / "bad.toml", "--out", tmp_path / "q")
    assert "write one table per setting" in one_line_error(done)
    wrong = command(*given, "--selection", "best", "--out", tmp_path / "q")
    assert "selection 'best': the protocol of modadd97/xi35 allows last or id_val or clean_val" in one_line_error(wrong)


def test_a_run_can_be_evaluated_twice_at_once_and_is_one(command_json, tmp_path):
    (tmp_path / "m.py").write_text("def predict(batch): return (batch['a'] + batch['b']) % 97\n")
    given = ["evaluate", f"{tmp_path / 'm.py'}:predict", "--on", ON, "--seeds", 1, "--out", tmp_path / "r"]
    assert command_json(*given)["digest"] == command_json(*given)["digest"]
    assert json.loads((tmp_path / "r" / "log.jsonl").read_text().splitlines()[-1])["event"] == "finished"


def detect(command, *arguments):
    return command("compare", "--statistic", "detectable", *arguments)


def test_it_tells_how_small_a_difference_shows_and_what_it_assumes(command):
    done = detect(command, "--on", "modadd97/xi35", "--assumed")
    assert done.returncode == 0, done.stderr
    assert "modadd97/xi35 (accuracy)" in done.stdout
    assert "a two-sided 5% test" in done.stdout
    result = json.loads(detect(command, "--on", "modadd97/xi35", "--assumed", "--json").stdout)
    assert f"{result['ood']['value']:.4f}" in done.stdout
    assert result["ood"]["pairs"] == 0


def test_what_is_not_there_is_one_line(command):
    assert "no benchmark named 'modadd'" in one_line_error(detect(command, "--on", "modadd", "--assumed"))
    assert "one run is not enough" in one_line_error(
        detect(command, "--on", "xor_clusters/eta10", "baseline:mlp@xor_clusters/eta10")
    )


SETTINGS = "[small]\nwidth = 4\nlr = 0.001\n\n[large]\nwidth = 32\nlr = 0.01\n"


@pytest.mark.slow
def test_the_settings_that_a_rule_chose_are_told_by_seed(tmp_path, farshift, farshift_json):
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS, "utf-8")
    given = ("run", "mlp", "--on", "vowel/speakers", "--settings", file, "--selection", "id_val", "--steps", "40")
    given = (*given, "--seeds", "2", "--out", tmp_path / "r")
    result = farshift_json(*given)
    chosen = result["score"]["selections"]["id_val"]["chosen"]
    assert {str(seed) for item in result["chosen"] for seed in item["seeds"]} == {"0", "1"}
    for item in result["chosen"]:
        name = item["candidate"].split("/")[0]
        assert item["settings"] == {"small": {"width": 4, "lr": 0.001}, "large": {"width": 32, "lr": 0.01}}[name]
        assert all(chosen[str(seed)] == item["candidate"] for seed in item["seeds"])
    output = [line for line in farshift(*given).stdout.splitlines() if line.startswith("chosen by id_val: ")]
    assert len(output) == len(result["chosen"])
    assert "width = " in output[0]


def test_a_run_of_one_candidate_chose_nothing():
    run = fs.baseline("modadd97/xi35", "quadratic-mlp")
    assert list_chosen_candidates(run, fs.score(run)) == []


def test_a_drawn_value_is_told_in_four_digits_and_kept_in_all():
    item = ChosenCandidate("draw-1/last", {"lr": 0.0010690366843567624, "width": 16, "pool": "mean"}, (0, 2))
    assert str(item) == "draw-1/last (lr = 0.001069, width = 16, pool = mean) for seeds 0, 2"
    assert item.to_dict()["settings"]["lr"] == 0.0010690366843567624
