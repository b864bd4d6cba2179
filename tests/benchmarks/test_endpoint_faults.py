"""What an endpoint can do wrong: one bad answer costs one row, a bad endpoint stops the run, and neither makes a number."""

from __future__ import annotations

import asyncio
import socket

import numpy as np
import pytest
from farshift import Failed
from farshift.benchmarks.adapters._endpoint_client import LONGEST_HOLD, RateLimiter
from farshift.benchmarks.adapters.openai_endpoint import EndpointModel, from_spec
from farshift.benchmarks.definition import PromptPin
from farshift.benchmarks.model import Task
from farshift.benchmarks.prompting.prompt import Prompt
from farshift.core.errors import ModelError
from hypothesis import given
from hypothesis import strategies as st
from llm_server import llm

TASK = Task("sequence", ("word",), "said")
PROMPT = Prompt(
    PromptPin.model_validate({"example": "", "query": "Say {word}", "extraction": {"name": "whole", "version": 1}}),
    TASK,
    (),
)
KEY = "secret-of-many-letters"


class Waits:
    """Waits for nothing, and remembers for how long it should have."""

    def __init__(self):
        self.seconds = []

    async def __call__(self, seconds):
        self.seconds.append(round(seconds, 1))
        await asyncio.sleep(0)


def words(*texts):
    return {"word": np.array(texts, object)}


def model(url, wait=asyncio.sleep, **options):
    return EndpointModel(from_spec(f"tiny@{url}", options), 0, PROMPT, wait)


@pytest.fixture
def server(cache, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with llm() as site:
        yield site


@pytest.mark.attack("host", "a model endpoint that redirects prompts and key to another server")
def test_prompts_and_key_go_to_no_other_place_that_an_endpoint_names(server):
    with llm() as other:
        server.faults_of = {"one": ["always", f"moved {other.url}/chat/completions"]}
        with pytest.raises(ModelError, match=f"has moved to {other.url}/chat/completions: give the new URL"):
            model(server.url).predict(words("one", "two"))
    assert other.requests == []


PASSING = ["500", "503", "408", "409", "reset", "half", "html", "empty", "shape", "number", "unicode", "error"]


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_costs_nothing(server, fault):
    waits = Waits()
    server.faults_of = {"one": [fault, fault]}
    requested = model(server.url, waits)
    assert requested.predict(words("one", "two")) == ["one", "two"]
    assert requested.remarks()["requests"] == 4
    assert waits.seconds == [0.5, 1.0]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("500", "status 500: no"),
        ("503 the backend is away", "status 503: the backend is away"),
        ("reset", "the connection broke"),
        ("half", "the response is not JSON"),
        ("html", "the response is not JSON"),
        ("empty", "the response has no valid entry in choices"),
        ("shape", "the response has no valid entry in choices"),
        ("number", "the response's content is not text"),
        ("unicode", "the response's content is not text"),
        ("error", "the response is an error message: the backend is away"),
    ],
)
def test_a_fault_that_stays_costs_its_row_alone(server, fault, reason):
    waits = Waits()
    server.faults_of = {"one": ["always", fault]}
    requested = model(server.url, waits, concurrency="1")
    assert requested.predict(words("zero", "one", "two")) == ["zero", Failed(reason), "two"]
    assert requested.remarks()["failed"] == 1
    assert waits.seconds == [0.5, 1.0, 2.0, 4.0, 8.0]


def test_a_response_that_comes_too_late_is_asked_for_again(server):
    server.faults_of = {"one": ["late"], "two": ["always", "late"]}
    requested = model(server.url, Waits(), timeout="1.5", retries="1")
    assert requested.predict(words("one", "two", "three")) == ["one", Failed("no response within 1.5 s"), "three"]


@pytest.mark.parametrize("fault", ["context", "window"])
def test_a_prompt_over_the_context_window_costs_its_row_and_no_second_try(server, fault):
    server.faults_of = {"long": ["always", fault]}
    requested = model(server.url)
    assert requested.predict(words("long", "short")) == [Failed("prompt over the context window"), "short"]
    assert requested.predict(words("long")) == [Failed("prompt over the context window")], "also where it is alone"
    assert len(server.requests) == 3


@pytest.mark.parametrize("fault", ["filter", "filtered"])
def test_a_content_filter_costs_its_row_and_no_second_try(server, fault):
    server.faults_of = {"rude": ["always", fault]}
    assert model(server.url).predict(words("rude", "kind")) == [Failed("refused by the content filter"), "kind"]
    assert len(server.requests) == 2


def test_an_answer_cut_off_is_read_if_it_can_be(server):
    server.faults_of = {"one": ["length"], "two": ["null"]}
    assert model(server.url).predict(words("one", "two")) == [
        "one",
        Failed("cut off at the token limit before an answer"),
    ]


def test_an_endpoint_that_asks_for_time_is_left_alone_for_so_long(server):
    server.faults = ["429 0.3"]
    assert model(server.url, concurrency="1", retries="0").predict(words("a", "b")) == ["a", "b"]
    assert server.times[1] - server.times[0] >= 0.3


def test_what_one_prompt_is_told_holds_for_all(server):
    server.faults_of = {"one": ["429 1.5"]}
    server.pause = 0.5
    model(server.url, concurrency="2").predict(words("one", "two", "three"))
    later = [moment - server.times[0] for moment in server.times[2:]]
    assert len(later) == 2
    assert min(later) >= 1.5


@pytest.mark.parametrize("fault", ["429", "429 200"])
def test_an_endpoint_that_will_not_take_so_many_requests_stops_the_run(server, fault):
    server.faults_of = {"one": ["always", fault]}
    waits = Waits()
    with pytest.raises(
        ModelError, match=r"^openai:tiny at http://.*/v1: status 429.*option.* requests_per_minute"
    ) as caught:
        model(server.url, waits, concurrency="1").predict(words("zero", "one", "two"))
    assert "\n" not in str(caught.value)
    assert sum(waits.seconds) <= LONGEST_HOLD


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("401", "answers 401: the key was rejected: set the variable that api_key_env names"),
        ("403", "answers 403: the key may not use this model"),
        (
            "404",
            r"answers 404: there is no such model or address: check the model's name and the URL \(most end in /v1\)",
        ),
        ("quota", "answers 429: the quota is spent"),
    ],
)
def test_what_no_further_try_can_mend_stops_the_run_at_once(server, fault, complaint):
    server.faults = [fault] * 50
    with pytest.raises(ModelError, match=f"^openai:tiny at http.*{complaint}"):
        model(server.url, concurrency="2").predict(words(*map(str, range(50))))
    assert len(server.requests) <= 4


def test_an_endpoint_that_is_down_stops_the_run_and_the_run_goes_on_when_it_is_up(server):
    names = [f"w{row}" for row in range(20)]
    assert model(server.url).predict(words(*names[:10])) == names[:10]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(
        ModelError, match=rf"^openai:tiny at http://127.0.0.1:{port}/v1: no connection .*check that it is running"
    ):
        model(f"http://127.0.0.1:{port}/v1", Waits()).predict(words(*names))
    before = len(server.requests)
    assert model(server.url).predict(words(*names)) == names
    assert len(server.requests) == before + 10


@pytest.mark.parametrize("fault", ["500", "reset", "html", "422 no such field: seed"])
def test_an_endpoint_that_answers_nobody_stops_the_run_early(server, fault):
    server.faults = [fault] * 2000
    with pytest.raises(
        ModelError, match=r"failed for every prompt of a batch \(.*\): check the URL and the options .* run again"
    ):
        model(server.url, Waits(), concurrency="2").predict(words(*map(str, range(300))))
    assert len(server.requests) < 40


def test_many_rows_are_lost_rather_than_the_run_where_others_are_answered_or_were_before(server):
    server.faults_of = {"bad": ["always", "500"]}
    names = ["good", *(f"bad {row}" for row in range(9))]
    expected = ["good", *[Failed("status 500: no")] * 9]
    assert model(server.url, Waits(), concurrency="1").predict(words(*names)) == expected
    assert model(server.url, Waits(), retries="0").predict(words(*names[::-1])) == expected[::-1]


def test_a_batch_of_which_no_row_is_answered_stops_the_run_however_small(server):
    server.faults = ["500"] * 2000
    with pytest.raises(ModelError, match="failed for every prompt of a batch"):
        model(server.url, Waits()).predict(words("a", "b"))


@pytest.mark.attack("host", "a model endpoint that repeats the key in its answers")
def test_a_key_that_the_endpoint_repeats_is_in_no_message(server):
    server.faults_of = {"one": ["always", "key"]}
    result = model(server.url).predict(words("one", "two"))
    assert result == [Failed("refused with status 400: not with Bearer ***"), "two"]
    with pytest.raises(ModelError, match=r"not with Bearer \*\*\*") as caught:
        model(server.url).predict(words("one"))
    assert KEY not in str(caught.value)


@given(st.floats(1, 6000), st.integers(1, 20))
def test_turns_come_at_their_pace(per_minute, turns):
    waits = []

    async def wait(seconds):
        waits.append(seconds)

    async def take():
        pace = RateLimiter(per_minute, wait)
        for _ in range(turns):
            await pace.wait_turn()

    asyncio.run(take())
    # Nothing is waited for, so the n-th turn is told to wait n intervals, less the little time that has passed.
    interval = 60 / per_minute
    assert len(waits) == turns - 1
    assert all(output == pytest.approx(number * interval, abs=0.5) for number, output in enumerate(waits, 1))
