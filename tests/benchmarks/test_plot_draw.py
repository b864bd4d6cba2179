"""Pictures as files: formats, equal bytes, nothing left behind, and errors that say what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256

import matplotlib
import pytest
from farshift import FarshiftError
from farshift.benchmarks.plot import draw_plot, make_figure
from farshift.core.errors import MissingExtra, UnknownName
from pictures import words
from PIL import Image
from records import many, record


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
