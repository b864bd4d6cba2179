"""What is offered instead of a name that there is not; and one thing is counted as one."""

from __future__ import annotations

import pytest
from farshift.core.errors import suggest_names
from support import one_line_error

KNOWN = ["cogs/depth", "cogs/length", "dominoes/complete", "geoquery/template", "scan/jump", "scan/length", "scan/mcd1"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("scan/lenght", "did you mean scan/length?"),
        ("scna/length", "did you mean scan/length?"),
        ("scan", "choose from scan/jump, scan/length, scan/mcd1"),
        ("scan/", "choose from scan/jump, scan/length, scan/mcd1"),
        ("scan/primitives", "choose from scan/jump, scan/length, scan/mcd1"),
        ("scam", "did you mean scan/..?"),
        ("geoquerry/split", "did you mean geoquery/..?"),
        ("geoquerry/templat", "did you mean geoquery/template?"),
        ("own/length", f"choose from {', '.join(KNOWN)}"),
        ("own/empty", f"choose from {', '.join(KNOWN)}"),
    ],
)
def test_names_are_guessed_within_their_family_and_never_far_off(name, told):
    assert suggest_names(name, KNOWN) == told


def test_a_name_that_another_one_begins_with_is_offered_that_one():
    assert suggest_names("ood", ["id_test", "ood_test", "train"]) == "did you mean ood_test?"


def test_names_that_are_too_many_for_a_line_come_with_the_command_that_lists_them():
    many = [f"noise/rate_{number:02}" for number in range(20)]
    assert suggest_names("noise", [*many, "scan/length"], "farshift splits list").endswith(
        ", noise/rate_11 and 8 more (all of them: farshift splits list noise)"
    )
    assert suggest_names("zzz", many, "farshift splits list") == "farshift splits list lists all 20"
    assert (
        suggest_names("zzz", many[:3], "farshift splits list")
        == "choose from noise/rate_00, noise/rate_01, noise/rate_02"
    )


@pytest.mark.parametrize(
    "listed", [("splits", "show"), ("splits", "pull"), ("splits", "verify"), ("benchmarks", "show")]
)
def test_the_name_of_a_source_is_answered_with_all_of_it(command, listed):
    output = one_line_error(command(*listed, "scan"))
    assert "named 'scan': choose from scan/addprim_jump, " in output
    assert f" more (all of them: farshift {listed[0]} list scan)" in output
