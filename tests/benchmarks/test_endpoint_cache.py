"""Kept responses: asked once, under a key of all that decides them, and never a secret or a broken one among them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from endpoint_cases import KEY, TASK, model, prompt, words
from farshift import Failed
from farshift.benchmarks.adapters.openai_endpoint import from_spec
from farshift.core.errors import ModelError
from llm_server import llm


def files(cache):
    return sorted(path for path in (cache / "responses").rglob("*") if path.is_file())


def test_a_response_is_asked_for_once(server, cache):
    assert model(server).predict(words("a", "b")) == ["a", "b"]
    server.answer = lambda text: "other"
    again = model(server)
    assert again.predict(words("b", "a", "c")) == ["b", "a", "other"]
    assert len(server.requests) == 3
    expected = {"prompt_tokens": 12, "completion_tokens": 3, "requests": 1, "cached": 2}
    assert again.remarks().items() >= expected.items()
    assert len(files(cache)) == 3


def test_a_cached_run_needs_neither_endpoint_nor_key(cache, monkeypatch):
    with llm() as site:
        model(site).predict(words("a"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    assert model(site, api_key_env="NOT_SET").predict(words("a")) == ["a"]


CHANGES = [
    *({name: value} for name, value in {"seed": 1, "name": "small", "temperature": "0.1", "top_p": "0.5"}.items()),
    *({name: value} for name, value in {"max_tokens": "5", "system": "Be brief.", "api": "completions"}.items()),
    {"leave_out": "temperature"},
    *({"asked_by": prompt(**pin)} for pin in ({"stop": ["x"]}, {"query": "Tell {word}"}, {"instruction": "Now."})),
    *({"asked_by": prompt(**pin)} for pin in ({"max_tokens": 5}, {"version": 2})),
    {"asked_by": replace(prompt(), task=replace(TASK, tokens="character"))},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_changing_any_one_thing_asks_again(server, change):
    model(server).predict(words("a"))
    model(server, **change).predict(words("a"))
    assert len(server.requests) == 2
    with llm(lambda text: "other") as other:
        assert model(other, **change).predict(words("a")) == ["other"], "another endpoint is asked itself"


@pytest.mark.parametrize("option", [{"concurrency": "1"}, {"retries": "0"}, {"timeout": "9"}])
def test_what_decides_no_response_asks_nothing_again(server, option):
    model(server).predict(words("a"))
    model(server, **option).predict(words("a"))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "fault", ["500", "html", "half", "empty", "shape", "number", "context", "filter", "filtered", "401"]
)
def test_only_good_responses_are_kept(server, cache, fault):
    server.faults_of = {"bad": ["always", fault]}
    requested = model(server, retries="0")
    try:
        assert isinstance(requested.predict(words("bad", "good"))[0], Failed)
    except ModelError:
        assert fault == "401"
    assert len(files(cache)) <= 1
    server.faults_of = {}
    assert requested.predict(words("bad", "good")) == ["bad", "good"]


def test_no_secret_is_in_the_cache_the_remarks_the_code_or_any_text_of_a_model(server, cache):
    server.faults_of = {"bad": ["key"], "again": ["echo"]}
    requested = model(server)
    result = requested.predict(words("a", "bad", "again"))
    assert result[2] == "as Bearer *** says"
    factory = from_spec(f"tiny@{server.url}", {})
    shown = [result, requested.remarks(), factory.code, factory, vars(requested), vars(factory)]
    assert KEY not in repr(shown)
    assert files(cache)
    assert not [path for path in files(cache) if KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("content", [b"", b'{"text": "the answ', b"[]", b'{"words": 1}', b"\xff"])
def test_a_damaged_file_is_no_response(server, cache, content):
    assert model(server).predict(words("a")) == ["a"]
    [path] = files(cache)
    path.write_bytes(content)
    assert model(server).predict(words("a")) == ["a"]
    assert len(server.requests) == 2
