"""The picture of an audit: what it draws, that it can be read, and `farshift splits audit --plot`."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from audited import audited
from farshift.splits.audit.plot import draw_figure, render_png
from matplotlib.figure import Figure
from pictures import faults, words
from support import one_line_error

PART = ["train"] * 200 + ["id_test"] * 50 + ["ood_test"] * 100


def made(kind="domain", names=3, labels=4, **said):
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=(350, 3)).astype(np.float32), "y": rng.integers(0, labels, 350)}
    group = [f"the hospital of a very long name, number {k} of the north" for k in rng.integers(0, names, 350)]
    return audited(kind, columns, PART, ["x"], group=group, severity=rng.random(350).tolist(), **said)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in words(figure)]


@pytest.mark.parametrize(
    "audit",
    [
        made(),
        made(names=40, labels=30),
        audited("length", {"q": ["a b", "b a", "a a b"], "y": ["0", "1", "0"]}, ["train", "train", "ood_test"], ["q"]),
        audited("corrupted-label", {"k": [1, 2, 3], "y": [0, 1, 1]}, ["train"] * 3, ["k"], override=[1, None, None]),
    ],
    ids=["few groups", "many groups", "text alone", "noise alone"],
)
def test_no_text_is_cut_or_lies_over_another(audit):
    assert faults(draw_figure(audit)) == []


def test_the_picture_says_which_split_it_is_and_why_it_holds_or_not():
    audit = made()
    head = draw_figure(audit).get_suptitle()
    assert head.startswith("mine/split@1 (domain shift): DOES NOT HOLD\ndomains are shared, and the proportions of")
    assert "train (200 rows)" in texts(draw_figure(audit))


def test_bars_are_the_numbers_of_the_audit():
    audit = made()
    labels = draw_figure(audit).axes[1]
    heights = sorted(bar.get_height() for bar in labels.patches)
    shares = [share for part in audit["labels"]["shares"].values() for share in part.values()]
    assert heights == pytest.approx(sorted(shares))


def test_classes_that_have_names_are_drawn_by_them():
    labels = draw_figure(made(), ["cat", "dog", "an animal of a long name", "fish"]).axes[1]
    drawn = [label.get_text() for label in labels.get_xticklabels()]
    assert drawn[:2] + drawn[3:] == ["cat", "dog", "fish"]
    assert drawn[2] == "an a… name"
    assert [label.get_text() for label in draw_figure(made()).axes[1].get_xticklabels()] == ["0", "1", "2", "3"]


def test_beyond_twelve_groups_the_others_are_one_bar():
    audit = made(names=40)
    drawn = draw_figure(audit).axes[2]
    names = [label.get_text() for label in drawn.get_yticklabels()]
    assert len(names) == len(set(names)) == 13
    assert names[-1] == "(others)"
    assert sum(bar.get_width() for bar in drawn.patches) == 350


def test_only_what_an_audit_has_is_drawn():
    audit = audited("length", {"k": [1, 2, 3], "y": ["a", "b", "c"]}, ["train", "train", "ood_test"], ["k"])
    titles = [axes.get_title("left") for axes in draw_figure(audit).axes]
    assert titles and not {"Severity", "Groups"} & set(titles)
    assert [axes.get_title("left") for axes in draw_figure(made()).axes][::2] == ["Severity", "Groups"]


def test_the_same_audit_gives_the_same_bytes_whatever_the_users_settings():
    audit = made()
    first = render_png(audit)
    with matplotlib.rc_context({"font.size": 20}):
        second = render_png(audit)
    assert first == second
    assert first.startswith(b"\x89PNG")


def test_the_command_draws_a_published_split(farshift, tmp_path):
    out = tmp_path / "pictures" / "modadd97.png"
    done = farshift("splits", "audit", "modadd97/xi35", "--plot", out)
    assert done.returncode in (0, 1), done.stderr
    assert out.read_bytes().startswith(b"\x89PNG")


def test_another_format_is_refused_before_anything_is_measured(farshift, tmp_path):
    error = one_line_error(farshift("splits", "audit", "modadd97/xi35", "--plot", tmp_path / "a.gif"))
    assert "the plot of an audit is a .png file" in error
