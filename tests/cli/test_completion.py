"""Tab completion: the script that a shell reads, and what it then asks of the command."""

from __future__ import annotations

import pytest

BY_NAME = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
"""The shell is named by the test, not found among the processes that started it."""


@pytest.mark.parametrize(
    ("shell", "registers"), [("bash", "complete -o default"), ("zsh", "#compdef farshift"), ("fish", "complete")]
)
def test_the_script_for_a_shell_is_shown(farshift, shell, registers):
    done = farshift("--show-completion", shell, **BY_NAME)
    assert done.returncode == 0, done.stderr
    assert registers in done.stdout
    assert f"_FARSHIFT_COMPLETE=complete_{shell}" in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("farshift spl", {"splits"}),
        ("farshift splits pu", {"pull"}),
        ("farshift evaluate --se", {"--seeds", "--settings", "--selection"}),
    ],
)
def test_commands_and_options_are_completed(farshift, typed, offered):
    position = str(len(typed.split()) - 1)
    done = farshift(COMP_WORDS=typed, COMP_CWORD=position, _FARSHIFT_COMPLETE="complete_bash")
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == offered
