"""Resumable uploads: tus 1.0 (https://tus.io/protocols/resumable-upload) with creation, termination and checksum. The
offset that is told is on the disk. A whole upload becomes a submission, which `Farshift-Submission` names."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from filelock import FileLock
from starlette.concurrency import run_in_threadpool

from ....core.files import file_sha256, lock_is_free
from ..accounts.accounts import Sender
from ..intake.files import ID
from ..intake.receiving import Body, receive
from ..intake.uploads import Upload
from ..refusal import Refusal
from ..routing import IntakeRoute, address_of, refusals
from ..state import State, state_of
from .submissions import Authorisation, queued

router = APIRouter(tags=["submit"], route_class=IntakeRoute, prefix="/uploads")

HEADS = ("/uploads/",)
"""Addresses with a HEAD of their own."""

VERSION = "1.0.0"
OFFSET = "application/offset+octet-stream"
CHECKSUMS = ("sha1", "sha256")

Version = Annotated[str, Header(alias="Tus-Resumable", description=VERSION)]


@router.options("", status_code=204, response_class=Response)
def abilities(request: Request) -> Response:
    """What of tus is spoken here."""
    most = state_of(request).settings.submission_bytes
    return _answer(
        204,
        Tus_Version=VERSION,
        Tus_Extension="creation,termination,checksum",
        Tus_Max_Size=str(most),
        Tus_Checksum_Algorithm=",".join(CHECKSUMS),
    )


@router.post("", status_code=201, response_class=Response, responses=refusals(400, 401, 403, 412, 413, 429, 503, 507))
def create(
    request: Request,
    bearer: Authorisation = "",
    tus_resumable: Version = "",
    upload_length: Annotated[str, Header(description="Bytes of the whole file.")] = "",
    upload_metadata: Annotated[str, Header(description="sha256 <base64 of its hexadecimal sha256>")] = "",
) -> Response:
    """Begin an upload."""
    state, sender = _asked(request, bearer, tus_resumable)
    if not (upload_length.isascii() and upload_length.isdigit()) or not 0 < len(upload_length) < 20:
        raise Refusal.because(400, "Upload-Length has to say how many bytes the file has")
    size = int(upload_length)
    if size == 0:
        raise Refusal.because(400, "an empty file is no submission")
    if size > state.settings.submission_bytes:
        raise Refusal.because(413, f"{size} bytes; at most {state.settings.submission_bytes} are taken")
    digest = _metadata(upload_metadata).get("sha256", "")
    if digest and not ID.fullmatch(digest):
        raise Refusal.because(400, "sha256 in Upload-Metadata has to have 64 hexadecimal digits")
    state.queue.require_left(sender.owner, size)
    if not state.files.has_room(size):
        raise Refusal.because(507, "the board's disk is full: try again later", 600)
    id = state.files.new()
    if not state.uploads.begin(id, sender.owner, sender.token, size, digest):
        state.files.clear(id)
        most = state.settings.queued_at_once
        raise Refusal.because(429, f"{most} uploads of yours are unfinished: finish one, or delete one", 60)
    return _answer(201, Location=f"uploads/{id}", Upload_Offset="0")


@router.head("/{id}", response_class=Response, responses=refusals(401, 404, 412, 429))
def offset(request: Request, id: str, bearer: Authorisation = "", tus_resumable: Version = "") -> Response:
    """How much of an upload is on the disk."""
    state, sender = _asked(request, bearer, tus_resumable)
    return _standing(200, _found(state, sender, id))


@router.patch(
    "/{id}",
    status_code=204,
    response_class=Response,
    responses=refusals(400, 401, 404, 408, 409, 412, 413, 415, 423, 429, 460, 503),
)
async def append(
    request: Request,
    id: str,
    bearer: Authorisation = "",
    tus_resumable: Version = "",
    upload_offset: Annotated[str, Header(description="Where these bytes begin.")] = "",
    upload_checksum: Annotated[str, Header(description="sha256 <base64>")] = "",
) -> Response:
    """Send more of an upload. What comes before the connection breaks is kept."""
    state, sender = await run_in_threadpool(_asked, request, bearer, tus_resumable)
    if request.headers.get("content-type", "") != OFFSET:
        raise Refusal.because(415, f"more of an upload is sent as {OFFSET}")
    checksum = _checksum(upload_checksum)
    await run_in_threadpool(_found, state, sender, id)
    lock = FileLock(state.files.lock(id), thread_local=False)
    if not await run_in_threadpool(lock_is_free, lock):
        raise Refusal.because(423, "more of this upload is coming in already")
    try:
        upload = await run_in_threadpool(_found, state, sender, id)  # as whoever held it left it
        if upload_offset != str(upload.received):
            raise Refusal.because(409, f"this upload has {upload.received} bytes: go on there")
        if not upload.job:
            upload = await _appended(request, state, upload, checksum)
        if not upload.job and upload.received == upload.size:
            upload = await run_in_threadpool(_whole, state, sender, upload)
    finally:
        await run_in_threadpool(lock.release)
    return _standing(204, upload)


@router.delete("/{id}", status_code=204, response_class=Response, responses=refusals(401, 404, 409, 412, 429))
def terminate(request: Request, id: str, bearer: Authorisation = "", tus_resumable: Version = "") -> Response:
    """Give an upload up."""
    state, sender = _asked(request, bearer, tus_resumable)
    upload = _found(state, sender, id)
    if upload.job:
        raise Refusal.because(409, "this upload is a submission already")
    state.uploads.end(id)
    state.files.drop(id)
    return _answer(204)


async def _appended(request: Request, state: State, upload: Upload, checksum: tuple[str, bytes] | None) -> Upload:
    """The upload with what this request brings, as far as that is on the disk."""
    body = Body()
    left = upload.size - upload.received
    if left:
        try:
            start = state.files.start(upload.id, upload.received)
            body = await receive(request.stream(), state.files.part(upload.id), left, state.settings, start, body)
        finally:
            # Without a checksum what came is kept, also of a body that was cut off.
            if checksum is None and body.received:
                await run_in_threadpool(_kept, state, upload, body.received)
    if checksum is not None:
        name, due = checksum
        if not body.whole or getattr(body, name).digest() != due:
            raise Refusal.because(460, "the bytes are not what Upload-Checksum says: send them again")
        await run_in_threadpool(_kept, state, upload, body.received)
    found = state.uploads.find(upload.id, upload.owner)
    if found is None:
        raise Refusal.because(404, "there is no such upload")
    return found


def _kept(state: State, upload: Upload, more: int) -> None:
    """Keep what came. Raises `Refusal` where another server took something from the same byte on."""
    state.files.keep(upload.id, upload.received, more)
    if not state.uploads.received(upload.id, upload.received, upload.received + more):
        raise Refusal.because(409, "more of this upload came in elsewhere: ask how much there is, and go on there")


def _whole(state: State, sender: Sender, upload: Upload) -> Upload:
    """What a whole upload becomes."""
    if (there := state.queue.find(upload.id)) is not None:  # a server was killed before it could note it
        return _became(state, upload, there.id)
    file, finished = state.files.gathered(upload.id, upload.size)
    digest = file_sha256(file)
    if not finished:
        if upload.digest and upload.digest != digest:
            state.uploads.end(upload.id)
            state.files.drop(upload.id)
            raise Refusal.because(400, "the file is not what its sha256 says: upload it again")
        state.files.finish(upload.id)
    job, new = queued(state, sender, upload.id, digest, upload.size)
    if not new:
        state.files.drop(upload.id)
    return _became(state, upload, job.id)


def _became(state: State, upload: Upload, job: str) -> Upload:
    state.uploads.became(upload.id, job)
    found = state.uploads.find(upload.id, upload.owner)
    assert found is not None
    return found


def _asked(request: Request, authorisation: str, version: str) -> tuple[State, Sender]:
    state = state_of(request)
    sender = state.accounts.sender(authorisation, address_of(request), "submit")
    if version != VERSION:
        raise Refusal.because(412, f"Tus-Resumable has to be {VERSION}")
    return state, sender


def _found(state: State, sender: Sender, id: str) -> Upload:
    found = state.uploads.find(id, sender.owner) if ID.fullmatch(id) else None
    if found is None:
        raise Refusal.because(404, "there is no such upload")
    return found


def _standing(status: int, upload: Upload) -> Response:
    job = {"Farshift_Submission": upload.job} if upload.job else {}
    return _answer(status, Upload_Offset=str(upload.received), Upload_Length=str(upload.size), **job)


def _answer(status: int, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(None, status, {"Cache-Control": "no-store", "Tus-Resumable": VERSION, **named})


def _metadata(header: str) -> dict[str, str]:
    """The pairs of an Upload-Metadata header. Raises `Refusal`."""
    found: dict[str, str] = {}
    for pair in filter(None, (one.strip() for one in header.split(","))):
        key, _, value = pair.partition(" ")
        found[key] = _decoded(value, "Upload-Metadata").decode("utf-8", "replace")
    return found


def _checksum(header: str) -> tuple[str, bytes] | None:
    """The algorithm and digest of an Upload-Checksum header. Raises `Refusal`."""
    if not header:
        return None
    name, _, value = header.partition(" ")
    if name not in CHECKSUMS:
        raise Refusal.because(400, f"Upload-Checksum is of one of these: {', '.join(CHECKSUMS)}")
    return name, _decoded(value, "Upload-Checksum")


def _decoded(value: str, where: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal.because(400, f"{where} is not base64") from None
