"""A sealed draw is as hard as the public test, has none of its rows, and is refused where it could mean nothing."""

from __future__ import annotations

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.benchmark import find_benchmark
from farshift.leaderboard.sealed.drawing import VIEWS, draw_sealed_rows
from farshift.leaderboard.sealed.published import select_inputs
from farshift.splits.rows import compute_first_ids
from sealed_cases import GENERATOR, ON, SEED, TURNED, make_home


@pytest.fixture(scope="module")
def benchmark(coins):
    return find_benchmark(ON)


@pytest.fixture(scope="module")
def drawn(benchmark):
    return draw_sealed_rows(benchmark, SEED)


def test_every_cell_has_as_many_rows_as_in_the_public_test(benchmark, drawn):
    for view in VIEWS:
        public, sealed = benchmark.view(view)[0], drawn.rows.select(drawn.sides[view])
        cells = [
            sorted(zip(part.row_metadata["severity"], part.row_metadata["group"], part.true_labels(), strict=True))
            for part in (public, sealed)
        ]
        assert cells[0] == cells[1]
        assert drawn.profile[view]["equal"]
        assert drawn.profile[view]["left_out"]["rows"] == 0
    assert drawn.sides["id"].sum() + drawn.sides["ood"].sum() == len(drawn.rows)


def test_no_input_of_a_draw_stands_in_the_published_source(benchmark, drawn):
    source = benchmark.split.source
    published = set(benchmark.split.rows["coins"].to_pylist())
    drawn_texts = drawn.rows.numpy(["coins"])["coins"].tolist()
    assert not published & set(drawn_texts)
    assert len(set(drawn_texts)) == len(drawn_texts)
    assert np.array_equal(compute_first_ids(drawn.rows.arrow(["coins"]), source.schema), drawn.rows.row_ids)


def test_the_same_seed_gives_the_same_draw_and_another_seed_others(benchmark, drawn):
    again, other = draw_sealed_rows(benchmark, SEED), draw_sealed_rows(benchmark, bytes(32))
    assert select_inputs(again.rows, benchmark) == select_inputs(drawn.rows, benchmark)
    assert again.rows.true_labels().tolist() == drawn.rows.true_labels().tolist()
    assert not set(other.rows.row_ids.tolist()) & set(drawn.rows.row_ids.tolist())
    assert other.profile["ood"]["cells"] == drawn.profile["ood"]["cells"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("scan/length", "has no seed and gives all possible rows"),
        ("two_hop/phi_3_6", "also determines its facts"),
        ("xor_clusters/eta10", "its view ood uses training rows"),
        ("rated_sums/glicko2", "does not reproduce its rows exactly"),
        ("optdigits/writers", "comes from files"),
    ],
)
def test_what_cannot_be_sealed_is_refused_in_one_line(name, why):
    with pytest.raises(FarshiftError, match=why) as refused:
        draw_sealed_rows(find_benchmark(name), SEED)
    assert str(refused.value).startswith(f"{name} cannot be sealed: ")
    assert "\n" not in str(refused.value)


def test_a_cell_that_the_generator_cannot_fill_is_left_out_on_both_sides():
    benchmark = find_benchmark("chomsky_parity_check/length")
    drawn = draw_sealed_rows(benchmark, SEED)
    output = drawn.profile["id"]
    assert output["left_out"]["rows"] > 0
    assert output["equal"]
    assert output["rows"] + output["left_out"]["rows"] == output["public_rows"]
    public = benchmark.view("id")[0]
    stored = np.isin(public.row_ids, drawn.counterpart["id"])
    assert sorted(public.row_metadata["severity"][stored]) == sorted(
        drawn.rows.select(drawn.sides["id"]).row_metadata["severity"]
    )
    assert public.row_metadata["severity"][~stored].max() < 10  # all short strings are published


def test_a_generator_whose_seed_gives_published_inputs_other_labels_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    monkeypatch.setattr("sealed_cases.GENERATOR", GENERATOR.replace("{seed}/{part}", "fixed/{part}"))
    make_home(tmp_path, TURNED)
    with pytest.raises(FarshiftError, match="determines more than the rows"):
        draw_sealed_rows(find_benchmark(ON), SEED)


HALVES = '''
import numpy as np
from farshift.splits.assignment import Assignment

def halves(table, *, field, parts, severity, group):
    """The first texts in the alphabet train: which these are depends on the others."""
    names, place = np.unique(table["coins"].to_pylist(), return_inverse=True)
    rank = place / len(names)
    part = np.where(rank < 0.5, "train", np.where(rank < 0.6, "id_test", "ood_test"))
    return Assignment(part=part, severity=np.where(rank < 0.6, 1, 2))
'''


def test_a_rule_that_divides_rows_by_the_others_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    make_home(tmp_path, "odd", HALVES)
    with pytest.raises(FarshiftError, match="depends on all rows of the source"):
        draw_sealed_rows(find_benchmark(ON), SEED)


ONE_OF_EACH_GENERATOR = [
    "addition/length",
    "arc_grids/pairs",
    "balls/materials",
    "concept_shift/angle",
    "covariate_shift/mean",
    "gcog/productive",
    "hamiltonian/new_systems",
    "in_context_regression/covariate_shift",
    "listops/length",
    "mazes/9_to_21",
    "prefix_sums/32_to_64",
    "shapes/diagonal",
    "skills/pairs",
    "slabs_5/shuffled",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH_GENERATOR)
def test_draws_of_every_sort_of_generator_are_as_hard_as_the_public_test(name):
    drawn = draw_sealed_rows(find_benchmark(name), SEED)
    for view in VIEWS:
        assert drawn.profile[view]["equal"], view
        assert drawn.profile[view]["left_out"]["rows"] <= 0.2 * drawn.profile[view]["public_rows"]
