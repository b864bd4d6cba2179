"""Super-NaturalInstructions made small: its 131 files from a server, its parts, its prompt and its score."""

from __future__ import annotations

import json

import farshift as fs
import pytest
from farshift.benchmarks.adapters.openai_endpoint import from_spec
from farshift.loaders.acquire.source import find_source
from llm_server import llm
from servers import web
from twins import measured, pulled, twin, values

NAME = "natural_instructions/unseen_tasks"
TRAIN = find_source("natural_instructions").definition.distributions[0].options["train"]
FILES = [pin.name for pin in find_source("natural_instructions").definition.distributions[0].files]


def task(name, instances=6):
    """A task's file; older ones have a text where newer ones have a list."""
    definition = f"Solve {name}."
    return json.dumps(
        {
            "Definition": definition if name == FILES[0] else [definition],
            "Categories": ["Title Generation", "Other"],
            "Positive Examples": [{"input": "not", "output": "read"}],
            "Instances": [
                {"id": f"{name}-{number}", "input": f"{name} {number}", "output": ["a fine day", "a day", "a fine day"]}
                for number in range(instances)
            ],
        }
    ).encode()


@pytest.fixture
def small(place):
    with web(**{name: task(name) for name in FILES}) as site:
        mirrors = {name: [{"sort": "https", "url": f"{site.url}/{name}"}] for name in FILES}
        name = twin(NAME, place, mirrors=mirrors, options={"each": 1}, distinct={"task": 131, "published": 3})
        return pulled(name)


def test_the_test_has_the_first_instances_of_the_119_tasks_and_training_those_of_twelve_others(small):
    split, parts = small
    assert parts == {"train": 12, "id_test": 12, "ood_test": 119}
    assert set(values(split, "ood_test", "number")) == {0}
    assert set(values(split, "id_test", "number")) == {1}
    assert set(values(split, "train", "task")) == set(values(split, "id_test", "task")) == set(TRAIN)
    assert len(set(values(split, "ood_test", "task")) - set(TRAIN)) == 119
    assert set(values(split, "ood_test", "answer")) == {"a fine day | a day"}
    assert set(values(split, "ood_test", "category")) == {"Title Generation"}


def test_a_model_is_asked_with_the_definition_and_the_best_output_counts(small, place, tmp_path):
    split, _ = small
    name = measured(NAME, split.manifest.name, place)
    with llm(lambda text: "one day") as site:
        run = fs.evaluate(from_spec(f"tiny@{site.url}", {}), on=name, seeds=1, budget="quick", out=tmp_path / "run")
        prompts = set(site.prompts)
    assert fs.score(run).ood.value == pytest.approx(2 * 1 / (2 + 2)), "'one day' and 'a day' share one word of two"
    first = f"Definition: Solve {FILES[0]}.\n\nNow complete the following example -\nInput: {FILES[0]} 0\nOutput:"
    assert first in prompts
