"""The rules as a page: a section for each file of rules, made of their docstrings."""

from __future__ import annotations

import json
import re
import textwrap
from itertools import groupby
from typing import Any

from .rule_docs import Rule, file_docs, rules

_WIDTH = 120
_NAMED = 6
"""Splits that are named of those that a rule makes."""


def markdown() -> str:
    """The page in Markdown."""
    lines = [
        "# The rules",
        "",
        "This page is made by `farshift splits rules --markdown > docs/rules.md` from the rules' docstrings. A rule is",
        "named in a definition ([own-splits.md](own-splits.md)) by its file and its name, and takes the parameters",
        "below; `farshift splits rules NAME` prints one. A rule of your own is a function of the same form in",
        "`splits/rules/<file>.py` of your folder. What a rule gives of a row (part, group, severity, weight, label) is",
        "frozen in the split's manifest.",
    ]
    docs = file_docs()
    for file, group in groupby(rules().values(), lambda rule: rule.name.partition("/")[0]):
        lines += ["", f"## {file}", "", *_prose(docs[file])]
        for rule in group:
            lines += ["", f"### {rule.name}", "", *_rule(rule)]
    return "\n".join(lines) + "\n"


def as_toml(value: Any) -> str:
    """A value as TOML writes it in a line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {as_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def example_of(rule: Rule) -> list[str]:
    """The lines of an example of a rule's use, as a definition has them; empty where there is none."""
    return [f"{name} = {as_toml(value)}" for name, value in rule.example.items()]


def used_by(rule: Rule) -> str:
    """Which splits a rule makes, in words."""
    count = len(rule.splits)
    if not count:
        return "by no split of the catalogue"
    more = f" and {count - _NAMED} more" if count > _NAMED else ""
    return f"{', '.join(rule.splits[:_NAMED])}{more}"


def _rule(rule: Rule) -> list[str]:
    lines = [*_prose(rule.what), "", "| parameter | type | default | |", "|---|---|---|---|"]
    for one in rule.parameters:
        cells = (f"`{one.name}`", f"`{one.type}`", f"`{one.default}`" if one.default else "", one.what)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    example = [line for line in example_of(rule) if line.startswith("parameters")]
    if example:
        name = rule.example.get("name")
        lines += ["", f"Example{f' ({name})' if name else ''}: `{example[0]}`."]
    kinds = f" ({', '.join(rule.kinds)})" if rule.kinds else ""
    return [*lines, "", *textwrap.wrap(f"Used{kinds}: {used_by(rule)}.", _WIDTH, break_on_hyphens=False)]


def _prose(text: str) -> list[str]:
    """Paragraphs, filled."""
    paragraphs = re.split(r"\n\s*\n", text)
    filled = [textwrap.wrap(" ".join(one.split()), _WIDTH, break_on_hyphens=False) for one in paragraphs]
    return [line for paragraph in filled for line in (*paragraph, "")][:-1]
