"""Refusals as RFC 9457 `application/problem+json`, with a one-line `error` and, for a submission that does not
validate, its `problems` as `farshift pack` lists them."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from ...core.errors import FarshiftError


class HTTPProblem(FarshiftError):
    """A refused request: its status, and the seconds after which it may be repeated."""

    status = 400
    after: int | None = None
    problems: tuple[dict[str, str], ...] = ()

    @classmethod
    def make(
        cls, status: int, error: str, after: int | None = None, problems: Sequence[dict[str, str]] = ()
    ) -> HTTPProblem:
        problem = cls(error)
        problem.status, problem.after, problem.problems = status, after, tuple(problems)
        return problem

    def body(self) -> dict[str, Any]:
        """The JSON body of the response."""
        title = HTTPStatus(self.status).phrase
        content: dict[str, Any] = {"type": "about:blank", "title": title, "status": self.status}
        content |= {"detail": str(self), "error": str(self)}
        return content | ({"problems": list(self.problems)} if self.problems else {})

    def headers(self) -> dict[str, str]:
        """The headers of the response, without its content type."""
        headers = {} if self.after is None else {"Retry-After": str(self.after)}
        return headers | ({"WWW-Authenticate": 'Bearer realm="farshift"'} if self.status == 401 else {})
