"""Writing an export: a folder that is there whole or not at all, the same bytes every time, never over another's."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from ...core.errors import FarshiftError
from ...core.files import lock_elsewhere, locked, plain_disk_errors

_ADVICE = "name another --out"


def write_folder(out: Path, files: Mapping[str, bytes]) -> None:
    """Write `files`, by their path within it, as the folder `out`; nothing is done where they are all there already.

    What a runner adds to such a folder (compiled code, logs) is left alone. Raises `FarshiftError` where `out` is a
    file, or a folder that holds anything but these files.
    """
    with locked(lock_elsewhere(out), str(out)), plain_disk_errors(out, _ADVICE):
        if _holds(out, files):
            return
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise FarshiftError(f"{out} holds something else than this export: choose another --out, or remove it")
        whole = out.resolve()
        beside = whole.with_name(f".{whole.name}.tmp")
        shutil.rmtree(beside, ignore_errors=True)  # a process was killed as it wrote
        try:
            for name, content in files.items():
                path = beside / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            if whole.exists():
                whole.rmdir()
            beside.rename(whole)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _holds(out: Path, files: Mapping[str, bytes]) -> bool:
    return all((out / name).is_file() and (out / name).read_bytes() == content for name, content in files.items())
