"""docs/related.md: published systems of the field, and what here embodies them, from related.toml."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from claim_pages import list_shipped_claims, name_papers
from farshift.baselines.diagnostics import list_diagnostics
from farshift.baselines.recipe import load_recipes
from farshift.benchmarks.benchmark import load_benchmarks
from farshift.core.plugins import PACKAGE, find_files_by_name
from farshift.splits.catalogue import list_manifests
from markdown_text import format_table, join_page

PAPERS = Path(__file__).parent / "related.toml"
STATES = ("works", "in part", "not here")
INTRODUCTION = """
A hundred published benchmarks, methods and diagnostics of the field, and what of them is here. *Works*: the data, the
method or the measure of the paper is here. *In part*: some of it, and the last column says what is missing. *Not here*:
nothing, and the last column says what it would need; what is listed in the third column is the nearest. "GPU" means
that it cannot be run in hours on a CPU. Recorded outcomes: [claims](claims/index.md) and [results](results.md).
"""


def build_related_page() -> str:
    """The page: one table a topic. ValueError for a name that does not exist."""
    papers = tomllib.loads(PAPERS.read_text("utf-8"))["paper"]
    known = list_known_names()
    problems = [problem for paper in papers for problem in find_unknown_names(paper, known)]
    if problems:
        raise ValueError(f"{PAPERS.name}: {'; '.join(problems)}")
    counts = Counter(paper["state"] for paper in papers)
    blocks = []
    for topic, group in groupby(papers, key=lambda paper: paper["topic"]):
        rows = [
            (_format_title(paper), paper["state"], _format_parts(paper, known), make_command(paper), paper["missing"])
            for paper in group
        ]
        blocks += [f"## {topic}", format_table(("paper", "state", "here", "command", "missing"), rows)]
    summary = ", ".join(f"{counts[state]} {state}" for state in STATES)
    return join_page("# Published systems", INTRODUCTION, f"{len(papers)} papers: {summary}.", *blocks)


def list_known_names() -> dict[str, dict[str, str]]:
    """The names of each sort, with the page of docs/ that describes them (empty: none)."""
    claims = [entry.claim for entry in list_shipped_claims()]
    pages = name_papers(claim.citation for claim in claims)
    return {
        "splits": {item.name: f"splits/{item.name.partition('/')[0]}.md" for item in list_manifests()},
        "benchmarks": dict.fromkeys(load_benchmarks(), ""),
        "baselines": dict.fromkeys(load_recipes(), "baselines/recipes.md"),
        "diagnostics": dict.fromkeys(list_diagnostics(), "baselines/components.md"),
        "metrics": dict.fromkeys(find_files_by_name("benchmarks/metrics", ".py"), "scoring.md"),
        "claims": {claim.name: f"claims/{pages[claim.citation]}.md#{claim.name}" for claim in claims},
    }


def find_unknown_names(paper: Mapping[str, Any], known: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What a paper names that does not exist: its state, names of each sort, and files."""
    state = [] if paper["state"] in STATES else [f"state {paper['state']}"]
    names = [f"{sort} {name}" for sort in known for name in paper.get(sort, []) if name not in known[sort]]
    files = [f"file {file}" for file in paper.get("files", []) if not (PACKAGE / file).is_file()]
    return [f"{paper['title']}: no {what}" for what in state + names + files]


def _format_title(paper: Mapping[str, Any]) -> str:
    number = paper.get("number")
    return f"[{paper['title']}](https://arxiv.org/abs/{number})" if number else paper["title"]


def _format_parts(paper: Mapping[str, Any], known: Mapping[str, Mapping[str, str]]) -> str:
    names = [(name, pages[name]) for sort, pages in known.items() for name in paper.get(sort, [])]
    return ", ".join(
        [f"[{name}]({page})" if page else f"`{name}`" for name, page in names]
        + [f"`{file}`" for file in paper.get("files", [])]
    )


def make_command(paper: Mapping[str, Any]) -> str:
    """A command that shows what is here: the paper's own, else the first of its claims, baselines, diagnostics or
    splits."""
    if paper["state"] == "not here":
        return ""
    on = next(iter(paper.get("benchmarks", []) + paper.get("splits", [])), "optdigits/writers")
    if "command" in paper:
        command = paper["command"]
    elif "claims" in paper:
        command = f"farshift reproduce {paper['claims'][0]}"
    elif "baselines" in paper:
        command = f"farshift run {paper['baselines'][0]} --on {on}"
    elif "diagnostics" in paper:
        command = f"farshift run mlp --on {on} --diagnose {paper['diagnostics'][0]}"
    else:
        command = f"farshift {'benchmarks' if 'benchmarks' in paper else 'splits'} show {on}"
    return f"`{command}`"
