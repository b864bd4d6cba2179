"""What the rules' docstrings say of them: one record a rule, with its parameters and the splits that it makes.

A rule is a function of `splits/rules/<file>.py` that takes a table and gives an `Assignment`. Its docstring says what
it does; below `Parameters:` it has a line for each parameter that means something of its own there, and below
`Example:` a line of TOML where no split of the catalogue uses it. What parameters of one name mean everywhere is said
here, once.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.errors import BadDefinition, UnknownName
from ..core.plugins import find_files_by_name, load_module
from .catalogue import list_manifests
from .families import get_family

SHARED = {
    "seed": "names the random draws: another text, other draws; the split's full name by custom.",
    "draw": "the number of the draw of noise, from 1: other noise in the same training rows.",
    "label": "the field of the label, whole numbers from 0.",
    "classes": "how many classes the label has.",
    "rate": "the share of the training labels that the noise takes, from 0 to 1.",
    "train": 'how many rows train, drawn by `seed`; or the field and value that mark them, `{ part = "train" }`.',
    "among": "for each number field the most that a row may have; other rows are in no part.",
    "group_words": "words by the first of which that stands in a row it is grouped.",
    "files": "the published lists, which `[[files]]` of the definition name: not given as a parameter.",
}
"""What a parameter means where a rule's docstring has no line for it."""

_NAMED = 6
"""Splits that are named of those that a rule makes."""

_HEAD = re.compile(r"\n*^(Parameters|Example):\n", re.M)
_LINE = re.compile(r"^ {4}(\w+): ", re.M)


@dataclass(frozen=True)
class Parameter:
    """`default` is as TOML has it; "" where the parameter has to be given."""

    name: str
    type: str
    default: str
    what: str


@dataclass(frozen=True)
class Rule:
    """`name` is "length/threshold". `what` is prose; `splits` are the names of the families that the rule makes, and
    `example` has the keys of one definition that uses it."""

    name: str
    what: str
    parameters: tuple[Parameter, ...]
    kinds: tuple[str, ...]
    splits: tuple[str, ...]
    example: dict[str, Any]

    @property
    def title(self) -> str:
        """The first sentence."""
        return re.split(r"(?<=[a-z\d)`\]])[.:](?= [A-Z`]|$)", " ".join(self.what.split()))[0]

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "what": self.what,
            "parameters": [vars(parameter) for parameter in self.parameters],
            "kinds": list(self.kinds),
            "splits": list(self.splits),
            "example": self.example,
        }


def list_rules() -> dict[str, Rule]:
    """Every rule, of the package and of `FARSHIFT_PATH`, by name, sorted."""
    uses = _collect_uses()
    return {
        name: _describe_rule(name, call, *uses.get(name, ((), {})))
        for name, call in sorted(_find_rule_functions().items())
    }


def find_rule(name: str) -> Rule:
    """The rule of this name ("length/threshold"); `UnknownName` where there is none."""
    known = list_rules()
    if name not in known:
        raise UnknownName("rule", name, known)
    return known[name]


def format_example(rule: Rule) -> list[str]:
    """The lines of an example of a rule's use, as a definition has them; empty where there is none."""
    return [f"{name} = {to_toml(value)}" for name, value in rule.example.items()]


def format_usage(rule: Rule) -> str:
    """Which splits a rule makes, in words."""
    count = len(rule.splits)
    if not count:
        return "by no split of the catalogue"
    more = f" and {count - _NAMED} more" if count > _NAMED else ""
    return f"{', '.join(rule.splits[:_NAMED])}{more}"


def to_toml(value: Any) -> str:
    """A value as TOML writes it in a line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_format_key(key)} = {to_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(to_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _format_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _find_rule_functions() -> dict[str, Callable[..., Any]]:
    functions: dict[str, Callable[..., Any]] = {}
    files = sorted(name for name in find_files_by_name("splits/rules", ".py") if not name.startswith("_"))
    for file in files:
        rule_module = load_module("splits/rules", file, "rule")
        for name, value in vars(rule_module).items():
            own = inspect.isfunction(value) and value.__module__ == rule_module.__name__ and not name.startswith("_")
            if own and next(iter(inspect.signature(value).parameters), "") == "table":
                functions[f"{file}/{name}"] = value
    return functions


def _describe_rule(name: str, call: Callable[..., Any], uses: Uses, example: dict[str, Any]) -> Rule:
    what, lines, own = _parse_docstring(inspect.getdoc(call) or "")
    parameters = tuple(
        Parameter(
            parameter.name,
            _format_type(parameter),
            _format_default(parameter),
            lines.get(parameter.name, SHARED.get(parameter.name, "")),
        )
        for parameter in list(inspect.signature(call).parameters.values())[1:]
    )
    if unknown := sorted(set(lines) - {parameter.name for parameter in parameters}):
        raise BadDefinition(f"rule {name}: its docstring has a line for {unknown[0]!r}, which is no parameter")
    kinds = tuple(sorted({kind for kind, _ in uses}))
    return Rule(name, what, parameters, kinds, tuple(sorted({split for _, split in uses})), example or own)


def _parse_docstring(doc: str) -> tuple[str, dict[str, str], dict[str, Any]]:
    """A docstring's prose, its line for each parameter, and its example."""
    what, *sections = _HEAD.split(doc)
    by_heading = dict(zip(sections[::2], sections[1::2], strict=True))
    pieces = _LINE.split(by_heading.get("Parameters", ""))
    lines = {name: " ".join(text.split()) for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}
    return what.strip(), lines, tomllib.loads(inspect.cleandoc(by_heading.get("Example", "")))


def _format_type(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.removesuffix(" | None").replace("Conditions", "dict[str, list[str | int]]")


def _format_default(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return ""
    value = parameter.default
    return "none" if value is None else f'"{value}"' if isinstance(value, str) else str(value).lower()


Uses = tuple[tuple[str, str], ...]
"""The kind and the family of each split that a rule makes."""


def _collect_uses() -> dict[str, tuple[Uses, dict[str, Any]]]:
    """For each rule the kinds and families of the catalogue that it makes, and the shortest definition of one."""
    by_rule: dict[str, list[Any]] = {}
    for manifest in list_manifests():
        by_rule.setdefault(manifest.definition.rule, []).append(manifest.definition)
    uses = {}
    for rule, definitions in by_rule.items():
        shortest = min(definitions, key=lambda definition: (len(str(definition.parameters)), definition.name))
        example = {
            "name": shortest.name,
            "kind": shortest.kind,
            "label": shortest.label,
            "rule": rule,
            "parameters": shortest.parameters,
        }
        uses[rule] = (tuple((definition.kind, get_family(definition)) for definition in definitions), example)
    return uses
