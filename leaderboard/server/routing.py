"""Routes that return refusals as in `http_problem.py`, and wait for the database in threads."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from ...core.errors import FarshiftError, get_first_line
from .accounts.quotas import QuotaExceeded
from .http_problem import HTTPProblem
from .requests import shorten_logged_path

if TYPE_CHECKING:
    from .intake.job import Job

log = logging.getLogger("farshift.server")

LATER = 10
"""Retry-After in seconds when the server cannot handle a request now."""

_PROBLEM = {
    "type": "object",
    "required": ["error", "status"],
    "properties": {
        "error": {"type": "string"},
        "detail": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "problems": {"type": "array", "items": {"type": "object"}},
    },
}


class IntakeRoute(APIRoute):
    """A route that turns refusals into responses."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handle(request)
            except HTTPProblem as error:
                return make_problem_response(error)
            except QuotaExceeded as error:
                return make_problem_response(HTTPProblem.make(429 if error.after else 413, str(error), error.after))
            except FarshiftError as error:  # such as a full disk, or an unreachable database
                log.error("%s %s: %s", request.method, shorten_logged_path(request.url.path), get_first_line(error))
                return make_problem_response(
                    HTTPProblem.make(503, "the board cannot accept this now: try again later", LATER)
                )

        return answered


def make_problem_response(error: HTTPProblem) -> Response:
    """Return the response for a refusal. The rest of the request's body is discarded (drain_body.py) or never read."""
    closing = {"Connection": "close"} if error.status in (408, 413) else {}
    headers = {"Cache-Control": "no-store", **closing, **error.headers()}
    return Response(json.dumps(error.body()), error.status, headers, "application/problem+json")


def make_json_response(status: int, body: dict[str, Any], **headers: str) -> Response:
    """Return a JSON response that is not cached."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(json.dumps(body), status, {"Cache-Control": "no-store", **named}, "application/json")


def make_job_response(job: Job, new: bool, location: str) -> Response:
    """Return the response to an accepted submission: 202, or 200 if it is already known."""
    return make_json_response(202 if new else 200, job.record(), Location=location)


def describe_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe a route's refusals for the OpenAPI document."""
    content = {"application/problem+json": {"schema": _PROBLEM}}
    return {status: {"description": "Refused: `error` says why.", "content": content} for status in statuses}


def get_client_address(request: Request) -> str:
    """Return the client's address; forwarded addresses count only if the server is configured to trust the proxy."""
    return request.client.host if request.client is not None else ""
