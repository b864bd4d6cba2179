"""What `farshift splits rules` prints."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ..core.errors import FarshiftError
from ..splits.pages.rule_docs import Rule, find_rule, rules
from ..splits.pages.rules import example_of, markdown, used_by
from .paging import columns
from .terminal import block, catalogue, emit_json, line, table

_LONGEST = 100
"""Characters of what a rule does, in a list."""


def tell_rules(words: Sequence[str], as_markdown: bool, json: bool) -> None:
    """Rules as a list (all, those of a file, or those that have all the words), or one in full where its name is given;
    `FarshiftError` where nothing fits."""
    if as_markdown:
        if words or json:
            raise FarshiftError("--markdown is the page of all rules: leave out names, words and --json")
        return block(markdown().rstrip("\n"))
    every = rules()
    if len(words) == 1 and (words[0] in every or "/" in words[0]):
        rule = find_rule(words[0])
        return emit_json(rule.to_dict()) if json else _tell(rule)
    of_file = {name for name in every if len(words) == 1 and name.partition("/")[0] == words[0]}
    found = [
        rule
        for rule in every.values()
        if rule.name in of_file or (not of_file and all(word.lower() in _searched(rule) for word in words))
    ]
    if not found:
        raise FarshiftError(f"no rule has {' and '.join(map(repr, words))} in its name, kinds or description")
    if json:
        return emit_json([rule.to_dict() for rule in found])
    rows = [[rule.name, ", ".join(rule.kinds) or "any", str(len(rule.splits)), _short(rule)] for rule in found]
    count = "1 rule" if len(found) == 1 else f"{len(found)} rules"
    return catalogue(["rule", "kinds", "splits", "what it does"], rows, f"{count}; NAME shows one in full")


def _short(rule: Rule) -> str:
    return textwrap.shorten(rule.title, _LONGEST, placeholder=" ..")


def _searched(rule: Rule) -> str:
    return " ".join([rule.name, *rule.kinds, rule.what, *(one.name for one in rule.parameters)]).lower()


def _tell(rule: Rule) -> None:
    line(f"{rule.name} ({', '.join(rule.kinds)})" if rule.kinds else rule.name)
    for paragraph in rule.what.split("\n\n"):
        line("")
        for one in textwrap.wrap(" ".join(paragraph.split()), min(columns(), 120), break_on_hyphens=False):
            line(one)
    rows = [[one.name, one.type, one.default or "required", one.what] for one in rule.parameters]
    table("", ["parameter", "type", "default", "what"], rows)
    if example := example_of(rule):
        line("example:")
        for one in example:
            line(f"    {one}")
    line(f"used: {used_by(rule)}")
