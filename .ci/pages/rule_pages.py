"""docs/rules/: an index of the rules that assign rows to parts, and a page a file of rules, from their docstrings."""

from __future__ import annotations

import inspect
from itertools import groupby

from farshift.core.plugins import load_module
from farshift.splits.rule_docs import Rule, format_example, format_usage, list_rules
from markdown_text import fill_prose, format_table, join_page

INTRODUCTION = """
A rule assigns the rows of a data source to parts: `train`, `id_val`, `id_test`, `ood_val`, `ood_test`. Rows that it
assigns to none are dropped. It may also give each row a group, a severity, a weight and a training label; the result is
frozen in the split's manifest. The definition of a split ([own splits](../own-splits.md)) names a rule by its file and
its name, such as `length/threshold`, and sets its parameters. `farshift splits rules NAME` prints the description of a
rule. To add a rule, write a function of the same form in `splits/rules/FILE.py` of your folder.
"""


def build_rule_pages() -> dict[str, str]:
    """The index, and the page of each file of rules by its file name."""
    pages, rows = {}, []
    for file, group in groupby(list_rules().values(), lambda rule: rule.name.partition("/")[0]):
        rules = list(group)
        description = inspect.getdoc(load_module("splits/rules", file, "rule")) or ""
        pages[f"{file}.md"] = join_page(
            f"# {file}", fill_prose(description), *map(_render_rule, rules), "[All rules](index.md)"
        )
        rows += [
            (f"[{rule.name}]({file}.md#{_make_anchor(rule)})", ", ".join(rule.kinds) or "any", rule.title)
            for rule in rules
        ]
    table = format_table(("rule", "kind of shift", "description"), rows)
    return {"index.md": join_page("# Split rules", INTRODUCTION, table)} | pages


def _make_anchor(rule: Rule) -> str:
    """The anchor of the rule's heading, on GitHub and in MkDocs alike."""
    return rule.name.partition("/")[2]


def _render_rule(rule: Rule) -> str:
    parameters = [
        (f"`{item.name}`", f"`{item.type}`", f"`{item.default}`" if item.default else "required", item.what)
        for item in rule.parameters
    ]
    example = next((line for line in format_example(rule) if line.startswith("parameters")), "")
    name = rule.example.get("name")
    kinds = f" ({', '.join(rule.kinds)} shifts)" if rule.kinds else ""
    return join_page(
        f"## {_make_anchor(rule)}",
        fill_prose(rule.what),
        format_table(("parameter", "type", "default", "meaning"), parameters),
        f"Example{f' ({name})' if name else ''}: `{example}`." if example else "",
        fill_prose(f"Used by{kinds}: {format_usage(rule)}."),
    )
