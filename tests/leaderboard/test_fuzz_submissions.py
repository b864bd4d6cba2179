"""Whatever is handed in, it is accepted or refused by a name: mutated submissions, drawn cards and drawn bytes."""

from __future__ import annotations

import copy
import io
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest
from farshift.core.errors import BadSubmission
from farshift.leaderboard.validation.archive import Archive
from farshift.leaderboard.validation.card import parse_submission_card
from farshift.leaderboard.validation.limits import FileRejected
from farshift.leaderboard.validation.problem import REMEDIES, Problems
from farshift.leaderboard.validation.reader import read_card
from fuzz.bases import made, opened
from fuzz.folders import CASES
from fuzz.kept import Validator
from fuzz.mutations import mutated
from fuzz.packing import Parts
from fuzz.raw_zip import written
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.attack("entrant", "100 submissions with mutations at every layer (slow: 3,000)")

FEW = settings(max_examples=25, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def bases(tmp_path_factory) -> list[Parts]:
    return made(tmp_path_factory.mktemp("bases"))


@pytest.fixture(scope="module")
def look(bases) -> Iterator[Validator]:
    validator = Validator(opened())
    for base in bases:
        assert len(validator(base.packed()).entries) == 1
    yield validator
    validator.end()


def outcome_of(look: Validator, content: bytes) -> str:
    """How a submission fared: accepted, the name of its first problem, or FAILED and what happened."""
    try:
        look(content)
    except BadSubmission as refusal:
        names = [problem.name for problem in refusal.problems]
        if not names or not set(names) <= set(REMEDIES):
            return f"FAILED: refused without a name: {refusal}"
        if "reader-crash" in names and "signal SIG" not in str(refusal):
            return f"FAILED: the reader broke: {refusal}"
        return names[0]
    except Exception:  # whatever it is, it is what is looked for
        return f"FAILED: {traceback.format_exc()}"
    return "accepted"


@pytest.mark.parametrize(
    ("cases", "name"),
    [(100, "fast"), pytest.param(10 * CASES, "slow", marks=pytest.mark.slow)],
    ids=["few", "many_damaged"],
)
def test_mutated_submissions_are_accepted_or_refused_by_name(look, bases, cases, name):
    outcomes = Counter()
    for case in range(cases):
        outcome = outcome_of(look, mutated(case, bases, name)[1])
        assert not outcome.startswith("FAILED"), f"case {case} of {name}: {outcome}"
        outcomes[outcome] += 1
    assert outcomes["accepted"] > cases // 50
    assert len(outcomes) > 15


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@FEW
@given(
    card=st.fixed_dictionaries({}, optional=dict.fromkeys(["format", "name", "team", "note", "model", "runs"], VALUES))
)
def test_any_tables_are_a_card_or_named_problems(card):
    problems = Problems()
    result = parse_submission_card({"format": 2} | card, "submission.toml", problems)
    assert (result is None) == bool(problems)
    assert all(item.name in ("card-value", "format-unknown") for item in problems.items)


@FEW
@given(text=st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_toml_tables_or_refused_by_name(text):
    try:
        assert isinstance(read_card(text), dict)
    except FileRejected as refused:
        assert {name for name, _, _ in refused.findings} == {"toml-invalid"}


@FEW
@given(content=st.binary(max_size=400), data=st.data())
def test_any_bytes_put_into_any_place_of_a_zip_are_read_or_named(bases, content, data):
    good = written(copy.deepcopy(bases[0].listed()))
    position = data.draw(st.integers(0, len(good)))
    problems = Problems()
    archive = Archive(io.BytesIO(good[:position] + content + good[position + len(content) :]), "s.zip", problems)
    for name in archive.members:
        with suppress(FileRejected), archive.unpack(name):
            pass
    assert all(item.name in REMEDIES for item in problems.items)
