"""A language model behind an OpenAI-compatible endpoint, queried with a benchmark's prompt: `openai:MODEL[@URL]`.

Requests are sent by the `openai` library, which tries again where that may help. Responses are untrusted input. They
are cached, keyed by all that determines them: each prompt is sent and paid for once, also by a run that was
interrupted.
"""

from __future__ import annotations

import asyncio
import base64
import io
import os
import re
from collections import Counter
from collections.abc import Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from ...core.canonical import compute_identity, to_canonical_json
from ...core.documents import parse_json, parse_messages
from ...core.errors import FarshiftError, MissingExtra, ModelError, Unavailable
from ...core.files import get_cache_root, is_offline, write_atomically
from ...core.progress import report_progress
from ...loaders.batching.images import open_image
from ...loaders.decoders.pillow import is_plain
from ..answers import Failed
from ..extraction import Prediction
from ..model import Columns, Task
from ..prompting.prompt import MediaPart, Part, Prompt, to_digest_form
from . import Options, read_options

if TYPE_CHECKING:
    import openai


SCHEME = "openai"

GIVES_UP_AFTER = 4
"""Failed prompts of a batch, before any success, after which the endpoint itself is taken to be at fault."""

_STOPS = {
    401: "the key was rejected: set the variable that api_key_env names (OPENAI_API_KEY by default)",
    402: "it requires payment",
    403: "the key may not use this model",
    404: "there is no such model or address: check the model's name and the URL (most end in /v1)",
    405: "the address does not accept these requests: check the URL (most end in /v1)",
}


def _split_names(text: object) -> object:
    return sorted({name.strip() for name in text.split(",")}) if isinstance(text, str) else text


class EndpointOptions(Options):
    """Values of `--option`.

    leave_out: comma-separated request fields that are not sent, for models that reject them. Without `stop` a model may
    write more, but its output is still cut at the first stop string.
    """

    api: Literal["chat", "completions"] = "chat"
    temperature: float = Field(0.0, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    leave_out: Annotated[tuple[Literal["seed", "stop", "temperature"], ...], BeforeValidator(_split_names)] = ()
    concurrency: int = Field(8, ge=1)
    timeout: float = Field(60, gt=0)
    retries: int = Field(5, ge=0)
    api_key_env: str = Field("OPENAI_API_KEY", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    system: str = ""


@dataclass(frozen=True)
class EndpointFactory:
    """Makes a model of an endpoint. `code` is a digest of all that determines its predictions, without secrets.

    own_url: whether the user gave the URL; such an endpoint may need no key.
    keeps_time: it has its own `timeout`, so that no time limit for a whole batch is needed.
    one_candidate: it is not trained, so there is nothing to select.
    """

    name: str
    url: str
    own_url: bool
    options: EndpointOptions
    keeps_time = True
    one_candidate = True

    @property
    def where(self) -> str:
        return f"openai:{self.name} at {self.url}"

    @property
    def code(self) -> str:
        return compute_identity(self.deciding)

    @cached_property
    def deciding(self) -> dict[str, Any]:
        """What determines the responses, besides the prompt and the seed."""
        named = ("api", "temperature", "top_p", "max_tokens", "leave_out", "system")
        return {"url": self.url, "model": self.name} | self.options.model_dump(include=set(named))

    def __call__(self, seed: int, task: Task, device: str, prompt: Prompt | None) -> EndpointModel:
        """Return a new model; the device has no effect. Raises `ModelError` if the benchmark has no prompt."""
        if prompt is None:
            raise ModelError(
                f"openai:{self.name} needs a benchmark with a prompt, and this one has none: "
                "add a table [prompt] to its definition, or choose another benchmark"
            )
        return EndpointModel(self, seed, prompt)

    def secret(self) -> str:
        """The key, read from the environment each time and stored nowhere; "none" for an endpoint without keys."""
        variable = self.options.api_key_env
        key = os.environ.get(variable, "").strip()
        if not key and (not self.own_url or "api_key_env" in self.options.model_fields_set):
            raise FarshiftError(
                f"openai:{self.name}: the variable with the key is not set: "
                "set OPENAI_API_KEY, or name another with the option api_key_env"
            )
        if not (key.isascii() and key.isprintable()):
            raise FarshiftError(f"openai:{self.name}: the key in {variable} has characters that a key cannot have")
        return key or "none"


def from_spec(rest: str, options: Mapping[str, str]) -> EndpointFactory:
    """Return the factory of `openai:MODEL` (at OPENAI_BASE_URL, or the library's default) or
    `openai:MODEL@http://host/v1`.

    Raises `FarshiftError` for an invalid option or URL, `MissingExtra` without the `openai` library.
    """
    read = read_options(EndpointOptions, SCHEME, options)
    if read.api == "completions" and read.system:
        raise FarshiftError("option system of openai: the api completions has no system message: put it in the prompt")
    try:
        import openai
    except ImportError as error:
        raise MissingExtra("an OpenAI-compatible endpoint", "llm") from error
    match = re.fullmatch(r"(.+?)(?:@(https?://.*))?", rest)
    if not match:
        raise FarshiftError(f"model openai:{rest}: write it as openai:MODEL or openai:MODEL@http://host:port/v1")
    given = match[2] or os.environ.get("OPENAI_BASE_URL", "")
    url = given or str(openai.AsyncOpenAI(api_key="none").base_url)
    return EndpointFactory(match[1], _check_url(url, match[1]), bool(given), read)


def _check_url(url: str, name: str) -> str:
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_complete = False
    # The URL appears in errors and digests, so it must not have a secret.
    if not is_complete or "@" in parts.netloc or parts.query or parts.fragment:
        raise FarshiftError(
            f"openai:{name}: its URL must be like http://host:port/v1, with no user, password or query: "
            "a key goes into the variable OPENAI_API_KEY"
        )
    return url.rstrip("/")


@dataclass(frozen=True)
class Response:
    """A model's response to one prompt: its text, why it stopped (as the endpoint names it) and the billed tokens."""

    text: str
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class MissingResponse:
    """A prompt without a response: the reason, and whether the endpoint rather than the prompt caused it."""

    reason: str
    by_endpoint: bool = True


class EndpointModel:
    """One model at one endpoint, queried with one seed."""

    def __init__(self, factory: EndpointFactory, seed: int, prompt: Prompt) -> None:
        self._factory, self._prompt = factory, prompt
        options = factory.options
        request = {
            "model": factory.name,
            "max_tokens": options.max_tokens or prompt.pin.max_tokens,
            "temperature": options.temperature,
            "top_p": options.top_p,
            "seed": seed,
            "stop": prompt.pin.stop or None,
        }
        sent = request.keys() - set(options.leave_out)
        self._request = {name: value for name, value in request.items() if name in sent and value is not None}
        self.farshift_outputs: list[str | None] = []
        self._limit_name = "max_tokens"
        self._counts: Counter[str] = Counter()

    def predict(self, batch: Columns) -> list[Prediction | Failed]:
        """Return a prediction per row, in order; `Failed` if the endpoint gave no response, or it could not be parsed.

        Equal prompts are sent once. Raises `ModelError` if the endpoint fails for all prompts; responses received
        before that are cached.
        """
        row_prompts = self._prompt.all_parts(batch)
        if self._factory.options.api == "completions" and any(
            isinstance(p, MediaPart) for row in row_prompts for p in row
        ):
            raise ModelError(
                f"{self._factory.where}: the prompt has images or audio, which only the chat API accepts: "
                "leave the option api out"
            )
        keys = [self._key(parts) for parts in row_prompts]
        prompts = dict(zip(keys, row_prompts, strict=True))
        responses: dict[str, Response | MissingResponse] = {}
        responses |= {key: cached for key in prompts if (cached := read_cached_response(key)) is not None}
        self._counts["cached"] += len(responses)
        if left := len(prompts) - len(responses):
            host = urlsplit(self._factory.url).hostname or ""
            if is_offline() and not (host in ("localhost", "::1") or host.startswith("127.")):
                raise Unavailable(
                    f"{self._factory.where}: {left} prompts of a batch are not in the cache, and FARSHIFT_OFFLINE "
                    "forbids sending them: unset it"
                )
            _run(self._ask(prompts, responses))
        for response in responses.values():
            if isinstance(response, Response):
                self._counts["prompt_tokens"] += response.prompt_tokens
                self._counts["completion_tokens"] += response.completion_tokens
        rows = [responses[key] for key in keys]
        self.farshift_outputs = [row.text if isinstance(row, Response) else None for row in rows]
        return [self._prediction(row) for row in rows]

    def remarks(self) -> dict[str, int]:
        """Usage for the run card: tokens (also of cached responses, as they were billed once), requests sent, prompts
        found in the cache, rows whose response could not be parsed, and rows without a response."""
        names = ("prompt_tokens", "completion_tokens", "requests", "cached", "extraction_failures", "failed")
        return {name: self._counts[name] for name in names}

    def _prediction(self, outcome: Response | MissingResponse) -> Prediction | Failed:
        if isinstance(outcome, MissingResponse):
            self._counts["failed"] += 1
            return Failed(outcome.reason)
        answer = self._prompt.read(outcome.text)
        if answer is not None:
            return answer
        self._counts["extraction_failures"] += 1
        cut = outcome.finish_reason == "length"
        return Failed("cut off at the token limit before an answer" if cut else "no answer could be read")

    def _key(self, parts: Sequence[Part]) -> str:
        prompt = {"prompt": self._prompt.signature, "text": to_digest_form(parts)}
        return compute_identity(self._factory.deciding | self._request | prompt)

    async def _ask(
        self, prompts: Mapping[str, Sequence[Part]], responses: dict[str, Response | MissingResponse]
    ) -> None:
        """Send the prompts without a response in `responses`, by key, and add the new responses to it."""
        import openai

        options, secret = self._factory.options, self._factory.secret()
        unanswered = [key for key in prompts if key not in responses]
        pending = iter(unanswered)

        async def count(_: object) -> None:
            self._counts["requests"] += 1

        async def work(create: Any) -> None:
            for key in pending:
                responses[key] = outcome = await self._send(create, secret, prompts[key], options.retries)
                if isinstance(outcome, Response):
                    await asyncio.to_thread(cache_response, key, outcome)
                else:
                    self._give_up_if_nobody_is_answered(responses.values(), len(prompts))
                report_progress(f"{self._factory.name}: prompts", len(responses), len(prompts))

        async with openai.AsyncOpenAI(
            api_key=secret,
            base_url=self._factory.url,
            timeout=openai.Timeout(options.timeout, connect=min(10.0, options.timeout / 2)),
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False, event_hooks={"request": [count]}),
            max_retries=options.retries,
        ) as client:
            endpoint = client.chat.completions if options.api == "chat" else client.completions
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(options.concurrency, len(unanswered))):
                        group.create_task(work(endpoint.with_raw_response.create))
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None

    def _give_up_if_nobody_is_answered(self, outcomes: Collection[Response | MissingResponse], prompts: int) -> None:
        lost = [outcome for outcome in outcomes if isinstance(outcome, MissingResponse) and outcome.by_endpoint]
        if len(lost) == len(outcomes) and len(lost) >= min(GIVES_UP_AFTER, prompts):
            raise ModelError(
                f"{self._factory.where} failed for every prompt of a batch ({lost[-1].reason}): "
                "check the URL and the options (leave_out, for a field that it rejects), then run again to resume"
            )

    async def _send(self, create: Any, secret: str, parts: Sequence[Part], tries: int) -> Response | MissingResponse:
        """Return the response to one prompt, or why there is none. create: sends one request and returns the raw
        response. secret: must not appear in any returned text or error. tries: how often more the prompt is sent where
        the body of the response cannot be read.

        Raises `ModelError` if no prompt would get a response: the key is rejected, the model does not exist, the quota
        is spent, there is no connection, or the endpoint refuses the rate of requests.
        """
        import openai

        options, where, limit = self._factory.options, self._factory.where, self._limit_name
        body = {limit if name == "max_tokens" else name: value for name, value in self._request.items()}
        content = make_content(parts)
        if options.api == "completions":
            body["prompt"] = content
        else:
            system = [{"role": "system", "content": options.system}] if options.system else []
            chat = parse_messages(content) if isinstance(content, str) else None
            body["messages"] = [*system, *(chat or [{"role": "user", "content": content}])]
        try:
            raw = await create(**body)
        except openai.APIStatusError as error:
            words = _read_error_words(error.body, secret)
            if limit == "max_tokens" and "unsupported" in words.lower() and "max_completion_tokens" in words:
                self._limit_name = "max_completion_tokens"  # newer OpenAI models accept the limit only by this name
                return await self._send(create, secret, parts, tries)
            return _explain_status(error, words, where, secret)
        except openai.APIConnectionError as error:
            if type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout"):
                reason = _clean(f"no connection ({error.__cause__})", secret)
                raise ModelError(f"{where}: {reason}: check that it is running and its URL, then run again") from None
            late = isinstance(error, openai.APITimeoutError)
            return MissingResponse(f"no response within {options.timeout:g} s" if late else "the connection broke")
        outcome = _read_response(raw.http_response.content, options.api, secret)
        if tries > 0 and isinstance(outcome, MissingResponse) and outcome.by_endpoint:  # a body that cannot be read
            return await self._send(create, secret, parts, tries - 1)
        return outcome


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; in a thread of its own if the caller runs an event loop already, as a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _explain_status(error: openai.APIStatusError, words: str, where: str, secret: str) -> MissingResponse:
    """Return or raise what an error status means for this prompt, or for all prompts."""
    status = error.status_code
    if status in _STOPS:
        raise ModelError(f"{where} answers {status}: {_STOPS[status]}") from None
    if 300 <= status < 400:
        location = _clean(error.response.headers.get("Location", ""), secret)  # redirects are not followed
        raise ModelError(f"{where} has moved{f' to {location}' * bool(location)}: give the new URL") from None
    if error.code == "insufficient_quota":
        raise ModelError(f"{where} answers {status}: the quota is spent: raise it and run again") from None
    problem = f"status {status}{': ' if words else ''}{words}"
    if status == 429:
        raise ModelError(f"{where}: {problem}: lower the option concurrency, or run again later") from None
    if status == 408 or status == 409 or status >= 500:
        return MissingResponse(problem)
    # By OpenAI's code, or the wording of common servers.
    over_window = error.code == "context_length_exceeded" or error.type == "exceed_context_size_error"
    if over_window or any(term in words.lower() for term in ("context length", "context window", "context size")):
        return MissingResponse("prompt over the context window", by_endpoint=False)
    if error.code in ("content_filter", "content_policy_violation"):
        return MissingResponse("refused by the content filter", by_endpoint=False)
    return MissingResponse(f"refused with {problem}")


def _read_error_words(body: object, secret: str) -> str:
    """Return the endpoint's own error message as one short line; empty if the body has none."""
    message = (body.get("message") or body.get("detail")) if isinstance(body, dict) else None
    return _clean(message, secret) if isinstance(message, str) else ""


def _clean(text: str, secret: str) -> str:
    """Return text of the endpoint as one short line for an error, without the key."""
    return " ".join(_hide(text, secret).split())[:200]


def _hide(text: str, secret: str) -> str:
    """Remove the key, which some endpoints repeat: errors are shown, and responses are stored and published."""
    # A key this short is a placeholder and may be a common word.
    return text.replace(secret, "***") if len(secret) >= 8 else text


def _read_response(content: bytes, api: str, secret: str) -> Response | MissingResponse:
    """Parse the response from an arbitrary body."""
    try:
        body = parse_json(content, surrogates=True)
    except ValueError:
        return MissingResponse("the response is not JSON")
    if error := body.get("error") if isinstance(body, dict) else None:
        message = error.get("message") if isinstance(error, dict) else error
        return MissingResponse(f"the response is an error message: {_clean(str(message), secret)}")
    try:
        choice = body["choices"][0]
        text = choice["message"]["content"] if api == "chat" else choice["text"]
        finish_reason = choice.get("finish_reason") or ""
    except (AttributeError, IndexError, KeyError, TypeError):
        return MissingResponse("the response has no valid entry in choices")
    if finish_reason == "content_filter":
        return MissingResponse("refused by the content filter", by_endpoint=False)
    if text is None:  # the model used up its tokens before its answer
        text = ""
    try:
        (text + finish_reason).encode()
    except (TypeError, AttributeError, UnicodeEncodeError):
        return MissingResponse("the response's content is not text")
    usage = body.get("usage")
    tokens = (usage.get(name) if isinstance(usage, dict) else 0 for name in ("prompt_tokens", "completion_tokens"))
    counts = [count if type(count) is int and count >= 0 else 0 for count in tokens]
    return Response(_hide(text, secret), _hide(finish_reason, secret), *counts)


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


def read_cached_response(key: str) -> Response | None:
    """Read the cached response of `key`; None if there is none, or if its file is damaged."""
    try:
        return Response(**parse_json(_get_cache_path(key).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def cache_response(key: str, response: Response) -> None:
    """Store a response atomically: another process sees all of it or nothing."""
    write_atomically(_get_cache_path(key), to_canonical_json(asdict(response)))


def _get_cache_path(key: str) -> Path:
    return get_cache_root() / "responses" / key[:2] / f"{key}.json"
