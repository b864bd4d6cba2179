"""Pictures and sounds in prompts: sent to an endpoint as its protocol has them, known by their digest, refused where a
model reads text alone."""

from __future__ import annotations

import base64
import io
import re

import farshift as fs
import numpy as np
import picture_split
import pytest
from encoded_files import column, picture, sound
from endpoint_cases import model
from farshift.benchmarks.adapters.openai_endpoint import from_spec
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.definition import PromptPin
from farshift.benchmarks.model import Task
from farshift.benchmarks.model_inputs.load import load_model_inputs
from farshift.benchmarks.prompting.prompt import Prompt
from farshift.core.errors import BadDefinition, ModelError
from llm_server import llm
from PIL import Image

TASK = Task("classification", ("image",), "kind", classes=2, names=("left", "right"))
SAID = {"query": "{image}\nWhich way?", "example": "{image}\n{kind}", "max_tokens": 4}
SAID |= {"extraction": {"name": "class_name", "version": 1}}


def prompt(shots=(), task=TASK, **said) -> Prompt:
    return Prompt(PromptPin.model_validate(SAID | said), task, shots)


@pytest.fixture(autouse=True)
def _right(server):
    server.answer = lambda text: "It is right."


def message(server, place: int = -1):
    return server.requests[place]["messages"][-1]["content"]


def test_a_picture_is_sent_as_a_data_uri_between_the_texts(server):
    file = picture(3)
    requested = prompt(instruction="Look.")
    assert model(server, 0, requested).predict({"image": column(file)}) == [1]
    uri = f"data:image/jpeg;base64,{base64.b64encode(file).decode()}"
    assert message(server) == [
        {"type": "text", "text": "Look.\n\n"},
        {"type": "image_url", "image_url": {"url": uri}},
        {"type": "text", "text": "\nWhich way?"},
    ]


def test_what_endpoints_do_not_take_is_sent_as_png(server):
    file = picture(3, "TIFF")
    model(server, 0, prompt()).predict({"image": column(file)})
    kind, _, content = message(server)[0]["image_url"]["url"].partition(";base64,")
    assert kind == "data:image/png"
    sent, given = (np.asarray(Image.open(io.BytesIO(item))) for item in (base64.b64decode(content), file))
    np.testing.assert_array_equal(sent, given)


def test_a_sound_is_sent_as_input_audio(server):
    model(server, 0, prompt()).predict({"image": column(sound(5))})
    assert message(server)[0] == {
        "type": "input_audio",
        "input_audio": {"data": base64.b64encode(sound(5)).decode(), "format": "wav"},
    }


def test_examples_show_their_pictures(server):
    shots = ({"image": picture(1), "kind": 0}, {"image": picture(2), "kind": 1})
    model(server, 0, prompt(shots)).predict({"image": column(picture(9))})
    kinds = [piece["type"] for piece in message(server)]
    assert kinds == ["image_url", "text"] * 3
    assert [piece["text"] for piece in message(server)[1::2]] == ["\nleft\n\n", "\nright\n\n", "\nWhich way?"]


def test_a_picture_is_paid_for_once_and_another_one_again(server):
    batch = {"image": column(picture(1), picture(2), picture(1))}
    assert model(server, 0, prompt()).predict(batch) == [1, 1, 1]
    assert len(server.requests) == 2
    assert model(server, 0, prompt()).predict(batch) == [1, 1, 1]
    assert len(server.requests) == 2
    model(server, 0, prompt()).predict({"image": column(picture(4))})
    assert len(server.requests) == 3


def test_other_examples_are_another_prompt():
    shots = [({"image": picture(number), "kind": 0},) for number in (1, 2)]
    signatures = {prompt(shot, separator=separator).signature for shot in shots for separator in ("", "\n\n")}
    assert len(signatures) == 4


def test_what_reads_text_alone_says_so(server):
    with pytest.raises(ModelError, match="only the chat API accepts"):
        model(server, 0, prompt(), api="completions").predict({"image": column(picture())})
    with pytest.raises(BadDefinition, match="has images or audio, which cannot be sent as text"):
        prompt().texts({"image": column(picture())})
    with pytest.raises(BadDefinition, match="is of bytes, which cannot be shown as text"):
        prompt().all_parts({"image": column(b"anything")})


def test_a_benchmark_of_pictures_asks_with_pictures(server, tmp_path, monkeypatch):
    photos = picture_split.split(tmp_path, monkeypatch, prompt=SAID | {"k": 1})
    (shot,) = load_model_inputs(photos).prompt.shots
    assert shot["image"].startswith(b"\x89PNG")
    run = fs.evaluate(from_spec(f"tiny@{server.url}", {}), on=photos, seeds=1, budget="quick")
    assert fs.score(run).ood.value == 0.5
    assert [piece["type"] for piece in message(server)] == ["image_url", "text"] * 2


@pytest.mark.parametrize(
    ("name", "says", "category"),
    [
        ("pacs/sketch_prompted", "A giraffe.", 2),
        ("vlcs/sun09", "chair", 2),
        ("terra_incognita/location_38", "The picture is empty.", 5),
        ("wilds_camelyon17/official", "Tumour", 1),
        ("wilds_fmow/official", "A parking lot or garage.", 35),
        ("office_home/art", "TV", 58),
        ("domain_net/real", "the mona lisa", 2),
    ],
)
def test_benchmarks_of_pictures_name_their_classes_and_read_an_answer(name, says, category, cache):
    benchmark = find_benchmark(name)
    task, pin = benchmark.task, benchmark.definition.prompt
    assert pin.k == 0
    assert all(re.search(rf"\b{re.escape(word)}\b", pin.instruction) for word in task.names)
    with llm(lambda text: says) as site:
        assert model(site, 0, Prompt(pin, task, ())).predict({"image": column(picture(1))}) == [category]
        assert [piece["type"] for piece in message(site)] == ["text", "image_url", "text"]
