"""stdout has a command's result and nothing else, so that a script can keep it."""

from __future__ import annotations

import re


def test_of_a_new_token_stdout_has_the_token_alone(command, command_json, tmp_path):
    assert command("board", "init", tmp_path / "board").returncode == 0
    built = command("board", "token", "create", tmp_path / "board", "--team", "us")
    assert re.fullmatch(r"fs_[\w-]+\n", built.stdout)
    assert "of us: it is not shown again. The team sets it as FARSHIFT_TOKEN" in built.stderr
    assert command_json("board", "token", "create", tmp_path / "board", "--team", "us")["token"].startswith("fs_")
