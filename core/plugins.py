"""Finding definition files and plug-in functions, the package's own and the user's.

The package's content lies beside its engines (`loaders/sources/*.toml`, `splits/rules/*.py` ..). A user's own lies in
any folder named in `FARSHIFT_PATH`, under the same relative paths. Adding a file is all there is to do.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .errors import BadDefinition, UnknownName

if TYPE_CHECKING:
    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")

PACKAGE = Path(__file__).parent.parent

REMEMBERED = 2048
"""Definitions that are cached, by the text of their file: a catalogue is read many times, and seldom changes."""


_also: ContextVar[tuple[Path, ...]] = ContextVar("_also", default=())


def homes() -> list[Path]:
    """The package, then the folders of `FARSHIFT_PATH`, then one that is being added to."""
    named = [Path(entry).expanduser() for entry in os.environ.get("FARSHIFT_PATH", "").split(os.pathsep) if entry]
    for home in named:
        if not home.is_dir():
            raise BadDefinition(f"FARSHIFT_PATH names {home}, which is not a folder")
    known = [PACKAGE, *named]
    added = [home for home in _also.get() if home.is_dir()]  # one that is yet to be written has nothing in it
    return known + [home for home in added if not any(home.samefile(one) for one in known)]


@contextmanager
def also(home: Path) -> Iterator[None]:
    """While the context lasts, what lies in `home` counts as named in `FARSHIFT_PATH`."""
    before = _also.set((*_also.get(), home))
    try:
        yield
    finally:
        _also.reset(before)


def files(place: str, pattern: str) -> Iterator[Path]:
    """The files matching `pattern` under `place` (such as "loaders/sources") of every home, sorted."""
    for home in homes():
        yield from sorted((home / place).glob(pattern))


def named(place: str, suffix: str) -> dict[str, Path]:
    """The files of `place` by name, without suffix; `BadDefinition` where two homes have one of the same name. Files
    whose name begins with an underscore are helpers of the others, and left out."""
    found: dict[str, Path] = {}
    for path in files(place, f"*{suffix}"):
        if path.stem.startswith("_"):
            continue
        if path.stem in found and not path.samefile(found[path.stem]):
            raise BadDefinition(f"{path} and {found[path.stem]} have the same name: rename one")
        found.setdefault(path.stem, path)
    return found


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file; `BadDefinition` names the file, and the line where it cannot be read."""
    return toml_of(read_text(path), path)


def read_text(path: Path) -> str:
    """The text of a file; `BadDefinition` where it cannot be read."""
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadDefinition(f"{path}: not valid TOML: {error}") from error
    except OSError as error:
        raise BadDefinition(f"{path}: cannot be read: {error.strerror}") from error


def toml_of(text: str, path: Path) -> dict[str, Any]:
    """The TOML text of the file `path`; `BadDefinition` names the file, and the line where it cannot be read."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadDefinition(f"{path}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise BadDefinition(f"{path}: not valid TOML: nested too deeply") from error


def read_definition(path: Path, model: type[M]) -> M:
    """A TOML file as a validated definition; `BadDefinition` names the file and lists what is wrong in it."""
    found: M = _definition(read_text(path), path, model)
    return found


@lru_cache(maxsize=REMEMBERED)
def _definition(text: str, path: Path, model: type[M]) -> M:
    return validated(toml_of(text, path), path, model)


def validated(record: dict[str, Any], path: Path, model: type[M]) -> M:
    """A record read from `path` as a definition; `BadDefinition` lists what is wrong in it."""
    from pydantic import ValidationError

    try:
        return model.model_validate(record)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise BadDefinition(f"{path}: {wrong}") from error


def module(place: str, name: str, what: str) -> ModuleType:
    """The module `name` under `place` (such as "splits/rules"), of the package or a user's folder."""
    path = module_file(place, name, what)
    if path.is_relative_to(PACKAGE):
        package = __package__.rsplit(".", 1)[0]
        return importlib.import_module(f"{package}.{place.replace('/', '.')}.{name}")
    own = f"farshift_plugin_{sha256(str(path.resolve()).encode()).hexdigest()[:12]}_{name}"
    if own not in sys.modules:
        spec = importlib.util.spec_from_file_location(own, path)
        if spec is None or spec.loader is None:
            raise BadDefinition(f"{path}: cannot be imported")
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[own] = loaded
        try:
            spec.loader.exec_module(loaded)
        except BaseException as error:  # whatever happens, no half-imported module stays
            del sys.modules[own]
            if isinstance(error, MemoryError) or not isinstance(error, Exception):
                raise
            raise BadDefinition(f"{path}: {type(error).__name__} when imported: {error}") from error
    return sys.modules[own]


class Named(Protocol):
    """A definition with a name and the file it came from."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> Path: ...


N = TypeVar("N", bound=Named)


def gathered(place: str, read: Callable[[Path], N | Iterable[N]], what: str) -> dict[str, N]:
    """Every definition of `place`, by name, sorted; `BadDefinition` where two have the same name. `read` gives the one
    definition of a file, or the many of a family."""
    found: dict[str, N] = {}
    for path in files(place, "*.toml"):
        read_of = read(path)
        for one in read_of if isinstance(read_of, Iterable) else (read_of,):
            if one.name in found:
                raise BadDefinition(f"{path}: a {what} named {one.name!r} is there already: {found[one.name].path}")
            found[one.name] = one
    return dict(sorted(found.items()))


def module_file(place: str, name: str, what: str) -> Path:
    """The file of `module(place, name, what)`."""
    found = named(place, ".py")
    if name not in found:
        raise UnknownName(what, name, found)
    return found[name]


def function(place: str, path: str, what: str) -> Any:
    """The function `file/name` under `place`, such as "length/threshold" under "splits/rules"."""
    file, _, name = path.partition("/")
    holder = module(place, file, what)
    known = sorted(
        key
        for key, value in vars(holder).items()
        if callable(value) and not key.startswith("_") and getattr(value, "__module__", "") == holder.__name__
    )
    if name not in known:
        raise UnknownName(what, path, (f"{file}/{key}" for key in known))
    return getattr(holder, name)
