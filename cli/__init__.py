"""The command line: one short function a command. `farshift --help` imports nothing heavy."""

from __future__ import annotations

import re
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import FarshiftError, get_first_line, shorten_list
from ..core.plugins import PACKAGE
from . import baselines, benchmarks, board, board_server, compare, machine, reproduce, run, sealed, splits, submissions
from .output import configure_streams, discard_output, is_debugging, print_error, print_line

app = typer.Typer(
    name="farshift",
    help="Benchmark models under distribution shift: versioned splits, a harness, baselines and leaderboards.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (machine, run, compare, reproduce, submissions):
    app.add_typer(module.app)
app.add_typer(splits.app, name="splits")
app.add_typer(benchmarks.app, name="benchmarks")
app.add_typer(baselines.app, name="baselines")
app.add_typer(machine.cache_app, name="cache")
app.add_typer(board.app, name="board")
board.app.add_typer(board_server.app)
board.app.add_typer(sealed.app, name="sealed")


def _print_version(requested: bool) -> None:
    if requested:
        from ..core.settings import get_version

        print_line(get_version())
        raise typer.Exit


@app.callback()
def _declare_global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


_INTERRUPTED = "interrupted; finished work is kept, and repeating the command resumes"


_COMPLAINTS: tuple[type[Any], ...] = tuple(
    kind for kind in typer.BadParameter.__mro__ if hasattr(kind, "format_message")
)
"""The command line library's own errors (an unknown option, a missing argument): a class of typer's or of click's, as
the version has it."""


def _suggest_next(error: Any, message: str) -> str:
    """The available commands after an unknown one, and the usage of a command that got too many arguments."""
    context = getattr(error, "ctx", None)
    if context is None:
        return ""
    if message.startswith("No such command") and "Did you mean" not in message:
        return f" Available commands: {shorten_list(sorted(getattr(context.command, 'commands', {})))}"
    return f". {context.get_usage()}" if message.startswith("Got unexpected extra") else ""


@cache
def build_command() -> Any:
    """The command with all below it. Help is wrapped to the screen: the line breaks within a docstring's paragraphs are
    those of the source file."""
    root = typer.main.get_command(app)
    pending = [root]
    while pending:
        command = pending.pop()
        pending += getattr(command, "commands", {}).values()
        if command.help:
            command.help = "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", command.help))
    return root


def main() -> None:
    """The entry point: an error that a user can cause is printed as one line, with exit code 2; any other too, with
    exit code 70."""
    configure_streams()
    root = build_command()
    try:
        status = root.main(prog_name="farshift", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print_error(_INTERRUPTED)
        sys.exit(130)
    except (BrokenPipeError, SystemExit) as error:
        # The command line library ends with 1 on a broken pipe, which is the code of a check that failed.
        if not isinstance(error, BrokenPipeError) and not isinstance(error.__context__, BrokenPipeError):
            raise
        discard_output()
        sys.exit(141)
    except (FarshiftError, OSError) as error:
        if is_debugging():
            raise
        if isinstance(error, OSError):
            discard_output()
        print_error(f"error: {error}")
        sys.exit(2)
    except _COMPLAINTS as error:
        if is_debugging():
            raise
        if message := error.format_message():  # empty if the help was printed instead
            print_error(f"error: {message}{_suggest_next(error, message)}")
        sys.exit(2)
    except Exception as error:
        if is_debugging():
            raise
        message, code = describe_unexpected(error, root, sys.argv[1:])
        print_error(f"error: {message}")
        sys.exit(code)
    if status == 130:
        print_error(_INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


DEFECT = 70
"""The exit code of a bug in Farshift itself: EX_SOFTWARE of sysexits."""

_TRACEBACK = "FARSHIFT_DEBUG=1 shows the traceback"


def describe_unexpected(error: Exception, root: Any, arguments: Sequence[str]) -> tuple[str, int]:
    """One line that names the command, what happened and where, and the exit code. An error raised in a file of the
    user's (a model, a rule) is the user's; any other is a bug."""
    names, command = ["farshift"], root
    for argument in arguments:
        if (command := getattr(command, "commands", {}).get(argument)) is None:
            break
        names.append(argument)
    what = f"{' '.join(names)}: {type(error).__name__}"
    if str(error).strip():
        what += f": {get_first_line(error)}"
    if isinstance(error, MemoryError):
        return f"{' '.join(names)}: out of memory ({get_first_line(error)})", 2
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_user_file(frame.filename)]
    if own:
        return f"{what} ({own[-1].filename}, line {own[-1].lineno}); {_TRACEBACK}", 2
    last_frame = next((frame for frame in reversed(frames) if _is_package_file(Path(frame.filename))), None)
    at = f" ({Path(last_frame.filename).relative_to(PACKAGE)}, line {last_frame.lineno})" if last_frame else ""
    return f"{what}{at}: this is a bug in Farshift, please report it; {_TRACEBACK}", DEFECT


def _is_user_file(file: str) -> bool:
    libraries = {Path(sys.prefix), Path(sys.base_prefix), *map(Path, sysconfig.get_paths().values())}
    path = Path(file)
    if not path.is_absolute() or not path.is_file() or _is_package_file(path):
        return False
    return not any(path.is_relative_to(folder) for folder in libraries)


def _is_package_file(path: Path) -> bool:
    """In a checkout the folder of the package has tests and files of the user's beside the package's own."""
    if not path.is_relative_to(PACKAGE):
        return False
    first = path.relative_to(PACKAGE).parts[0]
    return first in ("__init__.py", "__main__.py") or (PACKAGE / first / "__init__.py").is_file()
