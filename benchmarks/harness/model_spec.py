"""A model named on the command line: `scheme:rest` for an adapter, or the user's own code, `file.py:factory` or
`package.module:attribute`."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from ...core.errors import BadDefinition, FarshiftError, UnknownName, get_first_line
from ...core.files import compute_file_sha256
from ...core.plugins import find_files_by_name, load_module

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def find_model(name: str, options: Mapping[str, str] = NO_OPTIONS) -> tuple[Any, str]:
    """Return the object or factory of `name`, and a digest of the code that determines its predictions.

    `scheme:rest` goes to the adapter of that scheme, with the options. Anything else is the user's own code, which has
    no options. `FarshiftError`, in one line, if it does not exist.
    """
    adapters = load_schemes()
    scheme, _, rest = name.partition(":")
    if scheme in adapters:
        factory = adapters[scheme].from_spec(rest, options)
        return factory, factory.code
    source, _, attribute = name.rpartition(":")
    if not attribute or not (source.endswith(".py") or _DOTTED.fullmatch(source)):
        if rest and _DOTTED.fullmatch(scheme):
            raise UnknownName("kind of model", scheme, adapters)
        spelled = ", ".join(f"{scheme}:.." for scheme in adapters)
        raise FarshiftError(f"model {name!r}: write it as file.py:factory, package.module:attribute, or {spelled}")
    if options:
        raise FarshiftError(
            f"model {name!r} has no options, but {', '.join(sorted(options))} is given: set it in the code"
        )
    return _load_own_model(name, source, attribute, adapters)


def read_options(texts: Sequence[str]) -> dict[str, str]:
    """Parse options from texts `key=value`. `FarshiftError` says which one is invalid, without repeating it: a value
    may be a secret."""
    options: dict[str, str] = {}
    for number, text in enumerate(texts, 1):
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise FarshiftError(f"option {number} of {len(texts)} is not key=value")
        if key in options:
            raise FarshiftError(f"the option {key} is given twice")
        options[key] = value
    return options


def load_schemes() -> dict[str, ModuleType]:
    """Load the adapters that make a model from a text, by scheme, sorted.

    Their modules have `SCHEME` and `from_spec(rest, options) -> factory`: `rest` is the text after the scheme and its
    colon, `options` are strings by name. `factory(seed, task, device, prompt)` returns a new model. The factory has
    `name`, for the run card, and `code`, a digest of all that determines predictions, without secrets.
    """
    known: dict[str, ModuleType] = {}
    for name in sorted(find_files_by_name("benchmarks/adapters", ".py")):
        adapter = load_module("benchmarks/adapters", name, "adapter")
        scheme = getattr(adapter, "SCHEME", None)
        if scheme in known:
            raise BadDefinition(f"{adapter.__file__}: the scheme {scheme!r} is used by {known[scheme].__file__}")
        if scheme is not None:
            known[scheme] = adapter
    return dict(sorted(known.items()))


def _load_own_model(name: str, source: str, attribute: str, adapters: Mapping[str, ModuleType]) -> tuple[Any, str]:
    try:
        holder = _import_file(Path(source)) if source.endswith(".py") else _import_module(source)
    except FarshiftError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == source:
            raise FarshiftError(
                f"model {name!r}: there is neither a module nor a kind of model named {source!r}; "
                f"kinds are {', '.join(adapters)}"
            ) from error
        line = get_first_line(error, silent="no message")
        raise FarshiftError(f"model {name!r}: importing {source} raised {type(error).__name__}: {line}") from error
    if not hasattr(holder, attribute):
        raise UnknownName(f"attribute of {source}", attribute, (key for key in vars(holder) if not key.startswith("_")))
    file = getattr(holder, "__file__", None)
    return getattr(holder, attribute), compute_file_sha256(Path(file)) if file else ""


def _import_module(name: str) -> Any:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    return importlib.import_module(name)


def _import_file(path: Path) -> Any:
    if not path.is_file():
        raise FarshiftError(f"model file {path} does not exist")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise FarshiftError(f"model file {path} cannot be imported")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, loaded)
    sys.path.insert(0, str(path.parent.resolve()))  # so that it can import modules of its folder
    spec.loader.exec_module(loaded)
    return loaded
