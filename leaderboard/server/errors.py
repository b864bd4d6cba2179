"""Errors as answers: JSON with one line to programs, a page to people."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ...core.errors import FarshiftError, MissingExtra, Unavailable, UnknownName, first_line
from .answers import as_error
from .lost import lost_page
from .refusal import Refusal

if TYPE_CHECKING:
    from fastapi import FastAPI

log = logging.getLogger("farshift.server")


def add_handlers(app: FastAPI) -> None:
    """Let an application answer errors so."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(FarshiftError, _ours)
    app.add_exception_handler(Exception, _bug)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405 and headers.get("Allow") == "GET":
        headers["Allow"] = "GET, HEAD"
    if request.url.path.startswith("/api/"):
        return as_error(error.status_code, str(error.detail), headers)
    return lost_page(request, error.status_code, headers)


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = [f"{'.'.join(str(part) for part in one['loc'][1:])}: {one['msg']}" for one in error.errors()]
    return as_error(422, "; ".join(wrong[:5]) or "the request cannot be read")


def _ours(request: Request, error: Exception) -> Response:
    if isinstance(error, Refusal):
        return Response(json.dumps(error.body()), error.status, error.headers(), "application/problem+json")
    if isinstance(error, Unavailable):
        return as_error(503, first_line(error), {"Retry-After": "10"})
    if isinstance(error, UnknownName):
        return as_error(404, first_line(error))
    if isinstance(error, MissingExtra):
        return as_error(501, first_line(error))
    log.error("%s %s: %s", request.method, request.url.path, first_line(error))
    return as_error(409, first_line(error))


def _bug(request: Request, error: Exception) -> Response:
    log.error("%s %s: %s", request.method, request.url.path, type(error).__name__, exc_info=error)
    return as_error(500, "the server made a mistake, and has noted it")
