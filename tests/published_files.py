"""Public data files as they were published, where a machine has them: in `FARSHIFT_PUBLIC_DATA`, or beside a checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from farshift.core.errors import Unavailable
from farshift.loaders.acquire.source import find_source
from support import SHARED

PUBLIC = Path(os.environ.get("FARSHIFT_PUBLIC_DATA", SHARED))


def published_file(name: str) -> Path:
    """The file `name` under `PUBLIC`; skips the test where it is absent."""
    path = PUBLIC / name
    if not path.exists():
        pytest.skip(f"{path} is not here: FARSHIFT_PUBLIC_DATA may name the folder that has it")
    return path


def published_rows(source: str) -> pa.Table:
    """A source's rows, built (and held to their digest) from the files under `PUBLIC`; skips where they are absent."""
    if not PUBLIC.is_dir():
        pytest.skip(f"{PUBLIC} is not here: FARSHIFT_PUBLIC_DATA may name another folder")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FARSHIFT_OFFLINE", "1")
        try:
            return find_source(source).table((PUBLIC,))
        except Unavailable as error:
            pytest.skip(str(error))
