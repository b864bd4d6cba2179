"""Requests to an OpenAI-compatible endpoint: rate-limited, retried where that may help. The response is treated as
untrusted input."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ...core.documents import parse_json
from ...core.errors import ModelError
from ...core.retry import compute_backoff, is_retryable, parse_retry_after
from ._responses import Response

if TYPE_CHECKING:
    import openai

Content = str | list[dict[str, Any]]
Wait = Callable[[float], Awaitable[None]]

LONGEST_HOLD = 300.0
"""Seconds in all for which an endpoint may postpone a prompt. These waits do not count as failed attempts."""

CONTEXT = "prompt over the context window"

_STOPS = {
    401: "the key was rejected: set the variable that api_key_env names (OPENAI_API_KEY by default)",
    402: "it requires payment",
    403: "the key may not use this model",
    404: "there is no such model or address: check the model's name and the URL (most end in /v1)",
    405: "the address does not accept these requests: check the URL (most end in /v1)",
}

_UP = "check that it is running and that the URL is right, then run again"
_SLOWER = "send fewer requests at a time (options requests_per_minute and concurrency), or run again later"


@dataclass(frozen=True)
class MissingResponse:
    """A prompt without a response: the reason, and whether the endpoint rather than the prompt caused it."""

    reason: str
    by_endpoint: bool


class _RetryableError(Exception):
    """A failed attempt that may succeed when repeated.

    hold: seconds that the endpoint asks to wait. advice: what to do if it keeps failing, where the failure concerns
    all prompts and not only this one.
    """

    def __init__(self, reason: str, hold: float = 0.0, advice: str = "") -> None:
        super().__init__(reason)
        self.reason, self.hold, self.advice = reason, hold, advice


class RateLimiter:
    """Decides when the next request may be sent: a maximum per minute, and none while the endpoint asks to wait."""

    def __init__(self, per_minute: float | None, wait: Wait) -> None:
        self._interval = 60 / per_minute if per_minute else 0.0
        self._next = 0.0
        self._wait = wait

    async def wait_turn(self) -> None:
        """Return when the caller may send, in the order of the calls."""
        now = time.monotonic()
        send_time = max(now, self._next)
        self._next = send_time + self._interval
        if send_time > now:
            await self._wait(send_time - now)

    def hold(self, seconds: float) -> None:
        """Send no request for `seconds`."""
        self._next = max(self._next, time.monotonic() + seconds)


@dataclass
class EndpointClient:
    """Sends requests to one model at one endpoint.

    create: sends one request and returns the raw response (`with_raw_response.create` of the `openai` library).
    request: the request's fields without the prompt, with the model's name and the token limit `max_tokens`.
    secret: must not appear in any returned text or error.
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
        """Return the response to one prompt, or why there is none. text: content of a message; a str for `completions`.

        Raises `ModelError` if no prompt would get a response: the key is rejected, the model does not exist, the quota
        is spent, there is no connection, or the endpoint refuses the rate of requests.
        """
        failed, hold_seconds = 0, 0.0
        while True:
            await self.pace.wait_turn()
            try:
                return await self._try(text)
            except _RetryableError as error:
                trouble = error
            if trouble.hold:
                hold_seconds += max(trouble.hold, 1.0)  # so that a series of short waits ends
                if hold_seconds > LONGEST_HOLD:
                    raise ModelError(
                        f"{self.where}: {trouble.reason}, and asks to wait {hold_seconds:.0f} s in total: {_SLOWER}"
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
                # Newer OpenAI models accept the limit under this name only.
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
        """Return or raise what an error status means for this prompt, or for all prompts."""
        status = error.status_code
        if status in _STOPS:
            raise ModelError(f"{self.where} answers {status}: {_STOPS[status]}") from None
        if 300 <= status < 400:
            raise ModelError(f"{self.where} has moved{self._elsewhere(error)}: give the new URL") from None
        if error.code == "insufficient_quota":
            raise ModelError(f"{self.where} answers {status}: the quota is spent: raise it and run again") from None
        problem = f"status {status}{': ' if words else ''}{words}"
        if is_retryable(status) or status == 409:  # returned for conflicting requests
            hold = parse_retry_after(error.response.headers.get("Retry-After")) or 0.0
            raise _RetryableError(problem, hold, advice=_SLOWER if status == 429 else "") from None
        if _is_over_context(error, words):
            return MissingResponse(CONTEXT, by_endpoint=False)
        if error.code in ("content_filter", "content_policy_violation"):
            return MissingResponse("refused by the content filter", by_endpoint=False)
        return MissingResponse(f"refused with {problem}", by_endpoint=True)

    def _elsewhere(self, error: openai.APIStatusError) -> str:
        """Return where an endpoint redirects to. Redirects are not followed."""
        location = self._clean(error.response.headers.get("Location", ""))
        return f" to {location}" if location else ""

    def _words(self, error: openai.APIStatusError) -> str:
        """Return the endpoint's own error message as one short line; empty if the body has none."""
        body = error.body
        message = (body.get("message") or body.get("detail")) if isinstance(body, dict) else None
        return self._clean(message) if isinstance(message, str) else ""

    def _clean(self, text: str) -> str:
        return " ".join(self._hidden(text).split())[:200]

    def _hidden(self, text: str) -> str:
        """Remove the key, which some endpoints repeat: errors are shown, and responses are stored and published."""
        # A key this short is a placeholder and may be a common word.
        return text.replace(self.secret, "***") if len(self.secret) >= 8 else text

    def _read(self, content: bytes) -> Response | MissingResponse:
        """Parse the response from an arbitrary body."""
        try:
            body = parse_json(content, surrogates=True)
        except ValueError:
            raise _RetryableError("the response is not JSON") from None
        error = body.get("error") if isinstance(body, dict) else None
        if error:
            message = error.get("message") if isinstance(error, dict) else error
            raise _RetryableError(f"the response is an error message: {self._clean(str(message))}")
        try:
            choice = body["choices"][0]
            text = choice["message"]["content"] if self.api == "chat" else choice["text"]
            finish_reason = choice.get("finish_reason") or ""
        except (AttributeError, IndexError, KeyError, TypeError):
            raise _RetryableError("the response has no valid entry in choices") from None
        if finish_reason == "content_filter":
            return MissingResponse("refused by the content filter", by_endpoint=False)
        if text is None:  # the model used up its tokens before its answer
            text = ""
        if not isinstance(text, str) or not isinstance(finish_reason, str) or not _is_encodable(text + finish_reason):
            raise _RetryableError("the response's content is not text")
        usage = body.get("usage")
        text, finish_reason = self._hidden(text), self._hidden(finish_reason)
        return Response(
            text,
            finish_reason,
            _read_token_count(usage, "prompt_tokens"),
            _read_token_count(usage, "completion_tokens"),
        )


def _is_over_context(error: openai.APIStatusError, words: str) -> bool:
    """Whether an error is a context overflow, by the OpenAI code or the wording of common servers."""
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
