"""Prompts with skills: a model that follows them over a real connection is right, on longer words than the examples."""

from __future__ import annotations

import farshift as fs
import pytest
from endpoint_cases import model
from farshift.benchmarks.prompting.prompt import Prompt


def reason(text: str) -> str:
    words = text.rpartition("input: ")[2].removesuffix("\nreasoning:").split()
    return " By Skill 1 and Skill 2.\nAnswer: " + "".join(word[-1] for word in words)


def add(text: str) -> str:
    left, right = text.rpartition("input: ")[2].removesuffix("\nreasoning:").split(" + ")
    digits = str(int(left.replace(" ", "")) + int(right.replace(" ", ""))).zfill(len(left.split()) + 1)
    return f" The carry.\nAnswer: {' '.join(digits)}"


@pytest.mark.parametrize(("name", "answer"), [("last_letters/words_skills", reason), ("addition/length_skills", add)])
def test_the_steps_of_the_skills_give_the_answer_and_the_examples_are_right(server, cache, name, answer):
    benchmark = fs.benchmark(name)
    prompt = Prompt(benchmark.definition.prompt, benchmark.task, ())
    columns = {key: values[:4] for key, values in fs.load(name.rpartition("_")[0], part="ood_test").numpy().items()}
    server.answer = answer
    assert model(server, asked_by=prompt).predict({"input": columns["input"]}) == columns["output"].tolist()
    assert len(server.prompts) == 4
    for asked in server.prompts:
        shown, _, _ = asked.rpartition("input: ")
        assert "Skill 1" in shown
        for example in shown.split("input: ")[1:]:
            question, _, rest = example.partition("\nreasoning:")
            given = rest.rpartition("Answer: ")[2].split("\n")[0]
            assert answer(f"input: {question}\nreasoning:").rpartition("Answer: ")[2] == given


def test_an_answer_is_the_last_letters_of_up_to_twelve_words():
    columns = fs.load("last_letters/words", part="ood_test").numpy()
    words = [text.split() for text in columns["input"]]
    assert {len(row) for row in words} == set(range(3, 13))
    assert ["".join(word[-1] for word in row) for row in words] == columns["output"].tolist()
