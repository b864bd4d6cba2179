"""The rules as a page: a section for each file of rules, made of their docstrings."""

from __future__ import annotations

import json
import re
import textwrap
from itertools import groupby
from typing import Any

from .rule_docs import Rule, list_rules, read_file_docs

_WIDTH = 120
_NAMED = 6
"""Splits that are named of those that a rule makes."""


def render_markdown() -> str:
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
    docs = read_file_docs()
    for file, group in groupby(list_rules().values(), lambda rule: rule.name.partition("/")[0]):
        lines += ["", f"## {file}", "", *_fill_prose(docs[file])]
        for rule in group:
            lines += ["", f"### {rule.name}", "", *_render_rule(rule)]
    return "\n".join(lines) + "\n"


def to_toml(value: Any) -> str:
    """A value as TOML writes it in a line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_format_key(key)} = {to_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(to_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _format_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


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


def _render_rule(rule: Rule) -> list[str]:
    lines = [*_fill_prose(rule.what), "", "| parameter | type | default | |", "|---|---|---|---|"]
    for parameter in rule.parameters:
        cells = (
            f"`{parameter.name}`",
            f"`{parameter.type}`",
            f"`{parameter.default}`" if parameter.default else "",
            parameter.what,
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    example = [line for line in format_example(rule) if line.startswith("parameters")]
    if example:
        name = rule.example.get("name")
        lines += ["", f"Example{f' ({name})' if name else ''}: `{example[0]}`."]
    kinds = f" ({', '.join(rule.kinds)})" if rule.kinds else ""
    return [*lines, "", *textwrap.wrap(f"Used{kinds}: {format_usage(rule)}.", _WIDTH, break_on_hyphens=False)]


def _fill_prose(text: str) -> list[str]:
    """Paragraphs, filled."""
    paragraphs = re.split(r"\n\s*\n", text)
    filled = [textwrap.wrap(" ".join(block.split()), _WIDTH, break_on_hyphens=False) for block in paragraphs]
    return [line for paragraph in filled for line in (*paragraph, "")][:-1]
