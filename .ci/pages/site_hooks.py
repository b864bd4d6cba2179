"""Pages of the documentation's site that docs/ does not hold: those at the root of the repository, and the generated
reference (commands, keys of TOML files, Python, plug-ins, families of splits).

A hook of MkDocs. Links are written as GitHub reads them; those between docs/ and the root work here as well.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from family_pages import build_family_pages, link_families
from farshift.baselines.recipe import Recipe
from farshift.benchmarks.claims.claim import Claim
from farshift.benchmarks.definition import BenchmarkDefinition
from farshift.cli import build_command
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.acquire.pretrained import PretrainedNetwork
from farshift.loaders.acquire.source import SourceDefinition
from farshift.splits.manifest import SplitDefinition
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pydantic import BaseModel

ROOT = Path(__file__).parents[2]
FROM_ROOT = {
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
    "SECURITY.md": "reporting.md",  # docs/security.md has the name, where capitals do not count
    "CHANGELOG.md": "CHANGELOG.md",
}
PLUGINS = {
    "splits": ("rules",),
    "loaders": ("generators", "readers", "mirrors", "derivations", "corruptions", "decoders"),
    "benchmarks": ("metrics", "selection", "augmentations", "extraction", "adapters", "plot", "tables", "interop"),
    "baselines": (
        "networks",
        "backbones",
        "algorithms",
        "augmentations",
        "optimisers",
        "schedules",
        "positions",
        "formats",
        "diagnostics",
    ),
    "leaderboard": ("exports",),
}

API = {
    "Data": ("splits", "load", "loaders.part.Part", "stream", "processor"),
    "Models and benchmarks": (
        "benchmarks",
        "benchmark",
        "benchmarks.model",
        "predictor",
        "Answers",
        "Failed",
        "check_model",
    ),
    "Evaluation and scores": ("evaluate", "read_run", "score", "compare", "replicates", "variation"),
    "Baselines": ("baselines", "results", "baseline"),
    "Leaderboards": ("Board",),
    "Errors": ("FarshiftError",),
}
"""The Python interface by topic: public names, and the paths of what they return or accept."""
HEADINGS = {"loaders.part.Part": "Part", "benchmarks.model": "The model interface"}

KEYS: dict[str, type[BaseModel]] = {
    "A benchmark": BenchmarkDefinition,
    "A split": SplitDefinition,
    "The table [data] of a split": Data,
    "A source": SourceDefinition,
    "A baseline": Recipe,
    "A pretrained network": PretrainedNetwork,
    "A claim": Claim,
}
"""What each kind of file is checked against."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that docs/ does not hold."""
    pages = {path: (ROOT / name).read_text("utf-8") for name, path in FROM_ROOT.items()}
    pages |= {
        "commands.md": build_command_page(),
        "keys.md": build_key_page(),
        "plug-ins.md": build_plugin_page(),
    }
    pages |= build_api_pages()
    pages |= {f"splits/{name}": page for name, page in build_family_pages().items()}
    for path, text in pages.items():
        files.append(File.generated(config, path, content=rewrite_links(text)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """A page of docs/ links to one of the root as ../NAME; here they stand side by side."""
    return rewrite_links(link_families(markdown) if Path(page.file.src_path).parent.name == "splits" else markdown)


def rewrite_links(text: str) -> str:
    for name, path in FROM_ROOT.items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}([)#])", rf"]({path}\1", text)
    return re.sub(r"\]\(docs/([\w/-]+\.(?:md|svg))", r"](\1", text)


def build_command_page() -> str:
    """A section for each command: its help, and a table of its arguments and options."""
    lines = ["# Commands", "", "`farshift COMMAND --help` prints the same. `-h` is short for `--help`.", ""]
    for path, command in iterate_commands(build_command(), ("farshift",)):
        group = hasattr(command, "commands")
        lines += [f"{'#' * min(len(path), 3)} {' '.join(path)}", "", escape_markup(command.help or ""), ""]
        if group or not command.params:
            continue
        arguments = [format_argument(item) for item in command.params if not item.opts[0].startswith("-")]
        required = [format_option(item) for item in command.params if item.opts[0].startswith("-") and item.required]
        lines += [f"`{' '.join([*path, *arguments, *required, '[OPTIONS]'])}`", "", "| option | meaning |", "|---|---|"]
        lines += [f"| {name} | {meaning} |" for name, meaning in map(describe_parameter, command.params)] + [""]
    return "\n".join(lines)


def iterate_commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group of commands below `command`, with its path, in the order of the help."""
    for name, below in getattr(command, "commands", {}).items():
        yield (*path, name), below
        yield from iterate_commands(below, (*path, name))


def describe_parameter(parameter: Any) -> tuple[str, str]:
    """How an argument or option is written, and what it means."""
    is_option = parameter.opts[0].startswith("-")
    written = format_option(parameter) if is_option else format_argument(parameter)
    notes = ["required"] if is_option and parameter.required else []
    if parameter.default not in (None, False, True, "", [], ()):
        notes.append(f"default: `{parameter.default}`")
    return f"`{written}`", " ".join([escape_markup(parameter.help or ""), *(f"({note})" for note in notes)])


def format_option(option: Any) -> str:
    names = "/".join([*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} {option.metavar or option.name.upper()}"


def format_argument(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def escape_markup(text: str) -> str:
    """Help as Markdown: characters with a meaning there are escaped, but not within backticks."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else re.sub(r"([*_<\[|])", r"\\\1", piece) for piece in pieces)


def build_key_page() -> str:
    """A section for each kind of TOML file: a table of its keys, then one for each table within it."""
    lines = [
        "# Keys of TOML files",
        "",
        "Each kind of file, with the keys that it may have. Any other key is an error.",
    ]
    for title, model in KEYS.items():
        paths = find_tables(model)
        for table, path in paths.items():
            lines += ["", f"### `{path}` {{#{make_anchor(model, path)}}}" if path else f"## {title}", ""]
            lines += describe_table(table, {item: make_anchor(model, path) for item, path in paths.items()})
    return "\n".join(lines)


def find_tables(model: type[BaseModel]) -> dict[type[BaseModel], str]:
    """The tables of a file, each with the keys that lead to it where it first occurs; those of `model` itself first."""
    paths = {model: ""}
    pending = [model]
    while pending:
        table = pending.pop(0)
        for name, field in table.model_fields.items():
            below = list(dict.fromkeys(find_models(field.annotation)))
            for item in below:
                if item not in paths:
                    first = next(iter(item.model_fields.values())).annotation
                    sort = get_args(first)[0] if get_origin(first) is Literal else item.__name__
                    paths[item] = f"{paths[table]}.{name}".lstrip(".") + (f" ({sort})" if len(below) > 1 else "")
                    pending.append(item)
    return paths


def make_anchor(model: type[BaseModel], path: str) -> str:
    return re.sub(r"\W+", "-", f"{model.__name__} {path}".lower()).strip("-")


def describe_table(model: type[BaseModel], anchors: Mapping[type[BaseModel], str]) -> list[str]:
    """The docstring of a table, and its keys: type, default, and meaning where the source says one."""
    meanings = read_field_docstrings(model)
    about = [inspect.cleandoc(model.__doc__), ""] if model.__doc__ and "__doc__" in vars(model) else []
    rows = [["key", "type", "default", "meaning"], ["---"] * 4]
    for name, field in model.model_fields.items():
        default = "required" if field.is_required() else format_default(field.get_default(call_default_factory=True))
        rows.append([f"`{name}`", describe_type(field.annotation, anchors), default, meanings.get(name, "")])
    return about + [f"| {' | '.join(row if meanings else row[:3])} |" for row in rows]


def read_field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The string that follows a field in the source, by the field's name."""
    result: dict[str, str] = {}
    for item in reversed(model.__mro__):
        if issubclass(item, BaseModel) and item is not BaseModel:
            body = ast.parse(textwrap.dedent(inspect.getsource(item))).body[0].body  # type: ignore[attr-defined]
            for field, after in pairwise(body):
                if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                    result[ast.unparse(field.target)] = " ".join(ast.literal_eval(after.value).split())
    return result


def format_default(default: Any) -> str:
    if isinstance(default, BaseModel):
        return "that of each key"
    return "none" if default in (None, "", [], {}) else f"`{json.dumps(default)}`"


def find_models(annotation: Any) -> list[type[BaseModel]]:
    """The tables that a type names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for item in get_args(annotation) for model in find_models(item)]


def describe_type(annotation: Any, anchors: Mapping[type[BaseModel], str]) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return describe_type(inner[0], anchors)
    if origin is Literal:
        return ", ".join(f"`{item}`" for item in inner)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(describe_type(item, anchors) for item in inner if item is not NoneType))
    if origin is list:
        return f"list of {describe_type(inner[0], anchors)}"
    if origin is dict:
        return f"table of {describe_type(inner[1], anchors)}"
    if annotation in anchors:
        return f"[table](#{anchors[annotation]})"
    return {str: "string", int: "integer", float: "number", bool: "boolean"}.get(annotation, "any value")


def build_api_pages() -> dict[str, str]:
    """An overview of the public names by topic, and a page for each topic, by file name."""
    paths = find_public_paths()
    if missing := set(paths) - {name for names in API.values() for name in names}:
        raise ValueError(f"no topic has the public names {', '.join(sorted(missing))}")
    overview = ["# The Python interface", "", "`import farshift as fs` imports nothing heavy.", ""]
    overview += ["| topic | names |", "|---|---|"]
    pages = {}
    for topic, names in API.items():
        file = f"api-{topic.lower().replace(' ', '-')}.md"
        links = [f"[{HEADINGS.get(name, name)}]({file}#farshift.{paths.get(name, name)})" for name in names]
        overview.append(f"| [{topic}]({file}) | {', '.join(links)} |")
        sections = [f"::: farshift.{paths.get(name, name)}{format_heading(name)}" for name in names]
        pages[file] = "\n\n".join([f"# {topic}", *sections])
    return {"api.md": "\n".join(overview)} | pages


def find_public_paths() -> dict[str, str]:
    """The module and name that each public name of the package stands for."""
    tree = ast.parse((ROOT / "__init__.py").read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    return {alias.asname or alias.name: f"{node.module}.{alias.name}" for node in imports for alias in node.names}


def format_heading(name: str) -> str:
    """The option that heads a section with the public name."""
    heading = HEADINGS.get(name) or f"fs.{name}"
    return f"\n    options:\n      heading: {heading}\n      toc_label: {heading}"


def build_plugin_page() -> str:
    """What a file of each plug-in folder gets and gives: the folder's own docstring."""
    lines = ["# Plug-ins", "", "Each is one file, in the package or in a folder named in `FARSHIFT_PATH`:"]
    lines += ["[Contributing](CONTRIBUTING.md) has examples.", ""]
    for room, folders in PLUGINS.items():
        for folder in folders:
            about = ast.get_docstring(ast.parse((ROOT / room / folder / "__init__.py").read_text("utf-8"))) or ""
            lines += [f"## {room}/{folder}", "", about, ""]
    return "\n".join(lines)
