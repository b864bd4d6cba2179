"""The message of an unexpected error: one line instead of a traceback."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.errors import get_first_line
from ..core.plugins import PACKAGE

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
