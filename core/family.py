"""Families: one file that stands for many definitions, such as five draws of three noise rates.

Each `[[vary]]` table of a TOML file is an axis: its lists, all of one length, are read side by side. The axes are
multiplied. In every other string of the file `{name}` becomes the value of that name; a string that is nothing but
`"{name}"` becomes the value itself, with its type. A file without `[[vary]]` stands for itself. `[only."a/b"]` gives
keys that the definition called `a/b` has instead of the file's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import BadDefinition
from .plugins import REMEMBERED, parse_toml, read_text, validate_record

if TYPE_CHECKING:
    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")

_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def read_family(path: Path, model: type[M]) -> list[M]:
    """The definitions that a TOML file stands for, in the order of its axes; `BadDefinition` names the file and lists
    what is wrong in it."""
    return list(_parse_family(read_text(path), path, model))


@lru_cache(maxsize=REMEMBERED)
def _parse_family(text: str, path: Path, model: type[M]) -> tuple[M, ...]:
    return tuple(validate_record(record, path, model) for record in expand_family(parse_toml(text, path), path))


def expand_family(record: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """The records that `record`, read from `path`, stands for."""
    rest = {key: value for key, value in record.items() if key not in ("vary", "only")}
    tables, only = record.get("vary", []), record.get("only", {})
    if not isinstance(tables, list):
        raise BadDefinition(f"{path}: vary: write [[vary]], a table of lists")
    if not isinstance(only, dict) or not all(isinstance(own, dict) for own in only.values()):
        raise BadDefinition(f'{path}: only: write [only."NAME"], a table of keys for the definition of that name')
    axes = [_read_axis(table, path) for table in tables]
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
