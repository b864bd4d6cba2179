"""Making models: from a user's object, estimator or factory to a new model per seed."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ...core.errors import ModelError
from ..adapters import adapt_model
from ..model import Model, Task
from ..prompting.prompt import Prompt

Factory = Callable[[int, Mapping[str, Any]], Model]
"""A function from a seed and a setting's values to a new model."""


def make_factory(model: Any, task: Task, device: str = "cpu", prompt: Prompt | None = None) -> Factory:
    """Return a function from (seed, setting) to a new model. `ModelError` for an object of another kind."""
    offered = {"task": task, "device": device, "prompt": prompt}

    def make(seed: int, setting: Mapping[str, Any]) -> Model:
        configured = _apply_setting(model, setting) if _has_parameters(model) else model
        adapted_model: Model | None = adapt_model(configured, task, seed)
        if adapted_model is not None:
            if device != "cpu" and hasattr(adapted_model, "to"):
                adapted_model.to(device)
            return adapted_model
        if isinstance(model, type) or not hasattr(model, "predict"):
            return _make_model(model, {"seed": seed, **offered}, setting, task, seed)
        if setting:
            raise ModelError(f"a {type(model).__name__} does not accept settings: give a factory that does")
        ready: Model = copy.deepcopy(model) if hasattr(model, "fit") else model
        return ready

    if not callable(model) and not hasattr(model, "predict") and adapt_model(model, task, 0) is None:
        raise ModelError(f"a {type(model).__name__} is not a model: it has no predict and is not a factory")
    return make


def _has_parameters(model: Any) -> bool:
    return not isinstance(model, type) and hasattr(model, "set_params") and hasattr(model, "get_params")


def _apply_setting(estimator: Any, setting: Mapping[str, Any]) -> Any:
    """Copy an estimator and set a setting's values; the user's estimator is not changed."""
    if not setting:
        return estimator
    known = estimator.get_params(deep=True)
    for name in setting:
        if name not in known:
            raise ModelError(f"{type(estimator).__name__} has no parameter {name!r}")
    return copy.deepcopy(estimator).set_params(**setting)


def _make_model(
    make: Callable[..., Any], offered: dict[str, Any], setting: Mapping[str, Any], task: Task, seed: int
) -> Model:
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):
        parameters = inspect.signature(lambda: None).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for name in setting:
        if name in offered:
            raise ModelError(f"{name!r} is set by the harness and cannot be in a setting")
        if not open_ended and name not in parameters:
            raise ModelError(f"the factory has no argument {name!r}, which is in a setting")
    instance = make(
        **{key: value for key, value in (offered | dict(setting)).items() if open_ended or key in parameters}
    )
    ready = adapt_model(instance, task, seed) or instance
    if not isinstance(ready, Model):
        raise ModelError(f"the factory returned a {type(instance).__name__}, which has no predict")
    return ready


def get_model_name(model: Any) -> str:
    """Return a name for the run card: the function's, class's or object's name, or a pipeline's steps."""
    if isinstance(own := getattr(model, "name", None), str) and own:
        return own[:100]
    steps = getattr(model, "steps", None)
    if isinstance(steps, list) and steps and all(isinstance(step, tuple) and len(step) == 2 for step in steps):
        return "+".join(type(step).__name__ for _, step in steps)[:100]
    return str(getattr(model, "__name__", None) or type(model).__name__)
