"""Writing an export: a folder that is there whole or not at all, the same bytes every time, never over another's."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from ...core.errors import FarshiftError
from ...core.files import get_lock_path, hold_lock, translate_os_errors

_ADVICE = "name another --out"


def write_folder(out: Path, files: Mapping[str, bytes]) -> None:
    """Write `files`, by their path within it, as the folder `out`; nothing is done where they are all there already.

    What a runner adds to such a folder (compiled code, logs) is left alone. Raises `FarshiftError` where `out` is a
    file, or a folder that holds anything but these files.
    """
    with hold_lock(get_lock_path(out), str(out)), translate_os_errors(out, _ADVICE):
        if _has_files(out, files):
            return
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise FarshiftError(f"{out} holds something else than this export: choose another --out, or remove it")
        target = out.resolve()
        beside = target.with_name(f".{target.name}.tmp")
        shutil.rmtree(beside, ignore_errors=True)  # a process was killed as it wrote
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
