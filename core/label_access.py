"""While a model is trained or asked, the library gives no labels: not in this process, its threads or its children.

What a model may see is handed to it. That the library refuses the rest keeps a model from being scored by labels that
it looked up, by mistake or as a shortcut; whoever reads the cache's files without the library is not kept from it (a
container does that: docs/evaluate.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import mkstemp
from threading import Lock

from .errors import LabelsWithheld

_VARIABLE = "FARSHIFT_LABELS_WITHHELD"
"""Names a file to the children of a process: labels are withheld in them while it is there."""

_permitted: ContextVar[bool] = ContextVar("the harness itself opens rows", default=False)


class _HiddenLabels:
    """How many models are trained or asked in this process now, by whichever thread, and the file that says so."""

    def __init__(self) -> None:
        self.models = 0
        self.before: str | None = None
        self.file = Path()
        self.lock = Lock()

    def begin(self) -> None:
        with self.lock:
            self.models += 1
            if self.models > 1:
                return
            self.before = os.environ.get(_VARIABLE)
            handle, name = mkstemp(prefix="farshift-asking-")
            os.close(handle)
            self.file = Path(name)
            os.environ[_VARIABLE] = name

    def end(self) -> None:
        with self.lock:
            self.models -= 1
            if self.models:
                return
            self.file.unlink(missing_ok=True)
            os.environ.pop(_VARIABLE, None)
            if self.before is not None:
                os.environ[_VARIABLE] = self.before


_here = _HiddenLabels()


@contextmanager
def hide_labels() -> Iterator[None]:
    """Refuse labels in this process, and in those that it starts, while the context lasts."""
    _here.begin()
    try:
        yield
    finally:
        _here.end()


@contextmanager
def allow_label_access() -> Iterator[None]:
    """Let the harness open rows for a training, of which it hands over what the protocol opens."""
    token = _permitted.set(True)
    try:
        yield
    finally:
        _permitted.reset(token)


def refuse_labels(what: str) -> None:
    """`LabelsWithheld` where a model is trained or asked now, in this process or in one that started it."""
    if not _here.models and _VARIABLE not in os.environ:
        return
    if not _permitted.get() and (_here.models or Path(os.environ.get(_VARIABLE, "/-")).exists()):
        raise LabelsWithheld(
            f"{what} cannot be opened while a model is trained or evaluated: fit and predict receive the data that "
            "a model may use; load other data before, and score the run when it is finished"
        )
