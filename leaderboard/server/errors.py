"""Error responses: one-line JSON for API requests, an HTML page for browsers."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ...core.errors import FarshiftError, MissingExtra, Unavailable, UnknownName, get_first_line
from .answers import make_error_response
from .error_page import make_error_page
from .http_problem import HTTPProblem

if TYPE_CHECKING:
    from fastapi import FastAPI

log = logging.getLogger("farshift.server")


def add_handlers(app: FastAPI) -> None:
    """Install the error handlers in an application."""
    app.add_exception_handler(HTTPException, _handle_http_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(FarshiftError, _handle_farshift_error)
    app.add_exception_handler(Exception, _handle_unexpected_error)


def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405 and headers.get("Allow") == "GET":
        headers["Allow"] = "GET, HEAD"
    if request.url.path.startswith("/api/"):
        return make_error_response(error.status_code, str(error.detail), headers)
    return make_error_page(request, error.status_code, headers)


def _handle_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = [f"{'.'.join(str(part) for part in problem['loc'][1:])}: {problem['msg']}" for problem in error.errors()]
    return make_error_response(422, "; ".join(wrong[:5]) or "the request cannot be read")


def _handle_farshift_error(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPProblem):
        return Response(json.dumps(error.body()), error.status, error.headers(), "application/problem+json")
    if isinstance(error, Unavailable):
        return make_error_response(503, get_first_line(error), {"Retry-After": "10"})
    if isinstance(error, UnknownName):
        return make_error_response(404, get_first_line(error))
    if isinstance(error, MissingExtra):
        return make_error_response(501, get_first_line(error))
    log.error("%s %s: %s", request.method, request.url.path, get_first_line(error))
    return make_error_response(409, get_first_line(error))


def _handle_unexpected_error(request: Request, error: Exception) -> Response:
    log.error("%s %s: %s", request.method, request.url.path, type(error).__name__, exc_info=error)
    return make_error_response(500, "internal server error; see the server's log")
