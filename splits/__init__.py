"""What a split *is*: rows, manifests, rules, audits, and the catalogue of published manifests.

The package is callable, since its name is also the public function: `farshift.splits()` lists the catalogue.

>>> import farshift as fs
>>> modular = [split for split in fs.splits() if split["name"] == "modadd97/xi35"]
>>> [(split["kind"], split["source"], split["parts"]) for split in modular]
[('corrupted-label', 'modadd97', {'train': 4704, 'id_test': 4705})]
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Catalogue(ModuleType):
    def __call__(self) -> list[dict[str, Any]]:
        """Every split there is: name, version, kind, source, state, parts (name to rows), identity and more."""
        from .catalogue import listing

        return listing()


sys.modules[__name__].__class__ = _Catalogue
