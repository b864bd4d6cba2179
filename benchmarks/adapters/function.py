"""A plain function `f(batch) -> predictions` as a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from numpy.typing import NDArray

from ...core.canonical import compute_identity
from ...core.errors import ModelError
from ...loaders.batching.input_format import AS_THEY_ARE, AudioSpec, ImageSpec, InputFormat
from ..answers import Answers
from ..fingerprint import compute_fingerprint
from ..model import Columns, Model, Task

Predict = Callable[[Columns], NDArray[Any] | Sequence[Any] | Answers]

OFFERED = ("seed", "task", "device", "prompt")
"""Arguments that a factory may name. A function that requires one of them makes models and is not a model itself."""


class FunctionModel:
    """A model whose `predict` is a function. `name`, `code` (a digest of its source and of the arguments that a
    `partial` binds) and the requested input formats are those of the function."""

    def __init__(self, function: Predict, forms: InputFormat | None = None) -> None:
        self._function = function
        source = _unwrap_partial(function)
        self.forms = InputFormat.of(source) if forms is None else forms
        self.name = str(getattr(source, "__name__", None) or type(source).__name__)
        self.code = _digest_code(function)
        if self.code and self.forms != AS_THEY_ARE:
            self.code = compute_identity([self.code, repr(self.forms)])

    def predict(self, batch: Columns) -> NDArray[Any] | Sequence[Any] | Answers:
        return self._function(batch)


def predictor(function: Predict, *, images: ImageSpec = "bytes", audio: AudioSpec = "bytes") -> FunctionModel:
    """Make a model of a callable that receives a batch and returns one prediction per row, in order.

    Needed only for a callable whose parameters do not show that it is a model (a callable object, `*args`), or that
    needs decoded images or audio; any other function of the batch is a model already. images: "bytes", "PIL", a side
    in pixels (uint8 arrays), or a transform ("imagenet"). audio: "bytes", or a sampling rate in Hz. Raises
    `ModelError` for an object that is not callable.

    >>> import farshift as fs
    >>> def add(batch):
    ...     return (batch["a"] + batch["b"]) % 97
    >>> fs.predictor(add).name
    'add'
    """
    if not callable(function):
        raise ModelError(f"predictor: a {type(function).__name__} is not callable: give a function of the batch")
    return FunctionModel(function, InputFormat(images, audio))


def adapt(thing: Any, task: Task, seed: int) -> Model | None:
    """Return a model for a function, method or lambda (or a `functools.partial`) with one required argument, the batch.

    A function that requires `seed`, `task`, `device` or `prompt`, or nothing at all, is a factory, not a model.
    """
    if hasattr(thing, "predict") or not inspect.isroutine(_unwrap_partial(thing)):
        return None
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return None
    required = [
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if len(required) != 1 or required[0].kind is inspect.Parameter.KEYWORD_ONLY or required[0].name in OFFERED:
        return None
    return FunctionModel(thing)


def _digest_code(function: Any) -> str:
    if not isinstance(function, partial):
        return compute_fingerprint(function)
    # The text of a bound object may show its address, so its digest differs each time: the run then starts anew.
    bound = repr((function.args, sorted(function.keywords.items())))
    source = _digest_code(function.func)
    return source and compute_identity([source, bound])


def _unwrap_partial(thing: Any) -> Any:
    while isinstance(thing, partial):
        thing = thing.func
    return thing
