"""Submissions: acknowledged when the file and its place in the queue are on the disk. Their state is available under
an unguessable id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from ....core.errors import BadSubmission, FarshiftError, SubmissionRejected, UnknownName
from ...sealed.receipt import Receipt
from ...sealed.submit import submit_answers
from ...sealed.window import find_window
from ...submission.validate import Submission
from ...validation.problem import to_problem_records
from ..accounts.accounts import Sender
from ..accounts.quotas import QuotaExceeded
from ..accounts.team_check import require_team
from ..http_problem import HTTPProblem
from ..intake.files import ID
from ..intake.job import ENDED, Job
from ..intake.receiving import Body, parse_digest_header, receive_body
from ..intake.worker import Workers
from ..routing import IntakeRoute, describe_problems, get_client_address, make_job_response, make_json_response
from ..state import State, find_state, require_state

if TYPE_CHECKING:
    from fastapi import FastAPI

router = APIRouter(tags=["submit"], route_class=IntakeRoute)

ZIP = "application/zip"
_BODY = {"requestBody": {"required": True, "content": {ZIP: {"schema": {"type": "string", "format": "binary"}}}}}
_POLL = 1
"""Retry-After in seconds for a job that has not ended."""

Authorisation = Annotated[str, Header(alias="Authorization", description="Bearer <token>")]
Digest = Annotated[str, Header(alias="Content-Digest", description="RFC 9530: sha-256=:<base64>:")]


def on_start(app: FastAPI) -> Callable[[], None] | None:
    """Start to score queued submissions with `app.state.workers` workers, by default as in the board's settings; with
    none if separate processes do it."""
    state = find_state(app)
    configured = getattr(app.state, "workers", None)
    workers = 0 if state is None else state.settings.workers if configured is None else int(configured)
    if state is None or not workers:
        return None
    return Workers(state.board, workers, state.queue).start().stop


@router.post(
    "/submissions",
    status_code=202,
    response_class=Response,
    responses=describe_problems(400, 401, 403, 408, 413, 415, 429, 503, 507) | {200: {"description": "Already known."}},
    openapi_extra=_BODY,
)
async def hand_in(request: Request, bearer: Authorisation = "", content_digest: Digest = "") -> Response:
    """Submit the zip in the request's body. Returns 202 with the address of its state: `queued`, `running`, `entered`,
    `refused`, or `failed`. The same bytes are the same submission."""
    state = require_state(request)
    sender = await _identify_sender(request, state, bearer, "submit")
    await _check_quota(state, sender, sender.owner, _read_content_length(request, state))
    id, body = await _receive_upload(request, state, content_digest)
    job, new = await run_in_threadpool(_enqueue_submission, state, sender, id, body)
    return make_job_response(job, new, f"submissions/{job.id}")


def _enqueue_submission(state: State, sender: Sender, id: str, body: Body) -> tuple[Job, bool]:
    state.files.finish(id)
    try:
        job, new = state.queue.enqueue(
            id, sender.owner, body.digest, body.received, team=sender.team, team_key=sender.team_key, token=sender.token
        )
    except QuotaExceeded as error:
        state.files.drop(id)
        state.accounts.refused(sender, "quota-exceeded", str(error))
        raise
    # After any other error the row may exist and need its file; files without a row are deleted later.
    if not new:
        state.files.drop(id)
    return job, new


@router.get("/submissions/{id}", response_class=Response, responses=describe_problems(404, 429))
def submission(request: Request, id: Annotated[str, Path(description="The id from the submit response.")]) -> Response:
    """Return the state of a submission, with its entries or its problems."""
    state = require_state(request)
    state.accounts.admit(get_client_address(request))
    job = state.queue.find(id) if ID.fullmatch(id) else None
    if job is None:
        raise HTTPProblem.make(404, "no submission has this id")
    return make_json_response(200, job.record(), **({} if job.state in ENDED else {"Retry_After": str(_POLL)}))


@router.post(
    "/windows/{window}/answers",
    status_code=201,
    response_class=Response,
    responses=describe_problems(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503, 507)
    | {200: {"description": "Already known."}},
    openapi_extra=_BODY,
)
async def answers(request: Request, window: str, bearer: Authorisation = "", content_digest: Digest = "") -> Response:
    """Submit answers to an open sealed window, signed by the team's key. Returns 201 with the board's receipt, or 200
    with the same receipt if these answers were submitted before. No score is available before the window closes."""
    state = require_state(request)
    sender = await _identify_sender(request, state, bearer, "hand-in")
    await run_in_threadpool(_check_window, state, window)
    await _check_quota(state, sender, f"{sender.owner}, sealed answers", _read_content_length(request, state))
    id, body = await _receive_upload(request, state, content_digest)
    try:
        receipt = await run_in_threadpool(_accept_answers, state, sender, window, id, body)
    finally:
        state.files.clear(id)
    return make_json_response(201 if receipt.new else 200, receipt.record() | {"new": receipt.new})


def _check_window(state: State, window: str) -> None:
    try:
        find_window(state.board.ledger.records(), window)
    except UnknownName as error:
        raise HTTPProblem.make(404, str(error)) from error


def _accept_answers(state: State, sender: Sender, window: str, id: str, body: Body) -> Receipt:
    """Check answers and return their receipt at once: in a queue they might wait until the window has closed."""

    def allowed(submission: Submission) -> None:
        if sender.token:
            require_team(submission, sender.team, sender.team_key)

    if not state.checking.acquire(blocking=False):
        raise HTTPProblem.make(503, "other answers are being checked: try again in a few seconds", 2)
    try:
        try:
            state.queue.charge(f"{sender.owner}, sealed answers", body.received, id)
        except QuotaExceeded as error:
            state.accounts.refused(sender, "quota-exceeded", str(error))
            raise
        state.files.settle(id)
        return submit_answers(state.board, window, state.files.complete_path(id), allowed=allowed)
    except BadSubmission as error:
        raise HTTPProblem.make(422, _format_error(error, id), problems=to_problem_records(error)) from error
    except (HTTPProblem, QuotaExceeded):
        raise
    except SubmissionRejected as error:
        raise HTTPProblem.make(409, _format_error(error, id)) from error
    except FarshiftError as error:
        raise HTTPProblem.make(503, "the board cannot accept this now: try again later", 10) from error
    finally:
        state.checking.release()


def _format_error(error: FarshiftError, id: str) -> str:
    return str(error).replace(f"{id}.zip", "the answers")


async def _identify_sender(request: Request, state: State, authorisation: str, scope: str) -> Sender:
    return await run_in_threadpool(state.accounts.sender, authorisation, get_client_address(request), scope)


async def _check_quota(state: State, sender: Sender, owner: str, size: int) -> None:
    """Refuse a submission before its body is read, if it would be refused after it."""
    try:
        await run_in_threadpool(state.queue.require_left, owner, size)
    except QuotaExceeded as error:
        await run_in_threadpool(state.accounts.refused, sender, "quota-exceeded", str(error))
        raise
    if not state.files.has_room(size):
        raise HTTPProblem.make(507, "the board's disk is full: try again later", 600)


def _read_content_length(request: Request, state: State) -> int:
    """Return a request's Content-Length, 0 without one. Raises `HTTPProblem` if the request cannot be a submission."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != ZIP:
        raise HTTPProblem.make(415, f"the content type of a submission must be {ZIP}")
    stated = request.headers.get("content-length", "0")
    size = int(stated) if stated.isascii() and stated.isdigit() and len(stated) < 20 else 0
    if size > state.settings.submission_bytes:
        raise HTTPProblem.make(413, f"{size} bytes: at most {state.settings.submission_bytes} are accepted")
    return size


async def _receive_upload(request: Request, state: State, content_digest: str) -> tuple[str, Body]:
    """Receive the body of a request into a new file, and check that it is complete and has the stated digest."""
    stated = parse_digest_header(content_digest)
    id = state.files.new()
    try:
        body = await receive_body(
            request.stream(), state.files.part(id), state.settings.submission_bytes, state.settings
        )
        if not body.is_complete or not body.received:
            raise HTTPProblem.make(400, "the body is empty, or was cut off")
        if stated and stated != body.digest:
            raise HTTPProblem.make(400, "the body does not match Content-Digest")
    except BaseException:
        state.files.clear(id)
        raise
    return id, body
