"""Work done by another process: it gets a request, and reports its progress and its error to the one that waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from .. import errors
from ..errors import FarshiftError, replace_error_message
from ..progress import log_message, report_progress, report_to

_GRACE = 5.0
"""Seconds that an interrupted process is given to keep what it has."""

Fail = Callable[[FarshiftError], NoReturn]
"""Reports an error from any thread, and ends the process at once."""


def run_in_subprocess(module: str, request: Any, what: str) -> None:
    """Have a process run `module`, whose main is `serve_request`, on a request (plain JSON). Its progress is reported
    here, its error is raised here. what: the work, for people."""
    # -P: what lies in the folder that the user happens to be in is not imported.
    command = [sys.executable, "-P", "-m", module]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, encoding="utf-8") as child:
        assert child.stdin and child.stdout
        try:
            child.stdin.write(json.dumps(request))
            child.stdin.close()
            for line in child.stdout:
                _handle_message(json.loads(line))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):  # which the child heard too: it keeps what it has
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_GRACE)
            child.kill()
            raise
    if child.returncode != 0:
        raise FarshiftError(f"{what} exited with code {child.returncode} (its output is above): repeat the command")


def _handle_message(message: dict[str, Any]) -> None:
    if "say" in message:
        log_message(message["say"])
    elif "advance" in message:
        report_progress(*message["advance"])
    elif "error" in message:
        raise replace_error_message(_find_error_class(message["error"]), message["message"])


def _find_error_class(names: Sequence[str]) -> type[FarshiftError]:
    """The error that the names of a class and of those it derives from stand for: the nearest that every caller may
    catch."""
    return next((getattr(errors, name) for name in names if hasattr(errors, name)), FarshiftError)


def _describe_error(error: FarshiftError) -> dict[str, Any]:
    return {"error": [kind.__name__ for kind in type(error).__mro__], "message": str(error)}


class _Sender:
    """Sends progress and errors to the parent process, one JSON object a line."""

    def __init__(self, descriptor: int) -> None:
        self._out = os.fdopen(descriptor, "w", encoding="utf-8")

    def send(self, message: dict[str, Any]) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def say(self, text: str) -> None:
        self.send({"say": text})

    def advance(self, label: str, done: int, total: int | None, note: str = "") -> None:
        self.send({"advance": [label, done, total, note]})

    def fail(self, error: FarshiftError) -> NoReturn:
        self.send(_describe_error(error))
        os._exit(2)


def serve_request(work: Callable[[Any, Fail], None]) -> None:
    """The main of such a process: read the request from stdin, do the work, report on stdout."""
    sender = _Sender(os.dup(1))
    os.dup2(2, 1)  # whatever else is printed must not be taken for a message
    request = json.load(sys.stdin)
    try:
        with report_to(sender):
            work(request, sender.fail)
    except FarshiftError as error:
        sender.send(_describe_error(error))
    except KeyboardInterrupt:
        os._exit(130)  # the parent heard it too, and says so
