"""Writing an export: a folder is written atomically and deterministically, and never replaces other content."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from ...core.errors import FarshiftError
from ...core.files import get_lock_path, hold_lock, translate_os_errors

_ADVICE = "name another --out"


def write_folder(out: Path, files: Mapping[str, bytes]) -> None:
    """Write `files`, by their path within it, as the folder `out`; nothing is done if all are there already.

    Files that a runner adds to the folder (compiled code, logs) are not touched. Raises `FarshiftError` if `out` is a
    file, or a folder with anything but these files.
    """
    with hold_lock(get_lock_path(out), str(out)), translate_os_errors(out, _ADVICE):
        if _has_files(out, files):
            return
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise FarshiftError(f"{out} has other content than this export: choose another --out, or remove it")
        target = out.resolve()
        beside = target.with_name(f".{target.name}.tmp")
        shutil.rmtree(beside, ignore_errors=True)  # left by a process that was killed while writing
        try:
            for name, content in files.items():
                path = beside / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            if target.exists():
                target.rmdir()
            beside.rename(target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _has_files(out: Path, files: Mapping[str, bytes]) -> bool:
    return all((out / name).is_file() and (out / name).read_bytes() == content for name, content in files.items())
