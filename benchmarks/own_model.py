"""A model named on the command line: `file.py:factory` or `package.module:attribute`, the user's own code."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from ..loaders.cache import file_sha256
from ..splits.errors import FarshiftError, UnknownName


def find_model(name: str) -> tuple[Any, str]:
    """The object that `name` points at, and the sha256 of its file; one clear line where it points at nothing."""
    place, colon, attribute = name.rpartition(":")
    if not colon or not place or not attribute:
        raise FarshiftError(f"model {name!r}: write it as file.py:factory or package.module:attribute")
    try:
        holder = _file(Path(place)) if place.endswith(".py") else _module(place)
    except FarshiftError:
        raise
    except (Exception, SystemExit) as error:
        line = (str(error).strip() or "no message").splitlines()[0]
        raise FarshiftError(f"model {name!r}: importing {place} raised {type(error).__name__}: {line}") from error
    if not hasattr(holder, attribute):
        raise UnknownName(f"attribute of {place}", attribute, (key for key in vars(holder) if not key.startswith("_")))
    file = getattr(holder, "__file__", None)
    return getattr(holder, attribute), file_sha256(Path(file)) if file else ""


def _module(name: str) -> Any:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` would
    return importlib.import_module(name)


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
