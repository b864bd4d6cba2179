"""The documentation of rules, from their docstrings: one record per rule, with its parameters and its splits.

A rule is a function in `splits/rules/<file>.py` from a table to an `Assignment`. Its docstring says what it does; below
`Parameters:` it has a line for each parameter that is specific to the rule, and below `Example:` a line of TOML if no
split of the catalogue uses it. Parameters with one meaning everywhere are described here once.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ..core.errors import BadDefinition, UnknownName
from ..core.plugins import find_files_by_name, load_module
from ..core.text import write_inline
from .catalogue import get_family, list_manifests

SHARED = {
    "seed": "the seed of the random draws, a string; by convention the split's full name.",
    "draw": "the index of the noise draw, from 1: draws differ in their noise, not in their training rows.",
    "label": "the label field, integers from 0.",
    "classes": "the number of classes of the label.",
    "rate": "the share of the training labels that the noise affects, from 0 to 1.",
    "train": 'the number of training rows, drawn by `seed`; or a field and its value in them: `{ part = "train" }`.',
    "among": "for each numeric field the largest allowed value; rows that exceed it are dropped.",
    "group_words": "words that name the groups: a row's group is the first of them that occurs in it.",
    "files": "the published lists that `[[files]]` of the definition names; not set as a parameter.",
}
"""The meaning of a parameter if the rule's docstring has no line for it."""

_NAMED = 6
"""The number of a rule's splits that are named."""

_HEAD = re.compile(r"\n*^(Parameters|Example):\n", re.M)
_LINE = re.compile(r"^ {4}(\w+): ", re.M)


@dataclass(frozen=True)
class Parameter:
    """`default` is in TOML; "" if the parameter is required."""

    name: str
    type: str
    default: str
    what: str


@dataclass(frozen=True)
class Rule:
    """`name` is "length/threshold". `what` is prose; `splits` are the names of the families that use the rule, and
    `example` has the keys of one definition that uses it."""

    name: str
    what: str
    parameters: tuple[Parameter, ...]
    kinds: tuple[str, ...]
    splits: tuple[str, ...]
    example: dict[str, Any]

    @property
    def sentences(self) -> list[str]:
        """The sentences of the description, without their full stops."""
        return re.split(r"(?<=[a-z\d)`\]])[.:](?: (?=[A-Z`])|$)", " ".join(self.what.split()))

    @property
    def title(self) -> str:
        """The first sentence of the description."""
        return self.sentences[0]

    def to_dict(self) -> dict[str, Any]:
        record = asdict(self)
        return record | {name: list(record[name]) for name in ("parameters", "kinds", "splits")}


def list_rules() -> dict[str, Rule]:
    """Return every rule of the package and of `FARSHIFT_PATH` by name, sorted."""
    uses = _collect_uses()
    return {
        name: _describe_rule(name, call, *uses.get(name, ((), {})))
        for name, call in sorted(_find_rule_functions().items())
    }


def find_rule(name: str) -> Rule:
    """Return the rule of this name ("length/threshold"); `UnknownName` if there is none."""
    known = list_rules()
    if name not in known:
        raise UnknownName("rule", name, known)
    return known[name]


def find_rule_title(name: str) -> str:
    """Return the first sentence of a rule's description, without a look at the catalogue; `UnknownName` if there is
    none."""
    known = _find_rule_functions()
    if name not in known:
        raise UnknownName("rule", name, known)
    return _describe_rule(name, known[name], (), {}).title


def format_example(rule: Rule) -> list[str]:
    """Return the lines of a definition that shows the rule's use; empty if there is none."""
    return [f"{name} = {write_inline(value)}" for name, value in rule.example.items()]


def format_usage(rule: Rule) -> str:
    """Describe which splits use a rule."""
    count = len(rule.splits)
    if not count:
        return "no split of the catalogue"
    more = f" and {count - _NAMED} more" if count > _NAMED else ""
    return f"{', '.join(rule.splits[:_NAMED])}{more}"


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
    """Split a docstring into its prose, its lines of parameters, and its example."""
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
"""The kind and the family of each split that uses a rule."""


def _collect_uses() -> dict[str, tuple[Uses, dict[str, Any]]]:
    """Return for each rule the kinds and families of the catalogue that use it, and the shortest definition of one."""
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
