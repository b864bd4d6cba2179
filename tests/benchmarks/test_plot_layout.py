"""Pictures are legible: nothing is cut, overlaps or is told apart by colour alone."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from farshift.benchmarks.plot import get_plot_note, make_figure
from farshift.benchmarks.plot._style import assign_looks
from pictures import faults, note, words
from records import MODELS, many, record

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
