"""The command of docs/security.md for a model that nobody trusts: it evaluates the model, and lets nothing else happen."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import farshift as fs
import pytest
from docs_runner import run, sections
from support import ROOT

EXAMPLES = sections(ROOT / "docs" / "security.md")["A model in a container"]

HOSTILE = """\
# model/net.py
import os, socket
from pathlib import Path


def tries(name, attempt):
    try:
        return [] if attempt() is None else [name]
    except OSError:
        return []


class Net:
    def predict(self, batch):
        self.done = [
            *tries("home", lambda: Path("{secret}").read_text()),
            *tries("neighbour", lambda: Path("{secret}").parent.iterdir().__next__()),
            *tries("cache", lambda: Path("/cache/planted").write_text("x")),
            *tries("model", lambda: Path("/model/planted").write_text("x")),
            *tries("network", lambda: socket.create_connection(("127.0.0.1", {port}), 5)),
            *tries("environment", lambda: os.environ.get("FARSHIFT_TOKEN")),
            *tries("processes", lambda: os.kill({pid}, 0) or "alive"),
        ]
        return (batch["a"] + batch["b"]) % 97

    def remarks(self):
        return {{"escaped": " ".join(self.done) or "nothing"}}
"""


@pytest.fixture
def listening() -> Iterator[int]:
    """A port of this machine that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def environment(tmp_path, monkeypatch) -> dict[str, str]:
    """A reader's, whose `bwrap` also shows the checkout that these tests run, which is not installed."""
    bwrap = shutil.which("bwrap")
    if bwrap is None or subprocess.run([bwrap, "--unshare-all", "--ro-bind", "/", "/", "true"]).returncode:
        pytest.skip("bubblewrap is not installed, or may not make containers here")
    commands = tmp_path / "commands"
    commands.mkdir()
    on_path = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    shown = " ".join(f"--ro-bind {path} {path}" for path in [str(ROOT), *on_path])
    _write_command(
        commands / "bwrap",
        f'for word in "$@"; do\n'
        f'    [ "$word" = --chdir ] && all+=({shown} --setenv PYTHONPATH "$PYTHONPATH")\n'
        f'    all+=("$word")\ndone\nexec {bwrap} "${{all[@]}}"\n',
    )
    _write_command(commands / "farshift", f'exec {sys.executable} -m farshift "$@"\n')
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(on_path), "FARSHIFT_TOKEN": "secret"}


def _write_command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/bash\n{script}")
    path.chmod(stat.S_IRWXU)


def test_the_command_evaluates_a_model(tmp_path, environment):
    for example in EXAMPLES:
        assert run(example, tmp_path, environment) == ""
    assert fs.score(tmp_path / "runs" / "net").id.value == 1.0


@pytest.mark.attack("host", "a model that reads files, opens the network or changes the cache, in a container")
def test_a_model_in_the_container_gets_at_nothing(tmp_path, environment, listening):
    secret = tmp_path / "home" / "id_ed25519"
    secret.parent.mkdir()
    secret.write_text("a key")
    hostile = HOSTILE.format(secret=secret, port=listening, pid=os.getpid())
    (file, *commands) = EXAMPLES
    for example in (replace(file, content=hostile), *commands):
        assert run(example, tmp_path, environment) == ""
    remarks = fs.read_run(tmp_path / "runs" / "net").card.spent.by_seed["seed_0"]
    assert remarks["escaped"] == "nothing"
    outside: dict[str, object] = {}
    exec(compile(hostile, "net.py", "exec"), outside)
    model = outside["Net"]()  # type: ignore[operator]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_TOKEN", "secret")
        model.predict({"a": 1, "b": 2})
    assert {"home", "neighbour", "network", "environment", "processes"} <= set(model.done), "outside it gets at all"
