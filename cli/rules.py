"""What `farshift splits rules` prints."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ..core.errors import FarshiftError
from ..splits.rule_docs import Rule, find_rule, format_example, format_usage, list_rules
from .paging import count_terminal_columns
from .terminal import emit_json, print_catalogue, print_line, print_table

_LONGEST = 100
"""The longest description of a rule in a list, in characters."""


def print_rules(words: Sequence[str], json: bool) -> None:
    """Rules as a list (all, those of a file, or those that have all the words), or one in full where its name is given;
    `FarshiftError` where nothing fits."""
    every = list_rules()
    if len(words) == 1 and (words[0] in every or "/" in words[0]):
        rule = find_rule(words[0])
        return emit_json(rule.to_dict()) if json else _print_rule(rule)
    of_file = {name for name in every if len(words) == 1 and name.partition("/")[0] == words[0]}
    matches = [
        rule
        for rule in every.values()
        if rule.name in of_file or (not of_file and all(word.lower() in _make_search_text(rule) for word in words))
    ]
    if not matches:
        raise FarshiftError(f"no rule has {' and '.join(map(repr, words))} in its name, kinds or description")
    if json:
        return emit_json([rule.to_dict() for rule in matches])
    rows = [
        [rule.name, ", ".join(rule.kinds) or "any", str(len(rule.splits)), _shorten_description(rule)]
        for rule in matches
    ]
    count = "1 rule" if len(matches) == 1 else f"{len(matches)} rules"
    return print_catalogue(["rule", "kinds", "splits", "description"], rows, f"{count}; NAME shows one in full")


def _shorten_description(rule: Rule) -> str:
    return textwrap.shorten(rule.title, _LONGEST, placeholder=" ..")


def _make_search_text(rule: Rule) -> str:
    return " ".join([rule.name, *rule.kinds, rule.what, *(parameter.name for parameter in rule.parameters)]).lower()


def _print_rule(rule: Rule) -> None:
    print_line(f"{rule.name} ({', '.join(rule.kinds)})" if rule.kinds else rule.name)
    for paragraph in rule.what.split("\n\n"):
        print_line("")
        for item in textwrap.wrap(
            " ".join(paragraph.split()), min(count_terminal_columns(), 120), break_on_hyphens=False
        ):
            print_line(item)
    rows = [[item.name, item.type, item.default or "required", item.what] for item in rule.parameters]
    print_table("", ["parameter", "type", "default", "description"], rows)
    if example := format_example(rule):
        print_line("example:")
        for item in example:
            print_line(f"    {item}")
    print_line(f"used by: {format_usage(rule)}")
