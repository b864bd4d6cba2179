"""Finding definition files and plug-in functions, the package's own and the user's.

The package's content lies beside its engines (`loaders/sources/*.toml`, `splits/rules/*.py` ..). A user's own lies in
any folder named in `FARSHIFT_PATH`, under the same relative paths. Adding a file is all there is to do.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, get_args

from .documents import parse_definition_text, read_text
from .errors import BadDefinition, UnknownName, suggest_names
from .limits import DEFINITIONS
from .settings import read_plugin_path

if TYPE_CHECKING:
    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")

PACKAGE = Path(__file__).parent.parent

REMEMBERED = 2048
"""Definitions that are cached, by the text of their file: a catalogue is read many times, and seldom changes."""


_also: ContextVar[tuple[Path, ...]] = ContextVar("_also", default=())


def list_plugin_folders() -> list[Path]:
    """The package, then the folders of `FARSHIFT_PATH`, then one that is being added to."""
    named = read_plugin_path()
    for home in named:
        if not home.is_dir():
            raise BadDefinition(f"FARSHIFT_PATH names {home}, which is not a folder")
    known = [PACKAGE, *named]
    added = [home for home in _also.get() if home.is_dir()]  # one that is yet to be written has nothing in it
    return known + [home for home in added if not any(home.samefile(folder) for folder in known)]


@contextmanager
def add_plugin_folder(home: Path) -> Iterator[None]:
    """While the context lasts, what lies in `home` counts as named in `FARSHIFT_PATH`."""
    before = _also.set((*_also.get(), home))
    try:
        yield
    finally:
        _also.reset(before)


def find_plugin_files(folder: str, pattern: str) -> Iterator[Path]:
    """The files matching `pattern` under `folder` (such as "loaders/sources") of every home, sorted."""
    yield from _list_package_files(folder, pattern)
    yield from _find_own_files(folder, pattern)


def _find_own_files(folder: str, pattern: str) -> Iterator[Path]:
    for home in list_plugin_folders()[1:]:
        yield from sorted((home / folder).glob(pattern))


@lru_cache(maxsize=REMEMBERED)
def _list_package_files(folder: str, pattern: str) -> tuple[Path, ...]:
    """Listed once a process: an installed package does not change under it, and a catalogue looks thousands of names
    up."""
    return tuple(sorted((PACKAGE / folder).glob(pattern)))


def find_files_by_name(folder: str, suffix: str) -> dict[str, Path]:
    """The files of `folder` by name, without suffix; `BadDefinition` where two homes have one of the same name. Files
    whose name begins with an underscore are helpers of the others, and left out."""
    paths = dict(_name_package_files(folder, suffix))
    for path in _find_own_files(folder, f"*{suffix}"):
        if (name := path.name.removesuffix(suffix)).startswith("_"):
            continue
        if name in paths and not path.samefile(paths[name]):
            raise BadDefinition(f"{path} and {paths[name]} have the same name: rename one")
        paths.setdefault(name, path)
    return paths


@lru_cache(maxsize=REMEMBERED)
def _name_package_files(folder: str, suffix: str) -> dict[str, Path]:
    files = {path.name.removesuffix(suffix): path for path in _list_package_files(folder, f"*{suffix}")}
    return {name: path for name, path in files.items() if not name.startswith("_")}


def read_definition(path: Path, model: type[M]) -> M:
    """A TOML file as a validated definition; `BadDefinition` names the file and lists what is wrong in it."""
    definition: M = _parse_definition(read_text(path), path, model)
    return definition


@lru_cache(maxsize=REMEMBERED)
def _parse_definition(text: str, path: Path, model: type[M]) -> M:
    return validate_record(parse_definition_text(text, path), path, model)


def validate_record(record: dict[str, Any], path: Path, model: type[M]) -> M:
    """A record read from `path` as a definition; `BadDefinition` lists what is wrong in it."""
    from pydantic import ValidationError

    try:
        return model.model_validate(record)
    except ValidationError as error:
        wrong = "; ".join(dict.fromkeys(describe_problem(item, model) for item in error.errors()))
        raise BadDefinition(f"{path}: {wrong}") from error


_FORMS = {"model_type": "a table, { .. }", "dict_type": "a table, { .. }", "list_type": "a list, [ .. ]"}


def describe_problem(item: Any, model: type[BaseModel]) -> str:
    """A problem of pydantic's in a draft's own words."""
    keys = [key for key in map(str, item["loc"]) if "[" not in key]  # without the members of a union
    where = ".".join(keys)
    fields = model.model_fields
    for key in keys[:-1]:  # of a table in the table, if that is a model too
        kind = fields[key].annotation if key in fields else None
        fields = next((part.model_fields for part in (kind, *get_args(kind)) if hasattr(part, "model_fields")), {})
    if item["type"] == "extra_forbidden":
        return f"{where}: no such key{f': {suggest_names(keys[-1], fields)}' if fields else ''}"
    if item["type"] == "string_pattern_mismatch" and keys[-1] in fields and fields[keys[-1]].description:
        return f"{where} = {item['input']!r}: use {fields[keys[-1]].description}"
    if item["type"] in _FORMS:
        return f"{where} = {reprlib.repr(item['input'])}: write {_FORMS[item['type']]}"
    return f"{where}: {item['msg'].removeprefix('Value error, ')}".removeprefix(": ")


def load_module(folder: str, name: str, what: str) -> ModuleType:
    """The module `name` under `folder` (such as "splits/rules"), of the package or a user's folder."""
    path = find_module_file(folder, name, what)
    if path.is_relative_to(PACKAGE):
        package = __package__.rsplit(".", 1)[0]
        return importlib.import_module(f"{package}.{folder.replace('/', '.')}.{name}")
    module_name = f"farshift_plugin_{sha256(str(path.resolve()).encode()).hexdigest()[:12]}_{name}"
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, path)
        if spec is None or spec.loader is None:
            raise BadDefinition(f"{path}: cannot be imported")
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = loaded
        try:
            spec.loader.exec_module(loaded)
        except BaseException as error:  # whatever happens, no half-imported module stays
            del sys.modules[module_name]
            if isinstance(error, MemoryError) or not isinstance(error, Exception):
                raise
            raise BadDefinition(f"{path}: {type(error).__name__} when imported: {error}") from error
    return sys.modules[module_name]


class NamedDefinition(Protocol):
    """A definition with a name and the file it came from."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> Path: ...


N = TypeVar("N", bound=NamedDefinition)


def read_all_definitions(folder: str, read: Callable[[Path], N | Iterable[N]], what: str) -> dict[str, N]:
    """Every definition of `folder`, by name, sorted; `BadDefinition` where two have the same name. `read` gives the one
    definition of a file, or the many of a family. Each call gets copies, so that what a definition remembers of
    manifests and data is as old as the call."""
    return {name: copy_definition(shared) for name, shared in sorted(index_definitions(folder, read, what).items())}


def index_definitions(folder: str, read: Callable[[Path], N | Iterable[N]], what: str) -> dict[str, N]:
    """As `read_all_definitions`, in any order and shared by all calls: to look a name up, and copy what it names. The
    package's are read once a process."""
    package = _read_package_definitions(folder, read, what)
    return _add_definitions(dict(package), _find_own_files(folder, "*.toml"), read, what)


def copy_definition(definition: N) -> N:
    """As `copy.copy` would, a hundred times as fast."""
    copied = object.__new__(type(definition))
    vars(copied).update(vars(definition))
    return copied


@lru_cache(maxsize=REMEMBERED)
def _read_package_definitions(folder: str, read: Callable[[Path], N | Iterable[N]], what: str) -> dict[str, N]:
    return _add_definitions({}, _list_package_files(folder, "*.toml"), read, what)


def _add_definitions(
    definitions: dict[str, N], paths: Iterable[Path], read: Callable[[Path], N | Iterable[N]], what: str
) -> dict[str, N]:
    for path in paths:
        read_of = read(path)
        for definition in read_of if isinstance(read_of, Iterable) else (read_of,):
            if definition.name in definitions:
                raise BadDefinition(
                    f"{path}: a {what} named {definition.name!r} exists already: {definitions[definition.name].path}"
                )
            definitions[definition.name] = definition
    return definitions


def find_definition(folder: str, name: str, read: Callable[[Path], N], what: str) -> N | None:
    """The definition `name` of `folder`, as in `read_all_definitions`; None if there is none. The package has each in a
    file of its name, and of its files only that one is read; a user's own may lie in any file."""
    package = {path.stem: path for path in _list_package_files(folder, "*.toml")}
    own = _add_definitions({}, _find_own_files(folder, "*.toml"), read, what)
    for twice in sorted(own.keys() & package.keys()):
        raise BadDefinition(f"{own[twice].path}: a {what} named {twice!r} exists already: {package[twice]}")
    return read(package[name]) if name in package else own.get(name)


def find_module_file(folder: str, name: str, what: str) -> Path:
    """The file of `load_module(place, name, what)`."""
    paths = find_files_by_name(folder, ".py")
    if name not in paths:
        raise UnknownName(what, name, paths)
    return paths[name]


def load_function(folder: str, path: str, what: str) -> Any:
    """The function `file/name` under `folder`, such as "length/threshold" under "splits/rules"."""
    file, _, name = path.partition("/")
    holder = load_module(folder, file, what)
    known = sorted(
        key
        for key, value in vars(holder).items()
        if callable(value) and not key.startswith("_") and getattr(value, "__module__", "") == holder.__name__
    )
    if name not in known:
        raise UnknownName(what, path, (f"{file}/{key}" for key in known))
    return getattr(holder, name)


_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def read_family(path: Path, model: type[M]) -> list[M]:
    """The definitions that a TOML file stands for, such as five draws of three noise rates, in the order of its axes;
    `BadDefinition` names the file and lists what is wrong in it.

    Each `[[vary]]` table of the file is an axis: its lists, all of one length, are read side by side. The axes are
    multiplied. In every other string of the file `{name}` becomes the value of that name; a string that is nothing but
    `"{name}"` becomes the value itself, with its type. A file without `[[vary]]` stands for itself. `[only."a/b"]`
    gives keys that the definition called `a/b` has instead of the file's."""
    return list(_parse_family(read_text(path), path, model))


@lru_cache(maxsize=REMEMBERED)
def _parse_family(text: str, path: Path, model: type[M]) -> tuple[M, ...]:
    return tuple(
        validate_record(record, path, model) for record in expand_family(parse_definition_text(text, path), path)
    )


def expand_family(record: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """The records that `record`, read from `path`, stands for."""
    rest = {key: value for key, value in record.items() if key not in ("vary", "only")}
    tables, only = record.get("vary", []), record.get("only", {})
    if not isinstance(tables, list):
        raise BadDefinition(f"{path}: vary: write [[vary]], a table of lists")
    if not isinstance(only, dict) or not all(isinstance(own, dict) for own in only.values()):
        raise BadDefinition(f'{path}: only: write [only."NAME"], a table of keys for the definition of that name')
    axes = [_read_axis(table, path) for table in tables]
    if (count := prod(map(len, axes))) > DEFINITIONS:
        raise BadDefinition(f"{path}: vary: stands for {count:,} definitions; at most {DEFINITIONS:,} are read")
    used: set[str] = set()
    named: set[str] = set()
    for chosen in product(*axes):
        values = {name: value for choice in chosen for name, value in choice.items()}
        if len(values) < sum(map(len, chosen)):
            raise BadDefinition(f"{path}: vary: a name is on two axes")
        definition = _fill_placeholders(rest, values, used)
        name = str(definition.get("name"))
        named.add(name)
        yield definition | only.get(name, {})
    if unused := sorted({name for axis in axes for name in axis[0]} - used):
        raise BadDefinition(f"{path}: vary: nothing in the file uses {', '.join(f'{{{name}}}' for name in unused)}")
    if absent := sorted(only.keys() - named):
        raise BadDefinition(f"{path}: only: the file defines no {', '.join(absent)}")


def _read_axis(table: Any, path: Path) -> list[dict[str, Any]]:
    """One `[[vary]]` table as its choices, each a value for every name."""
    if not isinstance(table, dict) or not table or not all(isinstance(values, list) for values in table.values()):
        raise BadDefinition(f"{path}: vary: each [[vary]] table needs one or more names, with a list for each")
    lengths = {name: len(values) for name, values in table.items()}
    if len(set(lengths.values())) > 1 or not all(lengths.values()):
        counts = ", ".join(f"{name} has {count}" for name, count in lengths.items())
        raise BadDefinition(f"{path}: vary: the lists of one table must have the same length, not zero: {counts}")
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def _fill_placeholders(value: Any, values: dict[str, Any], used: set[str]) -> Any:
    """`value` with every place in its strings filled. A place that no axis names is left: prompts have their own."""
    if isinstance(value, dict):
        return {
            str(_fill_placeholders(key, values, used)): _fill_placeholders(item, values, used)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_fill_placeholders(item, values, used) for item in value]
    if not isinstance(value, str):
        return value
    used.update(name for name in _PLACEHOLDER.findall(value) if name in values)
    full_match = _PLACEHOLDER.fullmatch(value)
    if full_match and full_match[1] in values:
        return values[full_match[1]]
    return _PLACEHOLDER.sub(lambda match: str(values.get(match[1], match[0])), value)
