"""Whatever is handed in, it is accepted or refused by a name: mutated submissions, drawn cards and drawn bytes."""

from __future__ import annotations

import copy
import io
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
from fuzz.kept import Validator
from fuzz.mutations import mutated
from fuzz.packing import Parts
from fuzz.raw_zip import written
from fuzz.submissions import fuzz, outcome_of, report
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.attack(
    "entrant", "100 submissions with mutations at every layer (2,500 in processes under limits)"
)

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


def test_100_mutated_submissions_are_accepted_or_refused_by_name(look, bases):
    outcomes = [outcome_of(look, mutated(case, bases, "fast")[1]) for case in range(100)]
    assert [item for item in outcomes if item.startswith("FAILED")] == []
    assert "accepted" in outcomes
    assert len(set(outcomes)) > 15


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


def test_the_fuzzer_sees_what_fails(look):
    """An unnamed error, a refusal without problems and a broken reader are failures; a refusal by name is none."""

    def raising(error):
        def look(content):
            raise error

        return look

    assert outcome_of(raising(KeyError("x")), b"").startswith("FAILED\nTraceback")
    assert outcome_of(raising(BadSubmission("s.zip: no")), b"").startswith("FAILED\nrefused without a name")
    problems = Problems()
    problems.add("reader-crash", "runs/0.toml", "crashed the process that read it (code 1)")
    with pytest.raises(BadSubmission) as refusal:
        problems.refuse_if_any("s.zip")
    assert outcome_of(raising(refusal.value), b"").startswith("FAILED\nthe reader broke")
    assert outcome_of(look, b"") == "zip-unreadable"


@pytest.mark.slow
def test_2_500_mutated_submissions_in_processes_under_limits(tmp_path):
    result = fuzz(2_500, 2, tmp_path, "slow")
    assert result.failures == {}, report(result)
    assert result.outcomes.total() == 2_500
    assert result.outcomes["accepted"] > 100
    assert len(result.outcomes) > 25
    assert result.peak_mib < 1024
