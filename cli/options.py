"""Commands whose arguments and options are described in their docstrings, and those that several commands share; what a
shell's tab offers for their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import copy
from importlib import import_module
from inspect import cleandoc, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import typer

from ..core.errors import BadDefinition, FarshiftError


def _list_runs(incomplete: str) -> Iterable[str]:
    """Run folders at most two levels below what is typed, and recorded results once `baseline:` is begun."""
    if incomplete and "baseline:".startswith(incomplete[:9]):
        from ..baselines.running.results import list_results

        return [f"baseline:{name}@{benchmark}" for benchmark, name in list_results()]
    above = Path(incomplete).parent if incomplete and not incomplete.endswith("/") else Path(incomplete)
    return [str(file.parent) for depth in ("*", "*/*") for file in above.glob(f"{depth}/run.toml")]


_VALUES: dict[str, Callable[[str], Iterable[str]]] = {
    "BASELINE": lambda _: import_module("farshift.baselines.recipe").load_recipes(),
    "BENCHMARK": lambda _: import_module("farshift.benchmarks.benchmark").load_benchmarks(),
    "RUN": _list_runs,
    "SPLIT": lambda _: {manifest.name for manifest in import_module("farshift.splits.catalogue").list_manifests()},
    "SUITE": lambda _: import_module("farshift.benchmarks.listing").count_suites(),
}


def find_completion(metavar: str | None) -> Callable[[str], list[str]] | None:
    """The function that gives the values for what is typed, of a value that the help calls `metavar`; None for any
    other value, for which shells offer files."""
    list_values = _VALUES.get((metavar or "").removesuffix("..."))
    if list_values is None:
        return None
    return lambda incomplete: [value for value in sorted(list_values(incomplete)) if value.startswith(incomplete)]


F = TypeVar("F", bound=Callable[..., None])

SHARED = """
folder DIR: Board folder.
location DIR|EXPORT|URL: Board folder, export or URL.
names SPLIT: Split name, such as scan/length, or a version, such as scan/length@1.
runs RUN...: Folder of a finished run, or a recorded result: baseline:NAME@BENCHMARK (quick budget) or
    baseline:NAME:full@BENCHMARK (full budget).
search WORD: Search words; all of them must occur in the name, title or another field of an entry.
window WINDOW: Window name, or benchmark name for its latest window.
--baseline MODEL: Model with which to compare every entry, with Holm-adjusted tests (default: the board's
    baseline for each benchmark).
--benchmark BENCHMARK: Only tables of this benchmark.
--budget full|quick: Training budget of the protocol: full or quick.
--caption TEXT: Caption of the LaTeX table.
--device DEVICE: Device: cpu, cuda, cuda:1 ..
--generated/--real: Only generated (synthetic) data, or only collected (real) data (default: both).
--json: Print one JSON document to stdout instead of text.
--kind KIND: Kind of shift: domain, length, compositional, easy-to-hard or corrupted-label.
--label LABEL: Label of the LaTeX table, such as tab:results.
--licence TEXT: Words that the licence must contain, such as CC0.
--mirror DIR: Local folder in which to look for source files, by digest, before downloading them. May be
    repeated.
--modality MODALITY: Modality: text, image, audio, tabular or array.
--no-note: Print the explanatory note to stdout instead of drawing it below the figure.
--offline: Do not access the network.
--on BENCHMARK: Benchmark name, such as scan/length.
--option KEY=VALUE: Option of an hf:, clip:, openai: or cmd: model. May be repeated.
--seeds: Number of seeds (default: the protocol's).
--selection RULE: Rule that selects among checkpoints and settings, such as last or id_val (default: the
    protocol's).
--settings FILE: TOML file with one table of hyperparameters per setting, passed to the model factory; every
    setting is trained.
--source SOURCE: Name of the data source, such as scan.
--state STATE: State: frozen (the package has the digests of all rows), definition (not frozen yet), or
    pulled (a definition that was frozen on this machine).
--steps: Number of optimiser steps (default: the budget's).
--title TEXT: Title of the figure.
--token TOKEN: Access token for a server (default: FARSHIFT_TOKEN).
"""
"""Arguments and options that several commands have. A command's docstring can describe one of them otherwise."""

_ENTRY = re.compile(r"(?P<flags>--[\w/-]+|\w+)(?: (?P<metavar>[^:]+))?: (?P<help>.+)", re.DOTALL)


def command(app: typer.Typer, name: str | None = None) -> Callable[[F], F]:
    """Make a function a command of `app`. The last paragraph of its docstring describes its own parameters, an argument
    by its name and an option by its flag, each with how its value is called in the help:

        runs RUN...: Folders of finished runs.
        --out FILE: Submission file to write.

    Raises `BadDefinition` for a line of that paragraph that has another form or names no parameter, and for a parameter
    that is described neither there nor in `SHARED`.
    """

    def register(function: F) -> F:
        title = f"command {name or function.__name__}"
        text, _, described = cleandoc(function.__doc__ or "").rpartition("\n\n")
        own = _parse_entries(described, title) if text else {}
        function.__doc__ = text if own else function.__doc__
        known = _parse_entries(SHARED, "SHARED") | own
        hints = get_type_hints(function, include_extras=True)
        function.__annotations__ = {"return": None}
        parameters = signature(function).parameters
        if unknown := own.keys() - {parameter.rstrip("_") for parameter in parameters}:
            raise BadDefinition(f"{title}: its docstring describes {min(unknown)}, which is not a parameter")
        for parameter in parameters:
            if (entry := known.get(parameter.rstrip("_"))) is None:
                raise BadDefinition(f"{title}: the last paragraph of its docstring does not describe {parameter}")
            function.__annotations__[parameter] = _describe_parameter(hints[parameter], *entry)
        app.command(name)(function)
        return function

    return register


def _parse_entries(text: str, title: str) -> dict[str, tuple[str, str | None, str]]:
    """The flags (of an argument its name), the metavar and the help of each parameter that `text` describes; none if it
    is prose. title: what has this text, for errors."""
    lines = re.split(r"\n(?! )", text.strip())
    matches = [_ENTRY.fullmatch(line) for line in lines]
    if None in matches:
        if any(matches) or text.startswith("--"):
            wrong = lines[matches.index(None)]
            raise BadDefinition(f"{title}: write NAME VALUE: HELP or --OPTION VALUE: HELP instead of {wrong!r}")
        return {}
    entries = [(match["flags"], match["metavar"], " ".join(match["help"].split())) for match in matches if match]
    return {re.split("/", entry[0])[0].lstrip("-").replace("-", "_"): entry for entry in entries}


def _describe_parameter(hint: Any, flags: str, metavar: str | None, description: str) -> Any:
    """The annotation of a parameter as typer reads it; its hint may have the limits of its values."""
    is_option = flags.startswith("--")
    info = (
        copy(hint.__metadata__[0])
        if hasattr(hint, "__metadata__")
        else (typer.Option if is_option else typer.Argument)()
    )
    kind = get_args(hint)[0] if hasattr(hint, "__metadata__") else hint
    # Without a metavar the help of a flag would show its type.
    info.metavar, info.help = "" if kind in (bool, bool | None) else metavar, description
    info.autocompletion = find_completion(metavar)
    if is_option:
        info.param_decls = (flags,)
    return Annotated[kind, info]


_RECORDED = re.compile(r"baseline:(?P<name>[^@:]+)(:(?P<budget>[^@]*))?@(?P<benchmark>.+)")


def parse_run_path(text: str) -> Path:
    """A run's folder as the command line names it: a path, or `baseline:NAME@BENCHMARK` for a recorded result, which
    is `baseline:NAME:full@BENCHMARK` under the budget full."""
    if not text.startswith("baseline:"):
        return Path(text)
    from ..baselines.running.results import find_recorded_run, list_results

    if recorded := _RECORDED.fullmatch(text):
        return find_recorded_run(recorded["benchmark"], recorded["name"], budget=recorded["budget"] or "quick").path
    name = text.removeprefix("baseline:").strip("@")
    on = next((benchmark for benchmark, recorded_name in list_results() if recorded_name == name), "")
    example = f", such as baseline:{name}@{on}" if on else " (farshift baselines results lists them)"
    raise FarshiftError(f"{text}: write baseline:NAME@BENCHMARK for a recorded result{example}")


Runs = Annotated[list[Path], typer.Argument(parser=parse_run_path)]
Natural = Annotated[int, typer.Option(min=0)]
Count = Annotated[int, typer.Option(min=1)]
OptionalCount = Annotated[int | None, typer.Option(min=1)]


def read_settings(path: Path | None) -> dict[str, Any] | None:
    """Named settings from a TOML file; None where there is no file."""
    from ..core.documents import read_toml

    if path is None:
        return None
    settings = read_toml(path)
    if not settings or not all(isinstance(values, dict) for values in settings.values()):
        raise BadDefinition(f"{path}: write one table per setting, such as [small] with hidden = 64 under it")
    return settings
