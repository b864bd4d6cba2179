"""What code a model is: so that an unfinished run never goes on with another model's."""

from __future__ import annotations

import inspect
from hashlib import sha256
from typing import Any


def fingerprint(model: Any) -> str:
    """sha256 over the source of a model's class or factory, and over an estimator's parameters.

    Empty where there is no source to be had. Weights inside an object are not in it: what decides about them belongs
    in the factory."""
    subject = model if inspect.isroutine(model) or isinstance(model, type) else type(model)
    try:
        text = inspect.getsource(subject)
    except (OSError, TypeError):
        return ""
    if subject is not model and hasattr(model, "get_params"):
        text += repr(model)
    return sha256(text.encode()).hexdigest()
