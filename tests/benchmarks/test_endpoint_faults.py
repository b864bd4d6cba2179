"""What an endpoint can do wrong: one bad answer costs one row, a bad endpoint stops the run, and neither makes a number."""

from __future__ import annotations

import socket
from functools import partial

import pytest
from endpoint_cases import KEY, model, words
from farshift import Failed
from farshift.core.errors import ModelError
from llm_server import llm

ask = partial(model, retries="0")


@pytest.mark.attack("host", "a model endpoint that redirects prompts and key to another server")
def test_prompts_and_key_go_to_no_other_place_that_an_endpoint_names(server):
    with llm() as other:
        server.faults_of = {"one": ["always", f"moved {other.url}/chat/completions"]}
        with pytest.raises(ModelError, match=f"has moved to {other.url}/chat/completions: give the new URL"):
            ask(server).predict(words("one", "two"))
    assert other.requests == []


PASSING = ["500", "503", "408", "409", "429 0.2", "reset", "late"]
UNREAD = ["half", "html", "empty", "shape", "number", "unicode", "error"]


@pytest.mark.parametrize("fault", [*PASSING, *UNREAD])
def test_a_fault_that_passes_costs_nothing(server, fault):
    server.faults_of = {"one": [fault]}
    requested = model(server, retries="1", timeout="1.5")
    assert requested.predict(words("one", "two")) == ["one", "two"]
    assert requested.remarks()["requests"] == 3


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
    server.faults_of = {"one": ["always", fault]}
    requested = ask(server, concurrency="1")
    assert requested.predict(words("zero", "one", "two")) == ["zero", Failed(reason), "two"]
    assert requested.remarks()["failed"] == 1


def test_a_response_that_comes_too_late_costs_its_row_alone(server):
    server.faults_of = {"two": ["always", "late"]}
    requested = ask(server, timeout="1.5")
    assert requested.predict(words("one", "two", "three")) == ["one", Failed("no response within 1.5 s"), "three"]


REFUSED = {"context": "prompt over the context window", "window": "prompt over the context window"}
REFUSED |= {"filter": "refused by the content filter", "filtered": "refused by the content filter"}


@pytest.mark.parametrize(("fault", "reason"), REFUSED.items())
def test_a_prompt_that_is_refused_costs_its_row_and_no_second_try(server, fault, reason):
    server.faults_of = {"long": ["always", fault]}
    requested = ask(server)
    assert requested.predict(words("long", "short")) == [Failed(reason), "short"]
    assert requested.predict(words("long")) == [Failed(reason)], "also where it is alone"
    assert len(server.requests) == 3


def test_an_answer_cut_off_is_read_if_it_can_be(server):
    server.faults_of = {"one": ["length"], "two": ["null"]}
    cut = Failed("cut off at the token limit before an answer")
    assert ask(server).predict(words("one", "two")) == ["one", cut]


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("401", "answers 401: the key was rejected: set the variable that api_key_env names"),
        ("403", "answers 403: the key may not use this model"),
        ("404", r"answers 404: there is no such model or address: check .* \(most end in /v1\)"),
        ("quota", "answers 429: the quota is spent"),
        ("429", "status 429.*: lower the option concurrency"),
        ("429 200", "status 429.*: lower the option concurrency"),
    ],
)
def test_what_no_further_try_can_mend_stops_the_run_at_once(server, fault, complaint):
    server.faults_of = {"1": ["always", fault]}
    with pytest.raises(ModelError, match=f"^openai:tiny at http.*{complaint}"):
        ask(server, concurrency="2").predict(words(*map(str, range(50))))
    assert len(server.requests) <= 5


def test_an_endpoint_that_is_down_stops_the_run_and_the_run_goes_on_when_it_is_up(server):
    names = [f"w{row}" for row in range(20)]
    assert ask(server).predict(words(*names[:10])) == names[:10]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    away = f"http://127.0.0.1:{port}/v1"
    with pytest.raises(ModelError, match=f"^openai:tiny at {away}: no connection .*check that it is running"):
        ask(away).predict(words(*names))
    before = len(server.requests)
    assert ask(server).predict(words(*names)) == names
    assert len(server.requests) == before + 10


@pytest.mark.parametrize(
    ("fault", "rows"), [("500", 300), ("reset", 300), ("html", 300), ("422 no such field: seed", 300), ("500", 2)]
)
def test_an_endpoint_that_answers_nobody_stops_the_run_early(server, fault, rows):
    server.faults = [fault] * 2000
    with pytest.raises(ModelError, match=r"failed for every prompt of a batch \(.*\): check the URL .* run again"):
        ask(server, concurrency="2").predict(words(*map(str, range(rows))))
    assert len(server.requests) < 40


def test_many_rows_are_lost_rather_than_the_run_where_others_are_answered_or_were_before(server):
    server.faults_of = {"bad": ["always", "500"]}
    names = ["good", *(f"bad {row}" for row in range(9))]
    expected = ["good", *[Failed("status 500: no")] * 9]
    assert ask(server, concurrency="1").predict(words(*names)) == expected
    assert ask(server).predict(words(*names[::-1])) == expected[::-1]


@pytest.mark.attack("host", "a model endpoint that repeats the key in its answers")
def test_a_key_that_the_endpoint_repeats_is_in_no_message(server):
    server.faults_of = {"one": ["always", "key"]}
    result = ask(server).predict(words("one", "two"))
    assert result == [Failed("refused with status 400: not with Bearer ***"), "two"]
    with pytest.raises(ModelError, match=r"not with Bearer \*\*\*") as caught:
        ask(server).predict(words("one"))
    assert KEY not in str(caught.value)
