"""A language model behind an endpoint: what is sent, what is read, and that every row gets its own answer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time

import pytest
from endpoint_cases import TASK, model, prompt, words
from farshift import Failed, FarshiftError
from farshift.benchmarks.adapters.openai_endpoint import from_spec
from farshift.benchmarks.harness.factory import find_model
from farshift.core.errors import ModelError, Unavailable, UnknownName


def test_each_row_gets_its_own_answer_in_order_whoever_answers_first(server):
    server.faults_of = {"w3": ["500", "500"], "w5": ["429 0.2"], "w0 ": ["late"]}
    names = [f"w{row} " for row in range(40)]
    assert model(server, concurrency="16").predict(words(*names)) == [name.strip() for name in names]


def test_as_many_prompts_as_allowed_are_asked_at_once(server):
    server.pause = 0.1
    model(server, concurrency="4").predict(words(*"abcdefghij"))
    assert server.most_at_once == 4


def test_a_chat_request_says_what_the_prompt_and_the_options_say(server):
    pin = prompt(stop=["\n"], max_tokens=9)
    model(server, 3, pin, temperature="0.5", top_p="0.9", system="Be brief.").predict(words("hello"))
    assert server.requests == [
        {
            "model": "tiny",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Say it.\n\nWord: hello"},
            ],
            "temperature": 0.5,
            "top_p": 0.9,
            "max_tokens": 9,
            "seed": 3,
            "stop": ["\n"],
        }
    ]


def test_a_prompt_that_is_a_chat_is_sent_as_its_messages(server):
    chat = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "you"},
    ]
    bare = prompt(instruction="", query="{word}")
    requested = model(server, 0, bare, system="Be brief.")
    assert requested.predict(words(json.dumps(chat), "[1]", "[")) == ["you", "[1]", "["]
    sent = [request["messages"] for request in server.requests]
    system = {"role": "system", "content": "Be brief."}
    assert [system, *chat] in sent
    assert [system, {"role": "user", "content": "[1]"}] in sent


def test_a_completion_request_sends_the_prompt_as_it_is(server):
    assert model(server, api="completions", max_tokens="5").predict(words("hello")) == ["hello"]
    sent = {"model": "tiny", "prompt": "Say it.\n\nWord: hello", "max_tokens": 5, "seed": 0, "temperature": 0.0}
    assert server.requests == [sent]


def test_a_field_that_a_model_refuses_can_be_left_out(server):
    server.answer = lambda text: "hello\nWord: world"
    requested = model(server, asked_by=prompt(stop=["\n"]), leave_out="temperature, seed,stop")
    assert requested.predict(words("hello")) == ["hello"], "and the answer still ends where it should"
    assert sorted(server.requests[0]) == ["max_tokens", "messages", "model"]


def test_a_model_that_knows_the_token_limit_by_its_newer_name_is_asked_by_it(server):
    server.limit_name = "max_completion_tokens"
    assert model(server, concurrency="1").predict(words("a", "b", "c")) == ["a", "b", "c"]
    assert ["max_tokens" in request for request in server.requests] == [True, False, False, False]
    assert server.requests[-1]["max_completion_tokens"] == 7


def test_answers_are_read_by_the_prompts_extraction(server):
    server.answer = lambda text: "So. Answer: 5" if "five" in text else "well"
    requested = model(server, asked_by=prompt(extraction={"name": "after_marker", "version": 1}))
    assert requested.predict(words("five", "six")) == ["5", Failed("no answer could be read")]
    assert requested.remarks()["extraction_failures"] == 1


def test_remarks_add_up_tokens_requests_and_losses(server):
    server.faults_of = {"long": ["context"], "slow": ["500"]}
    requested = model(server)
    requested.predict(words("one", "two", "long", "slow"))
    requested.predict(words("one", "three"))
    # "Say it. Word: one" is four words, and every answer is one token.
    assert requested.remarks() == {
        "prompt_tokens": 5 * 4,
        "completion_tokens": 5,
        "requests": 6,
        "cached": 1,
        "extraction_failures": 0,
        "failed": 1,
    }


def test_a_model_can_be_asked_where_an_event_loop_runs_already(server):
    async def notebook():
        return model(server).predict(words("a"))

    assert asyncio.run(notebook()) == ["a"]


def test_an_interrupt_stops_at_once_and_what_was_answered_is_kept(server, cache):
    server.faults_of = {"slow": ["always", "late"]}
    requested = model(server, concurrency="4")

    def interrupt():
        while len(server.requests) < 4 or len(list((cache / "responses").rglob("*.json"))) < 2:
            time.sleep(0.01)  # until the fast answers are kept
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        requested.predict(words("a", "b", "slow 1", "slow 2"))
    assert server.at_once == 2, "the slow ones are still being answered"
    thread.join()
    server.faults_of = {}
    before = len(server.requests)
    assert requested.predict(words("a", "b", "slow 1", "slow 2")) == ["a", "b", "1", "2"]
    assert len(server.requests) == before + 2


def test_a_benchmark_without_a_prompt_is_one_clear_error(server):
    with pytest.raises(ModelError, match=r"openai:tiny needs a benchmark with a prompt, and this one has none"):
        from_spec(f"tiny@{server.url}", {})(0, TASK, "cpu", None)


def test_the_key_is_sent_and_the_placeholder_where_there_is_none(server, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-12345")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model(server, api_key_env="MY_KEY").predict(words("a"))
    model(server).predict(words("b"))
    assert server.keys == ["Bearer secret-12345", "Bearer none"]


def test_a_key_that_is_missing_or_broken_is_named_by_its_variable(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(FarshiftError, match="set OPENAI_API_KEY, or name another"):
        from_spec("gpt", {})(0, TASK, "cpu", prompt()).predict(words("a"))
    monkeypatch.setenv("MY_KEY", "sk-1\n2")
    with pytest.raises(FarshiftError, match="the key in MY_KEY has characters that a key cannot have$"):
        model(server, api_key_env="MY_KEY").predict(words("a"))
    assert not server.requests


def test_the_url_comes_from_the_environment_where_the_name_has_none(server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/")
    assert from_spec("tiny", {}).url == server.url
    assert from_spec("tiny", {})(0, TASK, "cpu", prompt()).predict(words("a")) == ["a"]
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert from_spec("tiny", {}).url.startswith("https://")


def test_a_models_name_may_hold_at_signs_and_slashes(server):
    factory, code = find_model(f"openai:@hf/team/tiny:7b@{server.url}")
    assert (factory.name, factory.url, factory.code) == ("@hf/team/tiny:7b", server.url, code)


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http://user:pass-word@host/v1",
        "http://host:99999/v1",
        "http://host/v1?key=pass-word",
        "http://[::1/v1",
    ],
)
def test_a_url_that_is_none_or_could_hold_a_secret_is_refused_without_being_repeated(url):
    with pytest.raises(FarshiftError, match=r"^(model )?openai:.*http://host:port/v1") as caught:
        from_spec(f"tiny@{url}", {})
    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("temperature", "warm", "option temperature of openai: Input should be a valid number"),
        ("temperature", "nan", "option temperature of openai"),
        ("temperature", "-1", "greater than or equal to 0"),
        ("concurrency", "0", "greater than or equal to 1"),
        ("api", "responses", "'chat' or 'completions'"),
        ("leave_out", "model", "'seed', 'stop' or 'temperature'"),
        ("api_key_env", "sk-not-a-name", "option api_key_env of openai: String should match pattern"),
    ],
)
def test_an_option_of_a_wrong_value_is_refused_without_being_repeated(option, value, complaint):
    with pytest.raises(FarshiftError, match=complaint) as caught:
        from_spec("tiny@http://host/v1", {option: value})
    assert "sk-not" not in str(caught.value)


def test_an_option_that_there_is_not_is_refused():
    with pytest.raises(UnknownName, match="no option of openai: named 'temprature': did you mean temperature"):
        from_spec("tiny@http://host/v1", {"temprature": "1"})  # codespell:ignore temprature
    with pytest.raises(FarshiftError, match="the api completions has no system message"):
        from_spec("tiny@http://host/v1", {"api": "completions", "system": "Be brief."})


def test_offline_only_the_cache_and_this_machine_are_asked(server, monkeypatch):
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    assert model(server).predict(words("a")) == ["a"]
    away = from_spec("tiny@http://192.0.2.1/v1", {})(0, TASK, "cpu", prompt())
    with pytest.raises(Unavailable, match=r"2 prompts of a batch are not in the cache, and FARSHIFT_OFFLINE"):
        away.predict(words("a", "b"))


def test_the_code_says_which_model_at_which_endpoint():
    codes = [from_spec(spec, {}).code for spec in ("tiny@http://h/v1", "small@http://h/v1", "tiny@http://other/v1")]
    assert len(set(codes)) == 3
    assert codes[0] == from_spec("tiny@http://h/v1/", {"temperature": "0"}).code
