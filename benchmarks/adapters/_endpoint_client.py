"""Requests to an OpenAI-compatible endpoint by the `openai` library, which tries again where that may help. Responses
are treated as untrusted input."""

from __future__ import annotations

import base64
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ...core.documents import parse_json
from ...core.errors import ModelError
from ...loaders.batching.images import open_image
from ...loaders.decoders._upright import is_plain
from ..prompting.prompt import MediaPart, Part
from ._responses import Response

if TYPE_CHECKING:
    import openai

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
    _limit_name: str = "max_tokens"

    async def ask(self, parts: Sequence[Part], tries: int = 0) -> Response | MissingResponse:
        """Return the response to one prompt, or why there is none. tries: how often more it is sent where the body of
        the response cannot be read.

        Raises `ModelError` if no prompt would get a response: the key is rejected, the model does not exist, the quota
        is spent, there is no connection, or the endpoint refuses the rate of requests.
        """
        import openai

        limit = self._limit_name
        try:
            raw = await self.create(**self._body(parts, limit))
        except openai.APIStatusError as error:
            words = self._words(error)
            if limit == "max_tokens" and "unsupported" in words.lower() and "max_completion_tokens" in words:
                # Newer OpenAI models accept the limit under this name only.
                self._limit_name = "max_completion_tokens"
                return await self.ask(parts, tries)
            return self._refused(error, words)
        except openai.APIConnectionError as error:
            if type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout"):
                raise ModelError(f"{self.where}: {self._clean(f'no connection ({error.__cause__})')}: {_UP}") from None
            late = isinstance(error, openai.APITimeoutError)
            reason = f"no response within {self.timeout:g} s" if late else "the connection broke"
            return MissingResponse(reason, by_endpoint=True)
        outcome = self._read(raw.http_response.content)
        if tries > 0 and isinstance(outcome, MissingResponse) and outcome.by_endpoint:  # a body that cannot be read
            return await self.ask(parts, tries - 1)
        return outcome

    def _body(self, parts: Sequence[Part], limit: str) -> dict[str, Any]:
        body = dict(self.request)
        body[limit] = body.pop("max_tokens")
        content = make_content(parts)
        if self.api == "completions":
            return body | {"prompt": content}
        system = [{"role": "system", "content": self.system}] if self.system else []
        return body | {"messages": [*system, {"role": "user", "content": content}]}

    def _refused(self, error: openai.APIStatusError, words: str) -> MissingResponse:
        """Return or raise what an error status means for this prompt, or for all prompts."""
        status = error.status_code
        if status in _STOPS:
            raise ModelError(f"{self.where} answers {status}: {_STOPS[status]}") from None
        if 300 <= status < 400:
            location = self._clean(error.response.headers.get("Location", ""))  # redirects are not followed
            raise ModelError(f"{self.where} has moved{f' to {location}' * bool(location)}: give the new URL") from None
        if error.code == "insufficient_quota":
            raise ModelError(f"{self.where} answers {status}: the quota is spent: raise it and run again") from None
        problem = f"status {status}{': ' if words else ''}{words}"
        if status == 429:
            raise ModelError(f"{self.where}: {problem}: {_SLOWER}") from None
        if status == 408 or status == 409 or status >= 500:
            return MissingResponse(problem, by_endpoint=True)
        if _is_over_context(error, words):
            return MissingResponse(CONTEXT, by_endpoint=False)
        if error.code in ("content_filter", "content_policy_violation"):
            return MissingResponse("refused by the content filter", by_endpoint=False)
        return MissingResponse(f"refused with {problem}", by_endpoint=True)

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
            return MissingResponse("the response is not JSON", by_endpoint=True)
        error = body.get("error") if isinstance(body, dict) else None
        if error:
            message = error.get("message") if isinstance(error, dict) else error
            reason = f"the response is an error message: {self._clean(str(message))}"
            return MissingResponse(reason, by_endpoint=True)
        try:
            choice = body["choices"][0]
            text = choice["message"]["content"] if self.api == "chat" else choice["text"]
            finish_reason = choice.get("finish_reason") or ""
        except (AttributeError, IndexError, KeyError, TypeError):
            return MissingResponse("the response has no valid entry in choices", by_endpoint=True)
        if finish_reason == "content_filter":
            return MissingResponse("refused by the content filter", by_endpoint=False)
        if text is None:  # the model used up its tokens before its answer
            text = ""
        if not isinstance(text, str) or not isinstance(finish_reason, str) or not _is_encodable(text + finish_reason):
            return MissingResponse("the response's content is not text", by_endpoint=True)
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


_KNOWN = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""Image types that endpoints accept. Other images are sent as PNG, as are those that an endpoint may decode differently
from Farshift (rotated by EXIF, or with 16 bits per channel)."""


def make_content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    """Return the content of a message. Images become data: URIs of the original files, or of PNG (see `_KNOWN`); audio
    becomes `input_audio`. Raises `BadImage` for an image that must be converted to PNG and cannot be decoded."""
    if all(isinstance(part, str) for part in parts):
        return "".join(str(part) for part in parts)
    return [{"type": "text", "text": part} if isinstance(part, str) else _encode_file(part) for part in parts]


def _encode_file(media: MediaPart) -> dict[str, Any]:
    kind, content = media.type, media.content
    if kind.startswith("audio/"):
        audio = {"data": base64.b64encode(content).decode(), "format": kind.removeprefix("audio/")}
        return {"type": "input_audio", "input_audio": audio}
    if kind not in _KNOWN or not is_plain(content):
        out = io.BytesIO()
        open_image([content], 0).save(out, "PNG")
        kind, content = "image/png", out.getvalue()
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{base64.b64encode(content).decode()}"}}
