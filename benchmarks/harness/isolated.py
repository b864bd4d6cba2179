"""Evaluating a model that is kept from all that it is not given: `farshift evaluate --isolated`.

The model and the loop that asks it run in a process of their own, which sees the programs of the system, Python's
packages, the folder that the command was started in, the folders of the files that the model names, the benchmark's
blind data and the run folder; no cache, no mirror, no home, no network (`core/isolation/namespaces.py`). Within what it
sees, the digests of all rows are hidden, out of which labels could be told, and so are recorded answers and copies of
the files that the rows were read from.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...core.errors import FarshiftError
from ...core.files import cache_root, file_sha256, lock_elsewhere, locked, plain_disk_errors, user_home
from ...core.isolation.elsewhere import Fail, done_elsewhere, serve
from ...core.isolation.namespaces import View, enter
from ...core.plugins import PACKAGE, homes
from ...core.world import world

if TYPE_CHECKING:
    from ..benchmark import Benchmark
    from ..runs.run import Run


def evaluate_isolated(model: str, on: str, out: Path, options: Mapping[str, str], how: Mapping[str, Any]) -> Run:
    """Evaluate the model that a command line names in isolation, and write a run folder, which says so.

    options: of the model's kind. how: what `evaluate` takes by name, as plain JSON. Raises `FarshiftError` where the
    system lets nobody be isolated, or the model needs what is not there: a network, other processes.
    """
    from ..benchmark import find_benchmark
    from ..blind.data import blind_data
    from ..runs.run import read_run
    from .model_spec import schemes

    scheme = model.partition(":")[0]
    if getattr(schemes().get(scheme), "NETWORK", False):
        raise FarshiftError(f"--isolated leaves a model without network, and {scheme}: models need one: leave it out")
    if world().size > 1:
        raise FarshiftError("--isolated runs a model in one process: leave torchrun out")
    benchmark = find_benchmark(on)
    blind = blind_data(benchmark)
    with plain_disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    home = {"FARSHIFT_CACHE": cache_root(), "FARSHIFT_HOME": user_home(), "FARSHIFT_OFFLINE": 1, "HF_HUB_OFFLINE": 1}
    unset = ("FARSHIFT_MIRRORS", "TMPDIR")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {name: str(value.absolute() if isinstance(value, Path) else value) for name, value in home.items()}
    with TemporaryDirectory(prefix="farshift-isolated-") as room, locked(lock_elsewhere(out), str(out)):
        own = list(_own_folders(model))
        view = {
            "room": room,
            "read": [str(path) for path in (*own, *_needed(), blind.folder.absolute())],
            "write": [str(out.absolute())],
            "hide": [str(path.absolute()) for path in (*_hidden(), *_copies(benchmark, own))],
        }
        asked = {"model": model, "on": on, "out": str(out.absolute()), "options": dict(options), "how": dict(how)}
        done_elsewhere(f"{__package__}.isolated", {"view": view, **asked}, f"{model} on {on}, isolated,", environment)
    return read_run(out)


def _own_folders(model: str) -> Iterator[Path]:
    """The folder that the command was started in, and those of what the model names."""
    if Path.cwd() != Path("/"):
        yield Path.cwd()
    for word in re.split(r"[\s:@]+", model):
        named = Path(word).expanduser().absolute()
        if len(word) < 1000 and named.exists() and named != Path("/"):
            yield named if named.is_dir() else named.parent


def _needed() -> Iterator[Path]:
    """Python, its packages, and definitions."""
    yield from (Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).parent, PACKAGE)
    yield from (Path(entry).absolute() for entry in sys.path if entry and Path(entry).exists())
    yield from (*(home.absolute() for home in homes()), user_home().absolute())


def _hidden() -> Iterator[Path]:
    """The cache, mirrors, recorded answers, and what tells labels by digests of whole rows."""
    yield cache_root()
    yield from (Path(entry).expanduser() for entry in os.environ.get("FARSHIFT_MIRRORS", "").split(os.pathsep) if entry)
    yield PACKAGE / "baselines" / "results"
    for home in (*homes(), user_home()):
        yield from (home / "splits" / "manifests").rglob("rows.parquet")


def _copies(benchmark: Benchmark, folders: Sequence[Path]) -> Iterator[Path]:
    """The files that the benchmark's rows were read from, where one of them lies in a folder that the model sees."""
    from ...loaders.acquire.source import find_source
    from ...splits.pins import FilePin

    source = find_source(benchmark.manifest.definition.source.name)
    known = [file for one in source.definition.distributions for file in one.files if isinstance(file, FilePin)]
    sizes, digests = {pin.bytes for pin in known}, {pin.sha256 for pin in known}
    for path in (path for folder in folders for path in folder.rglob("*") if known):
        if path.is_file() and path.stat().st_size in sizes and file_sha256(path) in digests:
            yield path


def _evaluate(request: dict[str, Any], fail: Fail) -> None:
    """The isolated process. Nothing that starts threads is imported before it is entered."""
    enter(View(**request["view"]))
    from .evaluate import evaluate
    from .model_spec import find_model

    found, code = find_model(request["model"], request["options"])
    hung = FarshiftError(
        "predict did not return in time and cannot be interrupted; what was answered is kept, and the same command "
        "goes on"
    )
    out = Path(request["out"])
    evaluate(found, request["on"], out=out, code=code, on_hang=lambda: fail(hung), **request["how"])


if __name__ == "__main__":
    serve(_evaluate)
