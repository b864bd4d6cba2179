"""What tests of loaders share: nothing waits before it is tried again."""

from __future__ import annotations

import pytest
from farshift.core import retry


@pytest.fixture(autouse=True)
def _tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "PAUSE", 0.001)
