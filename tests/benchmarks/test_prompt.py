"""Prompts: a template says what it shows and nothing else, and the examples are the same wherever they are drawn."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from farshift.benchmarks.definition import PromptPin
from farshift.benchmarks.model import Task
from farshift.benchmarks.prompting.prompt import Prompt, Template, draw_shots
from farshift.core.errors import BadDefinition, FarshiftError
from hypothesis import given
from hypothesis import strategies as st

TRANSLATE = Task("sequence", ("command",), "actions")
SENTIMENT = Task("classification", ("text", "stars"), "mood", classes=2, names=("bad", "good"))


def pin(**changes):
    settled = {
        "instruction": "Translate.",
        "example": "In: {command}\nOut: {actions}",
        "query": "In: {command}\nOut:",
        "extraction": {"name": "whole", "version": 1},
    }
    return PromptPin.model_validate(settled | changes)


def mood(**changes):
    return pin(**({"instruction": "", "example": "{text} is {mood}", "query": "{text} is"} | changes))


text_without_braces = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]))
template = st.lists(text_without_braces | st.sampled_from(["{a}", "{b}", "{{", "}}"])).map("".join)


@given(template, st.text(), st.text())
def test_a_template_is_filled_as_pythons_own_formatting_fills_it(text, a, b):
    assert "".join(Template.parse(text, ("a", "b"), "it").filled({"a": a, "b": b})) == text.format(a=a, b=b)


@given(st.text("ab{}.[]!:0 ", max_size=12))
def test_whatever_a_template_does_not_refuse_means_to_python_what_it_means_here(text):
    try:
        result = "".join(Template.parse(text, ("a", "b"), "it").filled({"a": "1", "b": "{a}"}))
    except BadDefinition:
        return
    assert result == text.format(a="1", b="{a}")


@pytest.mark.parametrize("field", ["a.__class__", "a[0]", "a!r", "a:>3", "", "0", " a", "c"])
def test_a_template_reaches_nothing_but_the_fields_it_may_name(field):
    with pytest.raises(BadDefinition, match="the query names .*, but may only name a, b"):
        Template.parse(f"x {{{field}}} y", ("a", "b"), "the query")


@pytest.mark.parametrize("text", ["{", "a}", "{a}}", "{{a}"])
def test_a_brace_that_belongs_to_no_field_is_refused(text):
    with pytest.raises(BadDefinition, match="the query has a single brace: write {{ or }} for a brace"):
        Template.parse(text, ("a",), "the query")


def test_a_prompt_is_instruction_examples_and_query():
    shots = ({"command": "walk", "actions": "WALK"}, {"command": "run twice", "actions": "RUN RUN"})
    prompt = Prompt(pin(k=2), TRANSLATE, shots)
    assert prompt.text({"command": "look"}) == (
        "Translate.\n\nIn: walk\nOut: WALK\n\nIn: run twice\nOut: RUN RUN\n\nIn: look\nOut:"
    )
    assert Prompt(pin(instruction="", separator=" | "), TRANSLATE, ()).text({"command": "look"}) == "In: look\nOut:"


def test_a_batch_has_a_prompt_per_row_in_order():
    batch = {"text": np.array(["fine", "dull"], object), "stars": np.array([5, 1])}
    prompt = Prompt(mood(query="{text} ({stars} stars) is"), SENTIMENT, ())
    assert prompt.texts(batch) == ["fine (5 stars) is", "dull (1 stars) is"]
    assert prompt.texts({name: values[:0] for name, values in batch.items()}) == []


def test_a_class_is_called_by_its_name_where_it_has_one():
    shots = ({"text": "fine", "mood": np.int64(1)}, {"text": "dull", "mood": 0})
    assert Prompt(mood(), SENTIMENT, shots).text({"text": "so-so"}) == "fine is good\n\ndull is bad\n\nso-so is"
    nameless = replace(SENTIMENT, names=())
    assert Prompt(mood(), nameless, shots).text({"text": "so-so"}) == "fine is 1\n\ndull is 0\n\nso-so is"


def test_no_prompt_shows_the_label_of_the_row_it_asks_about():
    with pytest.raises(BadDefinition, match=r"the query names \{mood\}, but may only name text, stars"):
        Prompt(mood(query="{text} {mood}"), SENTIMENT, ())
    prompt = Prompt(mood(), SENTIMENT, ())
    assert prompt.text({"text": "fine", "mood": 1}) == prompt.text({"text": "fine", "mood": 0}) == "fine is"


def test_a_query_without_an_input_is_refused():
    with pytest.raises(BadDefinition, match=r"the query names no input, .*: add \{text\} or \{stars\}"):
        Prompt(mood(query="{{text}} is"), SENTIMENT, ())


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.float64(0.1), "0.1"),
        (1e-7, "1e-07"),
        (np.uint64(2**64 - 1), "18446744073709551615"),
        (np.bool_(True), "true"),
        (np.array([1, 2], np.uint8), "1 2"),
        (np.array([[1, 2], [3, 4]]), "1 2\n3 4"),
        (np.arange(8).reshape(2, 2, 2), "0 1\n2 3\n\n4 5\n6 7"),
        (np.array([0.1, 2], np.float32), "0.1 2.0"),
    ],
)
def test_a_value_is_shown_as_people_write_it_also_after_a_way_through_json(value, shown):
    task = Task("classification", ("x",), "y", classes=2)
    prompt = Prompt(mood(example="{x}:{y}", query="{x}"), task, ())
    plain = json.loads(json.dumps(value.tolist() if hasattr(value, "tolist") else value))
    assert prompt.text({"x": value}) == prompt.text({"x": plain}) == shown


def test_bytes_are_refused():
    with pytest.raises(BadDefinition, match="the field 'text' is of bytes"):
        Prompt(mood(), SENTIMENT, ()).text({"text": b"anything"})


def training(rows):
    ids = np.arange(rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    commands = np.array([f"command {row}" for row in range(rows)], object)
    return {"command": commands, "actions": np.char.upper(commands.astype(str)).astype(object), "row_id": ids}


@given(st.integers(0, 20), st.randoms(use_true_random=False))
def test_the_examples_do_not_depend_on_the_order_of_the_rows(k, shuffler):
    rows = training(30)
    order = list(range(30))
    shuffler.shuffle(order)
    shuffled = {name: values[order] for name, values in rows.items()}
    drawn = draw_shots(pin(k=k), "scan/length", rows, rows["row_id"], TRANSLATE)
    assert drawn == draw_shots(pin(k=k), "scan/length", shuffled, shuffled["row_id"], TRANSLATE)
    assert len({row["command"] for row in drawn}) == k
    assert all(row["actions"] == row["command"].upper() for row in drawn)


def test_the_examples_are_pinned():
    drawn = draw_shots(pin(k=3), "scan/length", training(1000), training(1000)["row_id"], TRANSLATE)
    assert [row["command"] for row in drawn] == ["command 557", "command 120", "command 948"]


@pytest.mark.parametrize("other", [{"seed": 1}, {"version": 2}])
def test_another_seed_or_version_draws_other_examples(other):
    rows = training(1000)
    first, fewer, others, elsewhere = (
        draw_shots(pin(**options), name, rows, rows["row_id"], TRANSLATE)
        for options, name in (
            ({"k": 8}, "scan/length"),
            ({"k": 3}, "scan/length"),
            ({"k": 8} | other, "scan/length"),
            ({"k": 8}, "scan/addprim_jump"),
        )
    )
    assert first[:3] == fewer
    assert first not in (others, elsewhere)


def test_an_example_carries_only_what_it_shows():
    drawn = draw_shots(pin(k=1, example="{actions}"), "scan/length", training(5), training(5)["row_id"], TRANSLATE)
    assert [set(row) for row in drawn] == [{"actions"}]


def test_more_examples_than_training_rows_are_refused():
    with pytest.raises(BadDefinition, match="3 examples are requested, and the training part of scan/length has 2"):
        draw_shots(pin(k=3), "scan/length", training(2), training(2)["row_id"], TRANSLATE)


def test_the_signature_changes_with_all_that_decides_a_prompt_or_how_it_is_read():
    shots = ({"text": "fine", "mood": 1},)
    first = Prompt(mood(k=1), SENTIMENT, shots)
    pins = [{"instruction": "Judge."}, {"separator": "\n"}, {"query": "{text}:"}, {"stop": ["\n"]}, {"version": 2}]
    pins.append({"extraction": {"name": "first_line", "version": 1}})
    others = [Prompt(mood(k=1, **pin), SENTIMENT, shots) for pin in pins]
    others.append(Prompt(mood(k=1), replace(SENTIMENT, names=("poor", "good")), shots))
    others.append(Prompt(mood(k=1), SENTIMENT, ({"text": "nice", "mood": 1},)))
    assert len({prompt.signature for prompt in [first, *others]}) == 9
    assert first.signature == Prompt(mood(k=1), SENTIMENT, ({"text": "fine", "mood": np.int64(1)},)).signature
    assert first.signature.startswith("prompt@1:")


def test_what_follows_a_stop_string_is_not_read():
    prompt = Prompt(pin(stop=["\n\n", "In:"]), TRANSLATE, ())
    assert prompt.read("WALK RUN\nIn: look") == "WALK RUN"
    assert prompt.read(" WALK \n\nOut: RUN") == "WALK"
    assert prompt.read("In: WALK") is None


@pytest.mark.parametrize(
    ("name", "version", "complaint"),
    [
        ("whle", 1, "no extraction named 'whle': did you mean whole"),  # codespell:ignore whle
        ("whole", 2, "whole@2 is required, but version 1 is installed"),
        ("class_name", 1, "class_name does not support sequence tasks"),
    ],
)
def test_an_extraction_that_is_not_there_or_not_for_the_task_is_refused_at_once(name, version, complaint):
    with pytest.raises(FarshiftError, match=complaint):
        Prompt(pin(extraction={"name": name, "version": version}), TRANSLATE, ())
