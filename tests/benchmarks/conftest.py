"""What several tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from interop_cases import echo_home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A folder in `FARSHIFT_PATH` with a source, a split and a benchmark that other runners are asked on."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_PATH", str(folder))
        yield echo_home(folder)
