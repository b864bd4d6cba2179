"""One request to an OpenAI-compatible endpoint: rate-limited, retried if that may help, with the response treated as
untrusted input."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ...core.errors import ModelError
from ...core.retry import compute_backoff, is_retryable, parse_retry_after
from ._responses import Response

if TYPE_CHECKING:
    import openai

Content = str | list[dict[str, Any]]
Wait = Callable[[float], Awaitable[None]]

LONGEST_HOLD = 300.0
"""Seconds that an endpoint may ask a prompt to wait, in all. Such waits are no failed tries."""

CONTEXT = "prompt over the context window"

_STOPS = {
    401: "the key is refused: set the variable that api_key_env names (OPENAI_API_KEY by default)",
    402: "it asks for payment first",
    403: "the key may not use this model",
    404: "there is no such model or address: check the model's name and the URL (most end in /v1)",
    405: "the address does not take such requests: check the URL (most end in /v1)",
}

_UP = "check that it is up and the URL is right, then run again"
_SLOWER = "send it less at a time (options requests_per_minute and concurrency), or run again later"


@dataclass(frozen=True)
class MissingResponse:
    """A prompt that got no response: why, and whether it is the endpoint's doing rather than the prompt's."""

    reason: str
    by_endpoint: bool


class _RetryableError(Exception):
    """A try that failed in a way that another try may not.

    hold: seconds that the endpoint asks to be left alone. advice: what to do if it lasts, where it then concerns every
    prompt and not this one alone.
    """

    def __init__(self, reason: str, hold: float = 0.0, advice: str = "") -> None:
        super().__init__(reason)
        self.reason, self.hold, self.advice = reason, hold, advice


class RateLimiter:
    """When the next request may be sent: a given number a minute, and none while the endpoint asks to be left alone."""

    def __init__(self, per_minute: float | None, wait: Wait) -> None:
        self._interval = 60 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._wait = wait

    async def wait_turn(self) -> None:
        """Return when it is the caller's turn; turns are given in the order in which they were asked for."""
        now = time.monotonic()
        send_time = max(now, self._next)
        self._next = send_time + self._interval
        if send_time > now:
            await self._wait(send_time - now)

    def hold(self, seconds: float) -> None:
        """Give no turn before `seconds` have passed."""
        self._next = max(self._next, time.monotonic() + seconds)


@dataclass
class EndpointClient:
    """Asks one model at one endpoint.

    create: sends one request and gives back the raw response (`with_raw_response.create` of the `openai` library).
    request: the request's fields, all but the prompt; the model's name and the token limit `max_tokens` among them.
    secret: never to appear in any text that this gives or raises.
    """

    create: Callable[..., Awaitable[Any]]
    api: Literal["chat", "completions"]
    request: Mapping[str, Any]
    system: str
    where: str
    secret: str = field(repr=False)
    timeout: float
    retries: int
    pace: RateLimiter
    wait: Wait
    sent: int = 0
    _limit_name: str = "max_tokens"

    async def ask(self, text: Content) -> Response | MissingResponse:
        """The response to one prompt, or why there is none. text: what a message contains; for `completions` a str.

        Raises `ModelError` where no prompt would get one: a refused key, no such model, a quota spent, no connection at
        all, more requests than the endpoint will take.
        """
        failed, hold_seconds = 0, 0.0
        while True:
            await self.pace.wait_turn()
            try:
                return await self._try(text)
            except _RetryableError as error:
                trouble = error
            if trouble.hold:
                hold_seconds += max(trouble.hold, 1.0)  # so that even the shortest waits come to an end
                if hold_seconds > LONGEST_HOLD:
                    raise ModelError(
                        f"{self.where}: {trouble.reason}, and asks to wait {hold_seconds:.0f} s: {_SLOWER}"
                    )
                self.pace.hold(trouble.hold)
                continue
            failed += 1
            if failed > self.retries:
                break
            await self.wait(compute_backoff(failed))
        if trouble.advice:
            raise ModelError(f"{self.where}: {trouble.reason}: {trouble.advice}")
        return MissingResponse(trouble.reason, by_endpoint=True)

    async def _try(self, text: Content) -> Response | MissingResponse:
        import openai

        limit = self._limit_name
        try:
            self.sent += 1
            async with asyncio.timeout(self.timeout):
                raw = await self.create(**self._body(text, limit))
        except TimeoutError:
            raise self._late() from None
        except openai.APIStatusError as error:
            words = self._words(error)
            if limit == "max_tokens" and "unsupported" in words.lower() and "max_completion_tokens" in words:
                # Newer models of the protocol's author know the limit under this name alone.
                self._limit_name = "max_completion_tokens"
                return await self._try(text)
            return self._refused(error, words)
        except openai.APIConnectionError as error:
            if type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout"):
                raise _RetryableError(self._clean(f"no connection ({error.__cause__})"), advice=_UP) from None
            if isinstance(error, openai.APITimeoutError):
                raise self._late() from None
            raise _RetryableError("the connection broke") from None
        return self._read(raw.http_response.content)

    def _body(self, text: Content, limit: str) -> dict[str, Any]:
        body = dict(self.request)
        body[limit] = body.pop("max_tokens")
        if self.api == "completions":
            return body | {"prompt": text}
        system = [{"role": "system", "content": self.system}] if self.system else []
        return body | {"messages": [*system, {"role": "user", "content": text}]}

    def _late(self) -> _RetryableError:
        return _RetryableError(f"no response within {self.timeout:g} s")

    def _refused(self, error: openai.APIStatusError, words: str) -> MissingResponse:
        """What a status other than success means for this prompt, or for all."""
        status = error.status_code
        if status in _STOPS:
            raise ModelError(f"{self.where} answers {status}: {_STOPS[status]}") from None
        if 300 <= status < 400:
            raise ModelError(f"{self.where} has moved{self._elsewhere(error)}: give the URL that is meant") from None
        if error.code == "insufficient_quota":
            raise ModelError(f"{self.where} answers {status}: the quota is spent: raise it, then run again") from None
        problem = f"status {status}{': ' if words else ''}{words}"
        if is_retryable(status) or status == 409:  # which endpoints answer to a request that met another one
            hold = parse_retry_after(error.response.headers.get("Retry-After")) or 0.0
            raise _RetryableError(problem, hold, advice=_SLOWER if status == 429 else "") from None
        if _is_over_context(error, words):
            return MissingResponse(CONTEXT, by_endpoint=False)
        if error.code in ("content_filter", "content_policy_violation"):
            return MissingResponse("refused by the content filter", by_endpoint=False)
        return MissingResponse(f"refused with {problem}", by_endpoint=True)

    def _elsewhere(self, error: openai.APIStatusError) -> str:
        """Where an endpoint sends its askers, who do not follow: prompts and key are for the URL that was given."""
        location = self._clean(error.response.headers.get("Location", ""))
        return f" to {location}" if location else ""

    def _words(self, error: openai.APIStatusError) -> str:
        """What the endpoint itself says of an error, in one short line; a body that is no such message says nothing."""
        body = error.body
        message = (body.get("message") or body.get("detail")) if isinstance(body, dict) else None
        return self._clean(message) if isinstance(message, str) else ""

    def _clean(self, text: str) -> str:
        return " ".join(self._hidden(text).split())[:200]

    def _hidden(self, text: str) -> str:
        """A text without the key, which some endpoints repeat: errors are shown, answers are kept and published."""
        # One this short is a placeholder, and may be a common word.
        return text.replace(self.secret, "***") if len(self.secret) >= 8 else text

    def _read(self, content: bytes) -> Response | MissingResponse:
        """The response in a body that may be anything."""
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            raise _RetryableError("the response is not JSON") from None
        error = body.get("error") if isinstance(body, dict) else None
        if error:
            message = error.get("message") if isinstance(error, dict) else error
            raise _RetryableError(f"the response is an error: {self._clean(str(message))}")
        try:
            choice = body["choices"][0]
            text = choice["message"]["content"] if self.api == "chat" else choice["text"]
            finish_reason = choice.get("finish_reason") or ""
        except (AttributeError, IndexError, KeyError, TypeError):
            raise _RetryableError("the response holds no choice of the protocol's shape") from None
        if finish_reason == "content_filter":
            return MissingResponse("refused by the content filter", by_endpoint=False)
        if text is None:  # a model that spent its tokens before it said anything
            text = ""
        if not isinstance(text, str) or not isinstance(finish_reason, str) or not _is_encodable(text + finish_reason):
            raise _RetryableError("the response holds something that is not text")
        usage = body.get("usage")
        text, finish_reason = self._hidden(text), self._hidden(finish_reason)
        return Response(
            text,
            finish_reason,
            _read_token_count(usage, "prompt_tokens"),
            _read_token_count(usage, "completion_tokens"),
        )


def _is_over_context(error: openai.APIStatusError, words: str) -> bool:
    """The protocol's code for it, and what widely used servers say instead."""
    if error.code == "context_length_exceeded" or error.type == "exceed_context_size_error":
        return True
    return any(term in words.lower() for term in ("context length", "context window", "context size"))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_token_count(usage: object, name: str) -> int:
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else 0
