"""A digest of a model's code, so that an unfinished run is resumed only with the same model."""

from __future__ import annotations

import inspect
import sys
from hashlib import sha256
from typing import Any


def compute_fingerprint(model: Any) -> str:
    """Return sha256 over the source of a model's class or factory, an estimator's parameters and a module's weights.

    Empty if no source is available. Other attributes of an object are not included: what determines them belongs in the
    factory."""
    subject = model if inspect.isroutine(model) or isinstance(model, type) else type(model)
    try:
        text = inspect.getsource(subject)
    except (OSError, TypeError):
        return ""
    if subject is not model and hasattr(model, "get_params"):
        text += repr(model)
    if subject is not model and callable(getattr(model, "state_dict", None)):
        text += _digest_weights(model.state_dict())
    return sha256(text.encode()).hexdigest()


def _digest_weights(state: Any) -> str:
    """Return a digest of a torch module's parameters and buffers, by name."""
    digest = sha256()
    for name in sorted(state):
        tensor = state[name]
        digest.update(name.encode())
        if hasattr(tensor, "detach"):
            # As bytes: some torch types (bfloat16) do not exist in NumPy.
            digest.update(str(tensor.dtype).encode())
            digest.update(
                tensor.detach().cpu().contiguous().flatten().view(sys.modules["torch"].uint8).numpy().tobytes()
            )
    return digest.hexdigest()
