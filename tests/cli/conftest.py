"""What tests of several commands need."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support import Command


@pytest.fixture
def command_json(command: Command) -> Callable[..., Any]:
    """Run a command with --json in this process, expect success, and read the one document on its stdout."""

    def run(*arguments: object) -> Any:
        done = command(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
