"""Pictures as files: formats, equal bytes, nothing left behind, errors that say what to do; and
legible: nothing is cut, overlaps or is told apart by colour alone."""

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
from farshift.benchmarks.plot._style import assign_looks
from farshift.core.errors import MissingExtra, UnknownName
from pictures import faults, note, words
from PIL import Image
from records import MODELS, many, record


@pytest.mark.parametrize(
    ("suffix", "head"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")]
)
def test_the_suffix_names_the_format_and_two_drawings_are_equal_to_the_byte(tmp_path, suffix, head):
    first, second = (draw_plot(many(2), "gap", tmp_path / f"{name}{suffix}") for name in "ab")
    assert first == tmp_path / f"a{suffix}"
    assert first.read_bytes().startswith(head)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a{suffix}", f"b{suffix}"]


def test_a_png_has_300_dots_an_inch_and_says_what_it_shows(tmp_path):
    image = Image.open(draw_plot([record("lstm")], "gap", tmp_path / "gap.png"))
    assert image.width == round(3.3 * 300)
    assert image.info["Description"].startswith("lstm on scan/length, identity d78b35ce")


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


def test_a_name_with_dollars_is_no_mathematics(tmp_path):
    given = [r"$\frac$", "50 % & more_$"]
    records = [record(name) for name in given]
    draw_plot(records, "gap", tmp_path / "a.png")
    shown = {text.get_text().replace("\\$", "$") for text in words(make_figure(records, "gap"))}
    assert set(given) <= shown


def test_another_suffix_is_refused_with_those_there_are(tmp_path):
    for name in ("a.jpg", "a", ".png"):
        with pytest.raises(FarshiftError, match=r"a figure is written as \.pdf, \.png or \.svg"):
            draw_plot(many(1), "gap", tmp_path / name)


def test_another_picture_is_refused_with_those_there_are(tmp_path):
    with pytest.raises(UnknownName, match="choose from calibration, gap, id_ood, noise, severity"):
        draw_plot(many(1), "xyz", tmp_path / "a.png")
    with pytest.raises(UnknownName, match="did you mean severity"):
        draw_plot(many(1), "sevrity", tmp_path / "a.png")  # codespell:ignore sevrity


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FarshiftError, match=r"file/a\.png cannot be written: .*; write it to another place"):
        draw_plot(many(1), "gap", tmp_path / "file" / "a.png")


def test_a_refused_drawing_leaves_the_old_file(tmp_path):
    old = draw_plot(many(1), "gap", tmp_path / "a.png").read_bytes()
    with pytest.raises(FarshiftError, match="requires class probabilities"):
        draw_plot(many(1), "calibration", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == old


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


@pytest.mark.parametrize(
    "make",
    [lambda **s: many(1, **s), twenty, extremes, several],
    ids=["one", "twenty", "extreme", "several"],
)
@pytest.mark.parametrize("what", PICTURES)
def test_no_text_is_cut_or_hidden_and_the_width_is_a_papers(what, make):
    shown = make_figure(make(**PICTURES[what]), what)
    assert faults(shown) == []
    assert shown.get_figwidth() in (3.3, 6.9)
    assert shown.get_figheight() <= (11 if make is not twenty else 17)
    assert shown.get_facecolor() == (1, 1, 1, 1), "legible on a dark page too"


@pytest.mark.parametrize("what", PICTURES)
def test_names_are_whole_however_long(what):
    records = [*extremes(**PICTURES[what]), record("short", LONG, **PICTURES[what])]
    shown = make_figure(records, what)
    output = "|".join(text.get_text().replace("\n", "").replace("\\$", "$") for text in words(shown)).replace(" ", "")
    assert "…" not in output
    for item in records:
        assert item.model.replace(" ", "") in output and item.benchmark in output


@pytest.mark.parametrize("what", PICTURES)
def test_a_title_and_no_note_leave_the_panels_as_they_are(what):
    records = many(3, **PICTURES[what])
    plain = make_figure(records, what)
    shown = make_figure(
        records, what, title="A title that is rather long, of runs at $x$ and 50 %, and more", note=False
    )
    assert faults(shown) == []
    assert "A title that is rather" in "".join(text.get_text() for text in words(shown))
    assert note(shown) == "" and note(plain) == get_plot_note(records, what) != ""
    sizes = [
        [axes.get_position().transformed(each.transFigure).bounds[2:] for axes in each.axes] for each in (plain, shown)
    ]
    assert sizes[1] == [pytest.approx(size, rel=0.06) for size in sizes[0]]


def test_twelve_models_differ_without_colour_and_neighbours_in_everything():
    result = list(assign_looks(MODELS).values())
    assert len({look.marker for look in result}) == 12
    for item, other in pairwise(result):
        assert item.colour != other.colour and item.line != other.line
    many_looks = assign_looks([f"m{k}" for k in range(60)]).values()
    assert all(item != other for item, other in combinations(many_looks, 2))
