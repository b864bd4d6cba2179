"""A small real language model server on loopback: the OpenAI protocol, and the faults that real ones have."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import listening


def last_word(prompt: str) -> str:
    return prompt.split()[-1]


@dataclass
class Llm:
    """What the server says, and what it was asked.

    answer: from the text of a prompt to the model's. `faults` are those of the next requests, in order; `faults_of` has
    for a text in a prompt those of the next requests that hold it, "always" in front for all of them.

    Faults: a status ("500", "503 at last", any words behind it), "429 0.2" (Retry-After), "context" and "window" (over
    the context window, as two servers say it), "filter" (of prompts), "filtered" (of responses), "quota", "key" (a
    refusal that repeats the key), "echo" (an answer that repeats it), "moved URL" (a redirect), "reset" (half the body, then the connection breaks), "half" (half the body, of a
    length that says so), "html", "empty", "shape", "null", "number", "unicode", "error" (with status 200), "length" (cut
    off), "late" (after four seconds).
    """

    answer: Callable[[str], str] = last_word
    faults: list[str] = field(default_factory=list)
    faults_of: dict[str, list[str]] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    pause: float = 0.0
    limit_name: str = "max_tokens"
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next_fault(self, prompt: str) -> str:
        for text, faults in self.faults_of.items():
            if text in prompt and faults:
                return faults[1] if faults[0] == "always" else faults.pop(0)
        return self.faults.pop(0) if self.faults else ""

    @property
    def prompts(self) -> list[str]:
        """The prompts that were asked, in the order of asking."""
        return [prompt_of(request) for request in self.requests]


def prompt_of(request: dict[str, Any]) -> str:
    """The text of a request; of a message in pieces, that of its texts."""
    output = request["prompt"] if "prompt" in request else request["messages"][-1]["content"]
    return output if isinstance(output, str) else "".join(piece.get("text", "") for piece in output)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: else each answer waits for the client's delayed acknowledgement
    llm: Llm

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        llm = self.llm
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = prompt_of(request)
        with llm.lock:
            llm.requests.append(request)
            llm.keys.append(self.headers.get("Authorization", ""))
            llm.times.append(time.monotonic())
            llm.at_once += 1
            llm.most_at_once = max(llm.most_at_once, llm.at_once)
            fault = llm.next_fault(prompt)
        try:
            time.sleep(llm.pause)
            self._answer(request, prompt, fault)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with llm.lock:
                llm.at_once -= 1

    def _answer(self, request: dict[str, Any], prompt: str, fault: str) -> None:
        name, _, rest = fault.partition(" ")
        if name == "moved":
            return self._send(307, {}, {"Location": rest})
        if name.isdigit():
            headers = {"Retry-After": rest} if name == "429" and rest else {}
            return self._send(int(name), {"error": {"message": rest or "no", "code": None}}, headers)
        if self.llm.limit_name not in request:
            words = f"Unsupported parameter. Use '{self.llm.limit_name}' instead."
            return self._send(400, {"error": {"message": words, "code": "unsupported_parameter"}})
        refusals = {
            "context": (400, {"message": "too long", "code": "context_length_exceeded"}),
            "window": (400, {"message": "This model's maximum context length is 8 tokens", "code": 400}),
            "filter": (400, {"message": "no", "code": "content_filter"}),
            "quota": (429, {"message": "You exceeded your quota", "code": "insufficient_quota"}),
            "key": (400, {"message": f"not with {self.headers.get('Authorization')}", "code": None}),
        }
        if name in refusals:
            status, error = refusals[name]
            return self._send(status, {"error": error})
        if name == "late":
            time.sleep(4)
        body = self._said(request, prompt, name)
        if name in ("html", "half", "reset"):
            content = json.dumps(body).encode()
            content = b"<html>hello</html>" if name == "html" else content[: len(content) // 2]
            return self._raw(200, content, promised=len(content) * (2 if name == "reset" else 1))
        return self._send(200, body)

    def _said(self, request: dict[str, Any], prompt: str, fault: str) -> Any:
        special = {
            "null": None,
            "number": 5,
            "unicode": "\ud800",
            "echo": f"as {self.headers.get('Authorization')} says",
        }
        answer: Any = special.get(fault, self.llm.answer(prompt))
        reasons = {"length": "length", "null": "length", "filtered": "content_filter"}
        choice = {"index": 0, "finish_reason": reasons.get(fault, "stop")}
        chat = "messages" in request
        choice |= {"message": {"role": "assistant", "content": answer}} if chat else {"text": answer}
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": 1}
        if fault == "error":
            return {"error": {"message": "the backend is away"}}
        if fault == "shape":
            return {"choices": {"text": answer}}
        return {"id": "x", "object": "y", "choices": [] if fault == "empty" else [choice], "usage": usage}

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self._raw(status, json.dumps(body).encode(), headers)

    def _raw(self, status: int, content: bytes, headers: dict[str, str] | None = None, promised: int = 0) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(promised or len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()
        if promised > len(content):
            self.close_connection = True
            self.connection.close()


@contextmanager
def llm(answer: Callable[[str], str] = last_word) -> Iterator[Llm]:
    """A server for the length of a context: `with llm() as server`, at `server.url`."""
    site = Llm(answer)
    with listening(_Handler, llm=site) as address:
        site.url = f"{address}/v1"
        yield site
