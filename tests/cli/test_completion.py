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
        ("farshift run mlp --on vowel/sp", {"vowel/speakers", "vowel/speakers_adapting", "vowel/speakers_unlabelled"}),
        ("farshift benchmarks list --suite qu", {"quickstart"}),
        ("farshift splits show scan/template_a", {"scan/template_around_right"}),
        ("farshift run syntactic-", {"syntactic-attention"}),
        ("farshift score runs/", {"runs/first", "runs/several/second"}),
    ],
)
def test_commands_options_and_names_are_completed(farshift, typed, offered, tmp_path, monkeypatch):
    for name in ("first", "several/second"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.toml").touch()
    monkeypatch.chdir(tmp_path)
    position = str(len(typed.split()) - 1)
    done = farshift(COMP_WORDS=typed, COMP_CWORD=position, _FARSHIFT_COMPLETE="complete_bash")
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == offered
