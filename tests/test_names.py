"""Names that a reader of the field's papers knows: functions begin with a verb, and no participle stands for a noun."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from support import ROOT, parse_file

ROOMS = ("core", "splits", "loaders", "benchmarks", "baselines", "leaderboard", "cli")

VERBS = frozenset(
    """
    accept adapt add adjust align allocate allow announce answer append apply assign assume attach audit augment average
    avoid begin blend bootstrap broadcast build cache call cast change charge check choose clamp classify clean clear
    clip close cluster collapse collect combine commit compare compile compress compute concatenate configure connect
    convert copy corrupt count create crop cut deal declare decode defer defuse delist derive describe deserialise
    detect diagnose differentiate dilate discard download draw drop dump emit encode end enqueue equalise erase escape
    estimate evaluate exclude exit expand explain export extend extract fetch fill filter find finish fit flag flatten
    flip fold forbid format freeze fsync gather generate get group grow handle has hash harden hide hold identify ignore
    import infer initialise install integrate interpolate invert is iterate jitter join judge keep limit list load
    locate lock log make map mark mask match materialise may measure merge migrate mirror mix moderate move mute name
    nest normalise nudge number open optimise order orient orthogonalise override pack pad paint pair parse pin
    posterise predict prepare print probe project prove publish push raise randomise rank read receive recompute record
    recover redraw reduce refund refuse remember remove rename render reorder replace report reproduce request require
    resample rescore reset resize resolve respond restore resume reveal reverse revoke rotate round run sample save
    scale scan score seal search select send serialise serve set settle sharpen shift shorten show shrink sign silence
    slice smooth solarise solve sort split stack stage start step store stretch strip submit subtract suggest sum
    summarise suppress sweep take tally thin to tokenise train transform translate trim truncate try unflatten unpack
    unwrap update use validate verify wait walk warm warp watch widen withdraw wrap write zoom
    """.split()  # noqa: SIM905
)

BANNED = frozenset("found told said one mine made held kept taken whole wanted asked place".split())  # noqa: SIM905
"""Words that say of anything that it is there: as the name of a function, a class, a parameter, a field or a variable
they say nothing."""

HONEST = {("loaders/readers/lines.py", "wanted"): "an option of the data definitions that use this reader"}


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """The product's files, parsed, by path."""
    return {
        path.relative_to(ROOT).as_posix(): parse_file(path)
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
    }


@pytest.fixture(scope="module")
def functions(trees) -> list[str]:
    """The names of all functions at the top level of a module."""
    return [
        node.name.strip("_")
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def iterate_bindings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the name of everything that a file names."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield node.lineno, name


def find_banned(trees: dict[str, ast.Module]) -> list[str]:
    return [
        f"{file}:{line}: {name}"
        for file, tree in trees.items()
        for line, name in iterate_bindings(tree)
        if name.strip("_").lower() in BANNED and (file, name) not in HONEST
    ]


def test_functions_begin_with_a_verb(functions):
    verbs = sum(name.split("_")[0] in VERBS for name in functions)
    assert verbs >= 0.8 * len(functions), f"{verbs} of {len(functions)}"


def test_few_functions_have_a_name_of_one_word(functions):
    short = sum("_" not in name for name in functions)
    assert short <= 0.15 * len(functions), f"{short} of {len(functions)}"


def test_no_name_says_nothing(trees):
    assert find_banned(trees) == []


def test_each_honest_exception_is_there(trees):
    for file, name in HONEST:
        assert name in {bound for _, bound in iterate_bindings(trees[file])}
