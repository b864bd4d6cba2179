"""`farshift evaluate --isolated`: a model that looks for labels outside what it is given finds neither files nor a
network."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import farshift as fs
import pytest
from farshift.benchmarks.blind.data import blind_data
from farshift.benchmarks.harness.isolated import _copies, evaluate_isolated
from farshift.core.errors import FarshiftError
from farshift.core.files import cache_root, file_sha256
from farshift.core.isolation import namespaces
from farshift.core.plugins import PACKAGE
from farshift.loaders.acquire import source
from farshift.splits.pins import FilePin
from support import one_line_error

pytestmark = pytest.mark.attack(
    "entrant", "a model that looks for labels in files, other processes and the network while it is isolated"
)

ON = "modadd97/xi35"

PROBE = """
import sys
from farshift.core.isolation.namespaces import View, enter
enter(View(sys.argv[1], [], [], []))
"""


@pytest.fixture
def permitted(tmp_path):
    """Skips where the system lets nobody be isolated."""
    (tmp_path / "room").mkdir()
    command = [sys.executable, "-c", PROBE, str(tmp_path / "room")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this system has no user namespaces for tests")


SPY = """
import os, socket, subprocess
from pathlib import Path
import farshift as fs

CACHE, PACKAGE, MIRROR, SECRET = (Path(path) for path in {paths})

def connected():
    socket.create_connection(("127.0.0.1", {port}), 5).close()
    return "connected"

def child():
    return subprocess.run(["cat", str(SECRET)], capture_output=True, text=True).stdout

def uncovered():
    # A new namespace of users has capabilities again: does it get the covered cache back?
    subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "umount", str(CACHE)], capture_output=True)
    return listed()

def listed():
    return " ".join(sorted(path.name for path in CACHE.iterdir()))

def digests():
    return sum(path.stat().st_size for path in PACKAGE.glob("splits/manifests/**/rows.parquet"))

LOOKS = {{
    "library": lambda: fs.benchmark("{on}").view("ood"),
    "cache": listed,
    "uncovered": uncovered,
    "handouts": lambda: len(list((CACHE / "handouts").iterdir())),
    "mirror": lambda: " ".join(os.listdir(MIRROR)),
    "outside": lambda: SECRET.read_text(),
    "child": child,
    "server": connected,
    "internet": lambda: socket.getaddrinfo("example.org", 80),
    "processes": lambda: Path("/proc", str(os.getppid())).exists(),
    "recorded": lambda: len(os.listdir(PACKAGE / "baselines" / "results")),
    "digests": digests,
    "package": lambda: (PACKAGE / "new.py").write_text(""),
}}

def tried(look):
    try:
        return str(look())
    except Exception as error:
        return type(error).__name__

class Spy:
    def predict(self, batch):
        return (batch["a"] + batch["b"]) % 97

    def remarks(self):
        return {{name: tried(look) for name, look in LOOKS.items()}}
"""


def test_a_model_that_looks_around_finds_no_cache_no_mirror_no_network_and_the_run_says_so(
    tmp_path, monkeypatch, permitted
):
    secret, mirror, own = tmp_path / "elsewhere" / "labels.txt", tmp_path / "mirror", tmp_path / "own"
    for folder in (secret.parent, mirror, own, tmp_path / "here"):
        folder.mkdir()
    secret.write_text("0 1 1 0")
    (mirror / "data.csv").write_text("1")
    monkeypatch.chdir(tmp_path / "here")
    blind_data(fs.benchmark(ON))
    fs.benchmark(ON).view("ood")
    assert {"sources", "splits"} <= {path.name for path in cache_root().iterdir()}
    monkeypatch.setenv("FARSHIFT_MIRRORS", str(mirror))
    with socket.create_server(("127.0.0.1", 0)) as server:
        paths = repr([str(path) for path in (cache_root(), PACKAGE, mirror, secret)])
        (own / "spy.py").write_text(SPY.format(paths=paths, port=server.getsockname()[1], on=ON))
        how = {"seeds": 1, "budget": "quick"}
        run = evaluate_isolated(f"{own / 'spy.py'}:Spy", ON, tmp_path / "runs" / "spy", {}, how)
    assert run.card.model.more["isolated"] is True
    seen = run.card.spent.by_seed["seed_0"]
    assert {name: seen[name] for name in seen if not name.endswith("seconds")} == {
        "library": "LabelsWithheld",
        "cache": seen["cache"],
        "uncovered": seen["cache"],
        "handouts": "1",
        "mirror": "FileNotFoundError",
        "outside": "FileNotFoundError",
        "child": "",
        "server": "OSError",
        "internet": "gaierror",
        "processes": "False",
        "recorded": "0",
        "digests": "0",
        "package": "OSError",
    }
    assert not {"sources", "splits", "files"} & set(seen["cache"].split())
    assert fs.score(run).ood.value == 1.0
    assert not list(Path(tmp_path / "here").iterdir())


def test_copies_of_the_benchmarks_files_beside_a_model_are_found_whatever_their_names(tmp_path, monkeypatch):
    def found(*folders):
        return list(_copies(fs.benchmark(ON), folders))

    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.csv").write_text("1,0\n")
    (tmp_path / "other.csv").write_text("1,1\n")
    assert found(tmp_path) == []
    pin = FilePin(name="labels.csv", sha256=file_sha256(tmp_path / "data" / "mine.csv"), bytes=4)
    definition = SimpleNamespace(distributions=[SimpleNamespace(files=[pin])])
    monkeypatch.setattr(source, "find_source", lambda name: SimpleNamespace(definition=definition))
    assert found(tmp_path) == [tmp_path / "data" / "mine.csv"]


def test_a_run_that_was_not_isolated_says_nothing_of_it(tmp_path):
    run = fs.evaluate(lambda batch: batch["a"], on=ON, seeds=1, budget="quick", out=tmp_path / "run")
    assert "isolated" not in run.card.model.more


def test_a_system_without_namespaces_refuses_in_one_line(monkeypatch):
    def refused() -> None:
        raise PermissionError(1, "unshare: Operation not permitted")

    monkeypatch.setattr(namespaces, "_unshare", refused)
    with pytest.raises(FarshiftError, match="does not let a process be isolated .*Operation not permitted") as found:
        namespaces.enter(namespaces.View("/nowhere", [], [], []))
    assert "\n" not in str(found.value)
    assert not namespaces.is_isolated()


def test_what_needs_a_network_or_other_processes_is_refused_at_once(tmp_path, monkeypatch):
    with pytest.raises(FarshiftError, match="openai: models need one"):
        evaluate_isolated("openai:gpt@http://127.0.0.1:1/v1", ON, tmp_path / "run", {}, {})
    for name, value in {"WORLD_SIZE": 2, "RANK": 0, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 1}.items():
        monkeypatch.setenv(name, str(value))
    with pytest.raises(FarshiftError, match="leave torchrun out"):
        evaluate_isolated("adder.py:predict", ON, tmp_path / "run", {}, {})
    assert not (tmp_path / "run").exists()


def test_the_command_refuses_a_model_that_needs_a_network(farshift, tmp_path):
    done = farshift("evaluate", "openai:m@http://127.0.0.1:1/v1", "--on", ON, "--out", tmp_path / "run", "--isolated")
    assert "--isolated leaves a model without network" in one_line_error(done)
