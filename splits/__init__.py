"""What a split *is*: rows, manifests, rules, audits, and the catalogue of published manifests.

The room is callable, since its name is also the public function: `farshift.splits()` lists the catalogue.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    def __call__(self) -> list[dict[str, Any]]:
        """Every split there is: name, version, kind, source, state, parts (name to rows), identity and more."""
        from .catalogue import listing

        return listing()


sys.modules[__name__].__class__ = _Room
