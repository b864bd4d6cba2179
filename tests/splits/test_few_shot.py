"""Splits with a few rows of the tested domain in training."""

from __future__ import annotations

from collections import Counter

import pytest
from farshift.loaders.split import open_split


@pytest.mark.parametrize(("name", "system"), [("kepler", "Kepler"), ("double_well", "double well")])
def test_few_shot_adds_32_trajectories_of_the_tested_system_and_changes_nothing_else(name, system):
    without, few = (open_split(f"hamiltonian_few/{name}_{count}") for count in (0, 32))
    for part in ("id_test", "ood_test"):
        assert set(without.part(part).row_ids) == set(few.part(part).row_ids)
    added = set(few.part("train").row_ids) - set(without.part("train").row_ids)
    assert len(added) == 32 and set(few.part("train").row_ids) > set(without.part("train").row_ids)
    assert Counter(few.part("train").arrow(["system"])["system"].to_pylist())[system] == 32
    assert set(few.part("ood_test").arrow(["system"])["system"].to_pylist()) == {system}
