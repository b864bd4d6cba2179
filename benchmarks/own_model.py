"""A model named on the command line: `file.py:factory` or `package.module:attribute`, the user's own code."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from ..splits.errors import FarshiftError, UnknownName


def find_model(name: str) -> Any:
    """The object that `name` points at; one clear line where it does not."""
    place, colon, attribute = name.rpartition(":")
    if not colon or not place or not attribute:
        raise FarshiftError(f"model {name!r}: write it as file.py:factory or package.module:attribute")
    try:
        holder = _file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except FarshiftError:
        raise
    except Exception as error:
        line = (str(error).strip() or "no message").splitlines()[0]
        raise FarshiftError(f"model {name!r}: importing {place} raised {type(error).__name__}: {line}") from error
    if not hasattr(holder, attribute):
        raise UnknownName(f"attribute of {place}", attribute, (key for key in vars(holder) if not key.startswith("_")))
    return getattr(holder, attribute)


def _file(path: Path) -> Any:
    if not path.is_file():
        raise FarshiftError(f"model file {path} does not exist")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FarshiftError(f"model file {path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.parent.resolve()))  # so that it can import its neighbours
    spec.loader.exec_module(module)
    return module
