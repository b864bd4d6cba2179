"""How logs become seeds, whatever they are called and in whatever order they come; and what survives a task file."""

from __future__ import annotations

from itertools import product

import pytest
import yaml
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.interop import Log, LogSample, combine_logs
from farshift.benchmarks.interop._sheets import make_export
from farshift.benchmarks.interop.lm_eval import _format_yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interop_cases import NAME, echo_home

texts = st.text(st.characters(codec="utf-8"))


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_PATH", str(folder))
        echo_home(folder)
        benchmark = find_benchmark(NAME)
        yield benchmark, make_export(benchmark)


def log(sitting, sheet, said) -> Log:
    samples = [LogSample("here", item.row_id, item.entry_identity, [item.prompt], said) for item in sheet.samples]
    return Log((sitting,), "tiny", "", samples)


@given(st.data(), st.integers(1, 4), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_answer_is_in_one_seed_and_every_seed_is_whole(task, data, passes, one_by_one):
    benchmark, built = task
    logs = [
        log((number, sheet.name) if one_by_one else number, sheet, f"pass {number}")
        for number, sheet in product(range(passes), built.sheets)
    ]
    seeds = combine_logs(benchmark, built.grader.prompt, data.draw(st.permutations(logs)))[0]
    rows = {int(sample.row_id, 16) for sheet in built.sheets for sample in sheet.samples}
    assert [set(output) for output in seeds] == [rows] * passes
    for row in rows:
        assert sorted(output[row] for output in seeds) == [f"pass {number}" for number in range(passes)]
    if not one_by_one:
        assert all(len(set(output.values())) == 1 for output in seeds)


@given(st.lists(texts), texts)
def test_any_text_comes_back_from_a_task_file(stop, title):
    assert yaml.safe_load(_format_yaml({"until": stop, "deep": {"title": title}})) == {
        "until": stop,
        "deep": {"title": title},
    }
