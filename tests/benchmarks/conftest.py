"""What several tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from endpoint_cases import KEY
from interop_cases import echo_home
from llm_server import Llm, llm


@pytest.fixture
def server(cache: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[Llm]:
    """A language model behind an endpoint, and the key for it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with llm() as site:
        yield site


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A folder in `FARSHIFT_PATH` with a source, a split and a benchmark that other runners are asked on."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_PATH", str(folder))
        yield echo_home(folder)
