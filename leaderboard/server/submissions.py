"""Submissions: acknowledged when the file and its place in the queue are on the disk. Their state is available under
an unguessable id."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any, BinaryIO

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from ...core.errors import FarshiftError, SubmissionRejected
from ...core.files import BOARD_ADVICE, translate_os_errors
from ..board import Board
from ..sealed.window import find_window, get_utc_time, make_answers_owner, require_open
from ..settings import ServerSettings, read_board_settings
from .accounts import HTTPProblem, Sender, identify_sender
from .files import ID, UploadFiles, lock_arriving, measure_arriving
from .queue import ENDED, FAILED, REFUSED, Job, Queue

router = APIRouter(tags=["submit"])

ZIP = "application/zip"
_POLL = 1
"""Retry-After in seconds for a job that has not ended."""
_BLOCK = 1 << 18
_DISCARDED, _DISCARDING = 16 << 20, 5.0
"""At most so many bytes and seconds of a refused body are read."""

Authorisation = Annotated[str, Header(alias="Authorization", description="Bearer <token>")]
Digest = Annotated[str, Header(alias="Content-Digest", description="RFC 9530: sha-256=:<base64>:")]

_BODY = {"requestBody": {"required": True, "content": {ZIP: {"schema": {"type": "string", "format": "binary"}}}}}
_PROBLEM = {
    "type": "object",
    "required": ["error", "status"],
    "properties": {name: {"type": "string"} for name in ("error", "detail", "title")} | {"status": {"type": "integer"}},
}


def _describe_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe a route's refusals for the OpenAPI document."""
    content = {"application/problem+json": {"schema": _PROBLEM}}
    return {status: {"description": "Refused: `error` says why.", "content": content} for status in statuses}


@dataclass
class State:
    """The state of a server that accepts submissions. queue, files: submissions that are not entered yet. settings:
    `[server]` of the board's settings.toml. locking: the threads that wait for the board's lock."""

    board: Board
    queue: Queue
    files: UploadFiles
    settings: ServerSettings
    locking: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(2))


def open_state(board: Board) -> State:
    """Open the server state of a board."""
    settings = read_board_settings(board.path).server
    return State(board, Queue(board.ledger.store, settings), UploadFiles(board), settings)


@router.post(
    "/submissions",
    status_code=202,
    response_class=Response,
    responses=_describe_problems(400, 401, 404, 408, 409, 413, 415, 429, 503, 507)
    | {200: {"description": "Already known."}},
    openapi_extra=_BODY,
)
async def hand_in(
    request: Request,
    bearer: Authorisation = "",
    content_digest: Digest = "",
    window: Annotated[str, Query(description="The sealed window that it answers, signed by the team's key.")] = "",
) -> Response:
    """Submit the zip in the request's body. Returns 202 with the address of its state: `queued`, `running`, `entered`,
    `refused`, or `failed`. The same bytes are the same submission. What arrives before a sealed window closes counts,
    also if it is checked later."""

    state: State = request.app.state.intake
    try:
        sender = await run_in_threadpool(_identify, state, request, bearer)
        name = ""
        if window:
            name = (await run_in_threadpool(lambda: find_window(state.board.ledger.records(), window))).name
            sender = replace(sender, owner=make_answers_owner(name, sender.owner))
        async with _receive_body(request, state, sender, content_digest) as (id, digest, size):
            arrived = get_utc_time()
            await run_in_threadpool(state.files.finish, id)
            given, limiter = (state, sender, id, digest, size), state.locking if window else None
            job, new = await to_thread.run_sync(_enqueue, *given, name, arrived, limiter=limiter)
        return _make_response(202 if new else 200, job.record(), {"Location": f"submissions/{job.id}"})
    except FarshiftError as error:
        slow = isinstance(error, HTTPProblem) and error.status == 408
        if not slow and "expect" not in request.headers:
            await _drain(request)
        raise


def _enqueue(
    state: State, sender: Sender, id: str, digest: str, size: int, window: str, arrived: datetime
) -> tuple[Job, bool]:
    """Queue a submission. Of answers to a window, which is not closed meanwhile, the time of arrival counts: that of
    the first arrival if the board failed to check the same bytes before."""
    team, created = {"team": sender.team, "token": sender.token}, None
    with state.board.locked() if window else nullcontext():
        if window:
            known, created = state.queue.known(sender.owner, digest), arrived.timestamp()
            if known is not None and known.state == FAILED:
                created = min(created, known.created)
            if known is None or known.state in (REFUSED, FAILED):
                sealed_window = find_window(state.board.ledger.records(), window)
                try:
                    require_open(sealed_window, datetime.fromtimestamp(created, UTC))
                except SubmissionRejected as error:
                    raise HTTPProblem(409, str(error)) from error
        job, new = state.queue.enqueue(id, sender.owner, digest, size, **team, created=created)
    if not new:
        state.files.drop(id)
    return job, new


@router.get("/submissions/{id}", response_class=Response, responses=_describe_problems(404))
def state_of(request: Request, id: Annotated[str, Path(description="As returned for the submission.")]) -> Response:
    """Return the state of a submission, with its position in the queue, entries or problems."""
    state: State = request.app.state.intake
    job = state.queue.find(id) if ID.fullmatch(id) else None
    if job is None:
        raise HTTPProblem(404, "no submission has this id")
    return _make_response(200, job.record(), {} if job.state in ENDED else {"Retry-After": str(_POLL)})


def _reserve(state: State, sender: Sender, size: int, id: str) -> None:
    """Count a submission before its body is read. Raises `HTTPProblem` if it would exceed a quota, if the disk may
    become full when all that is arriving has arrived, or if its owner would use more than half of the free disk."""
    measure_arriving(state.queue, state.files)  # what a killed server was receiving does not count
    state.queue.reserve(sender.owner, size, id)
    coming = measure_arriving(state.queue, state.files)
    half_of_free = coming[sender.owner] + state.queue.measure_owned(sender.owner)  # of what is free without its files
    if not state.files.has_room(max(coming.total(), half_of_free)):
        raise HTTPProblem(507, "the board's disk is full: try again later", 600)


def _read_content_length(request: Request, state: State) -> int:
    """Return the most bytes that a request's body can have: its Content-Length, or what the board accepts. Raises
    `HTTPProblem` if the request cannot be a submission."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != ZIP:
        raise HTTPProblem(415, f"the content type of a submission must be {ZIP}")
    most = min(state.settings.submission_bytes, state.settings.bytes_a_day)
    stated = request.headers.get("content-length", "")
    size = int(stated) if stated.isascii() and stated.isdigit() and len(stated) < 20 else most
    if size > state.settings.submission_bytes:
        raise HTTPProblem(413, f"{size} bytes: at most {state.settings.submission_bytes} are accepted")
    return size


@asynccontextmanager
async def _receive_body(
    request: Request, state: State, sender: Sender, content_digest: str
) -> AsyncIterator[tuple[str, str, int]]:
    """Receive the body of a request into a new file, and count it for its sender meanwhile. Gives the file's id, its
    sha256 and its size; if it is refused within the context, nothing is left. Raises `HTTPProblem` if the body is not
    accepted, is incomplete, or does not have the stated digest."""
    stated, most = parse_digest_header(content_digest), _read_content_length(request, state)
    id = state.files.new()
    path, received = state.files.part(id), False
    try:
        with translate_os_errors(path, BOARD_ADVICE), path.open("r+b") as file:
            lock_arriving(file)
            await run_in_threadpool(_reserve, state, sender, most, id)
            digest, size = await _write_body(request, file, state.settings)
            if not size:
                raise HTTPProblem(400, "the body is empty, or was cut off")
            if stated and stated != digest:
                raise HTTPProblem(400, "the body does not match Content-Digest")
            received = True
            yield id, digest, size
    except BaseException as error:
        if not received or isinstance(error, FarshiftError):  # else it may be in the queue
            await run_in_threadpool(state.files.drop if received else state.files.clear, id)
            await run_in_threadpool(state.queue.release, id)
        raise


async def _write_body(request: Request, file: BinaryIO, settings: ServerSettings) -> tuple[str, int]:
    """Write a body into a file and flush it to the disk. Returns its sha256 and its size, 0 if it was cut off. Raises
    `HTTPProblem`: 413 above the limit, before more is written; 408 after too long a pause, or below the lowest
    permitted rate."""
    digest, size, began, waiting = hashlib.sha256(), 0, time.monotonic(), bytearray()
    pieces = aiter(request.stream())
    while True:
        try:
            piece = await asyncio.wait_for(anext(pieces), settings.silence_seconds)
        except StopAsyncIteration:
            break
        except ClientDisconnect:
            return "", 0
        except TimeoutError:
            raise HTTPProblem(408, f"no data received for {settings.silence_seconds:g} s") from None
        size += len(piece)
        if size > settings.submission_bytes:
            raise HTTPProblem(
                413, f"the body has more than {settings.submission_bytes} bytes: pack fewer runs into one file"
            )
        seconds = time.monotonic() - began
        if seconds > settings.silence_seconds and size < seconds * settings.slowest_bytes_a_second:
            least = settings.slowest_bytes_a_second
            raise HTTPProblem(408, f"the body arrived at less than {least} bytes per second")
        digest.update(piece)
        waiting += piece
        if len(waiting) >= _BLOCK:
            await run_in_threadpool(file.write, bytes(waiting))
            waiting.clear()

    def write_and_flush() -> None:
        file.write(waiting)
        file.flush()
        os.fsync(file.fileno())

    await run_in_threadpool(write_and_flush)
    return digest.hexdigest(), size


def parse_digest_header(header: str) -> str:
    """Parse the sha256 in a Content-Digest header (RFC 9530) to hexadecimal; empty without the header. Raises
    `HTTPProblem` (400) for any other content."""
    if not header:
        return ""
    match = re.fullmatch(r"sha-256=:([A-Za-z0-9+/]{43}=):", header.strip())
    if match is None:
        raise HTTPProblem(400, "Content-Digest must have the form sha-256=:<base64>:")
    return base64.b64decode(match[1]).hex()


async def _drain(request: Request) -> None:
    """Read the rest of a refused request's body for a limited time: otherwise closing the connection resets it while
    the client still sends, and the client loses the response (RFC 9112, section 9.6), or a proxy reports 502."""
    discarded = 0
    with suppress(TimeoutError, ClientDisconnect, RuntimeError):  # RuntimeError: the body was read
        async with asyncio.timeout(_DISCARDING):
            async for piece in request.stream():
                discarded += len(piece)
                if discarded > _DISCARDED:
                    break


def _make_response(status: int, body: dict[str, Any], headers: dict[str, str]) -> Response:
    """Return a JSON response that is not cached."""
    return JSONResponse(body, status, {"Cache-Control": "no-store", **headers})


def _identify(state: State, request: Request, authorisation: str) -> Sender:
    """Return the sender; forwarded addresses count only if the server is configured to trust the proxy."""
    address = request.client.host if request.client is not None else ""
    return identify_sender(state.board.ledger.store, state.settings, authorisation, address)
