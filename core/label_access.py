"""While a model is trained or asked, the library gives no labels in its process and threads.

What a model may see is handed to it. That the library refuses the rest keeps a model from being scored by labels that
it looked up, by mistake or as a shortcut; whoever reads the cache's files without the library, or in another process,
is not kept from it (a container does that: docs/evaluate.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count

from .errors import LabelsWithheld

_permitted: ContextVar[bool] = ContextVar("the harness itself opens rows", default=False)

_number = count()
_running: set[int] = set()
"""The models that are trained or asked in this process now, by whichever thread."""


@contextmanager
def hide_labels() -> Iterator[None]:
    """Refuse labels in this process while the context lasts."""
    model = next(_number)
    _running.add(model)
    try:
        yield
    finally:
        _running.discard(model)


@contextmanager
def allow_label_access() -> Iterator[None]:
    """Let the harness open rows for a training, of which it hands over what the protocol opens."""
    token = _permitted.set(True)
    try:
        yield
    finally:
        _permitted.reset(token)


def refuse_labels(what: str) -> None:
    """`LabelsWithheld` where a model is trained or asked now in this process."""
    if _running and not _permitted.get():
        raise LabelsWithheld(
            f"{what} cannot be opened while a model is trained or evaluated: fit and predict receive the data that "
            "a model may use; load other data before, and score the run when it is finished"
        )
