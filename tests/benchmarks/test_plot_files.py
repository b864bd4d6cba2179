"""Figures as files, legible whatever is in a name; only what can be compared shares a panel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from itertools import combinations, pairwise

import matplotlib
import pytest
from farshift import FarshiftError
from farshift.benchmarks.plot import draw_plot, get_plot_note, make_figure
from farshift.benchmarks.plot._panels import format_estimate, make_panels
from farshift.benchmarks.plot._style import assign_looks
from farshift.benchmarks.scoring.record import Score
from farshift.benchmarks.statistics.interval import Interval
from farshift.core.errors import BadRun, MissingExtra, UnknownName
from pictures import faults, note, words
from records import MODELS, estimate, many, record


@pytest.mark.parametrize(
    ("suffix", "head"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")]
)
def test_the_suffix_names_the_format_and_two_drawings_are_equal_to_the_byte(tmp_path, suffix, head):
    first, second = (draw_plot(many(2), "gap", tmp_path / f"{name}{suffix}") for name in "ab")
    assert first == tmp_path / f"a{suffix}"
    assert first.read_bytes().startswith(head)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a{suffix}", f"b{suffix}"]


def test_the_users_settings_neither_show_nor_change(tmp_path):
    plain = draw_plot(many(2), "id_ood", tmp_path / "a.svg").read_bytes()
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True, "svg.hashsalt": "mine"}):
        before = dict(matplotlib.rcParams)
        assert draw_plot(many(2), "id_ood", tmp_path / "b.svg").read_bytes() == plain
        assert dict(matplotlib.rcParams) == before


def test_another_process_draws_the_same_bytes_without_pyplot(tmp_path):
    code = """
import json, sys
from pathlib import Path
from farshift.benchmarks.plot import draw_plot
from farshift.benchmarks.scoring.record import Score
from farshift.benchmarks.tables import render_table
render_table
early = "matplotlib" in sys.modules
draw_plot([Score.from_dict(one) for one in json.loads(sys.stdin.read())], "gap", Path(sys.argv[1]))
print(json.dumps([early, "matplotlib.pyplot" in sys.modules]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "there.svg")],
        input=json.dumps([item.to_dict() for item in many(3)]),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "7"},
    )
    assert json.loads(done.stdout) == [False, False]
    assert done.stderr == ""
    here = draw_plot(many(3), "gap", tmp_path / "here.svg")
    digests = {sha256(path.read_bytes()).hexdigest() for path in (here, tmp_path / "there.svg")}
    assert len(digests) == 1


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(MissingExtra, match=r"plotting needs an optional dependency: pip install 'farshift\[plot\]'"):
        make_figure(many(1), "gap")


def test_a_new_picture_is_one_new_file(tmp_path, monkeypatch):
    folder = tmp_path / "benchmarks" / "plot"
    folder.mkdir(parents=True)
    (folder / "heads.py").write_text(
        "from matplotlib.figure import Figure\n"
        "def picture(records):\n"
        "    made = Figure(figsize=(3.3, 1))\n"
        "    made.suptitle(', '.join(record.model for record in records))\n"
        "    return made\n"
    )
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    assert make_figure(many(2), "heads").get_suptitle() == "lstm, transformer"
    assert draw_plot(many(2), "heads", tmp_path / "heads.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("what", "name", "error", "words"),
    [
        ("gap", "a.jpg", FarshiftError, r"a figure is written as \.pdf, \.png or \.svg"),
        ("gap", "a", FarshiftError, r"a figure is written as"),
        ("xyz", "a.png", UnknownName, "choose from calibration, gap, id_ood, noise, severity"),
        ("sevrity", "a.png", UnknownName, "did you mean severity"),  # codespell:ignore sevrity
        ("gap", "old.png/a.png", FarshiftError, r"a\.png cannot be written: .*; write it to another place"),
        ("calibration", "old.png", FarshiftError, r"^lstm on scan/length: calibration requires class probabilities"),
        ("noise", "old.png", FarshiftError, r"^scan/length \(length\): .* requires corrupted-label benchmarks"),
    ],
)
def test_what_cannot_be_drawn_or_written_is_refused_and_an_old_file_stays(tmp_path, what, name, error, words):
    (tmp_path / "old.png").write_bytes(b"old")
    with pytest.raises(error, match=words):
        draw_plot(many(1), what, tmp_path / name)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("old.png", b"old")]


PICTURES = {
    "calibration": {"probabilities": True},
    "gap": {},
    "id_ood": {},
    "noise": {"kind": "corrupted-label", "metric": "accuracy@1"},
    "severity": {},
}
LONG = "a_benchmark_with_a_rather_long_name/and_a_split_of_a_long_name_too"


def extremes(**settings):
    names = (
        "a-very-long-model-name-with-an-old-tokenizer-and-a-big-batch",
        "a-very-long-model-name-with-a-new-tokenizer-and-a-big-batch",
        "$x_1$ & 100 %",
        "lstm",
    )
    scores = ((1.0, 0.0), (1.0, 1.0), (0.97, 0.3), (0.0, 0.0))
    return [record(name, id=id, ood=ood, **settings) for name, (id, ood) in zip(names, scores, strict=True)]


def several(**settings):
    """Panels that differ in benchmark, budget, rule and identity, with long names for all of them."""
    requested = settings | {"severity_unit": "occurrences of the longest held-out word of the row, words"}
    quick = requested | {"budget": "quick", "steps": 12000}
    return [
        *many(2, LONG, selection="crafted_shift", **quick),
        *many(1, LONG, selection="oracle", **quick),
        *many(1, LONG, selection="oracle", identity="cd" * 32, **quick),
        *many(2, "prefix_sums/32_to_64", seeds=1, **requested),
    ]


def twenty(**settings):
    built = [
        *many(12, **settings),
        *(record(f"a-model-of-some-kind-{k}", id=0.5 + k / 20, **settings) for k in range(8)),
    ]
    assert len(built) == 20
    return built


@pytest.mark.parametrize("what", PICTURES)
def test_names_are_whole_however_long(what):
    records = [*extremes(**PICTURES[what]), record("short", LONG, **PICTURES[what])]
    shown = make_figure(records, what)
    output = "|".join(text.get_text().replace("\n", "").replace("\\$", "$") for text in words(shown)).replace(" ", "")
    assert "…" not in output
    for item in records:
        assert item.model.replace(" ", "") in output and item.benchmark in output


def test_twelve_models_differ_without_colour_and_neighbours_in_everything():
    result = list(assign_looks(MODELS).values())
    assert len({look.marker for look in result}) == 12
    for item, other in pairwise(result):
        assert item.colour != other.colour and item.line != other.line
    many_looks = assign_looks([f"m{k}" for k in range(60)]).values()
    assert all(item != other for item, other in combinations(many_looks, 2))


@pytest.mark.parametrize(
    "make", [lambda **s: many(1, **s), twenty, extremes, several], ids=["one", "20", "far", "several"]
)
@pytest.mark.parametrize("what", PICTURES)
def test_no_text_is_cut_or_hidden_and_the_width_is_a_papers(what, make):
    shown = make_figure(make(**PICTURES[what]), what)
    assert faults(shown) == []
    assert shown.get_figwidth() in (3.3, 6.9)
    assert shown.get_facecolor() == (1, 1, 1, 1), "legible on a dark page too"


@pytest.mark.parametrize("what", PICTURES)
def test_a_title_stands_above_and_the_note_can_be_left_to_the_caption(what):
    records = many(3, **PICTURES[what])
    shown = make_figure(records, what, title="A title that is rather long, of runs at $x$ and 50 %", note=False)
    assert faults(shown) == []
    assert "A title that is rather" in "".join(text.get_text() for text in words(shown))
    assert note(shown) == "" and note(make_figure(records, what)) == get_plot_note(records, what) != ""


def titles(records):
    return [panel.title for panel in make_panels(records)]


def test_records_of_one_entry_identity_share_a_panel_in_their_order():
    (panel,) = make_panels(many(5))
    assert panel.names == tuple(item.model for item in many(5))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"budget": "quick"}, ["scan/length", "scan/length (quick)"]),
        ({"steps": 1500}, ["scan/length", "scan/length (1,500 steps)"]),
        ({"budget": "quick", "steps": 20}, ["scan/length", "scan/length (quick, 20 steps)"]),
        ({"benchmark": "scan/addprim_jump"}, ["scan/length", "scan/addprim_jump"]),
        ({"identity": "cd" * 32}, ["scan/length, identity d78b35ce", "scan/length, identity cdcdcdcd"]),
        (
            {"identity": "cd" * 32, "selection": "oracle"},
            ["scan/length, selected by last", "scan/length, selected by oracle"],
        ),
        ({"selection": "oracle"}, ["scan/length, selected by last", "scan/length, selected by oracle"]),
    ],
)
def test_records_that_cannot_be_compared_never_share_a_panel(other, expected):
    assert titles([record(), record("mlp", **other), record("knn")]) == expected


def test_an_unusual_selection_rule_is_always_named():
    assert titles([record(selection="oracle")]) == ["scan/length, selected by oracle"]


def test_panels_of_one_benchmark_are_said_not_to_be_comparable():
    apart = "scan/length: entries with different identities are not comparable."
    assert note(make_figure([record(), record(budget="quick")], "gap")).endswith(apart)
    assert "not comparable" not in note(make_figure([record(), record(benchmark="a/b")], "gap"))


def test_two_metrics_in_one_panel_are_refused():
    records = [record("lstm"), record("mlp", metric="token_accuracy@1")]
    for what in ("gap", "id_ood", "severity"):
        with pytest.raises(
            FarshiftError, match=r"^scan/length: lstm is scored by exact_match@1 and mlp by token_accuracy@1"
        ):
            make_figure(records, what)


def test_names_are_numbered_if_they_repeat_and_of_one_line():
    (panel,) = make_panels([record("lstm"), record("my\n  model\t2"), record("lstm"), record("lstm (1)")])
    assert panel.names == ("lstm (2)", "my model 2", "lstm (3)", "lstm (1)")


def test_no_record_at_all_is_refused():
    for what in ("calibration", "gap", "id_ood", "noise", "severity"):
        with pytest.raises(FarshiftError, match="no score records given"):
            make_figure([], what)


def test_a_record_of_another_version_is_named_with_what_it_lacks():
    old = {key: value for key, value in record("lstm").to_dict().items() if key not in ("bounds", "selection")}
    with pytest.raises(BadRun, match=r"lstm on scan/length lacks selection, bounds: score the run again"):
        Score.from_dict(old)


@pytest.mark.parametrize(
    ("found", "percent", "expected"),
    [
        (estimate(0.95318, 0.012), True, "95.3 [94.1, 96.5]"),
        (Interval(-0.0004, -0.03, 0.0292), True, "0.0 [-3.0, 2.9]"),
        (Interval(1234.5, 1204.2, 1264.8), False, "1234 [1204, 1265]"),
        (Interval(0.0312, 0.0301, 0.0323), False, "0.0312 [0.0301, 0.0323]"),
        (Interval(2.0, 2.0, 2.0), False, "2.000 [2.000, 2.000]"),
    ],
)
def test_numbers_have_the_digits_that_their_interval_warrants(found, percent, expected):
    assert format_estimate(found, percent) == expected
