"""`farshift quickstart`, `doctor` and `cache ..`: what this machine has, and a first tour on it."""

from __future__ import annotations

import platform
import shutil
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..core.errors import FarshiftError, MissingExtra
from ..core.files import get_cache_root, is_offline, write_atomically
from ..core.text import format_count
from .options import command
from .output import emit_json, exit_if, forbid_network, print_line, print_table, print_wrapped
from .progress import show_progress

if TYPE_CHECKING:
    from ..loaders.acquire.source import Source

app = typer.Typer()
cache_app = typer.Typer(help="List, verify and clear the local cache.", no_args_is_help=True)


@command(app)
def quickstart(
    out: Path = Path("farshift-quickstart"), offline: bool = False, engine: str = "processes", json: bool = False
) -> None:
    """Download one split of each kind of shift, train two baselines on each, score them and build a board.

    --out DIR: Output folder for the runs and the board.
    --engine ENGINE: Execution engine: processes or local.
    """
    try:
        from ._quickstart import print_quickstart, run_quickstart
    except MissingExtra as error:  # of boards
        raise MissingExtra("the quickstart", "quickstart") from error
    forbid_network(offline)
    with show_progress():
        result = run_quickstart(out, engine)
    emit_json(result.record()) if json else print_quickstart(result, out)


@command(app)
def doctor(sources: bool = False, json: bool = False) -> None:
    """Check the installation: packages, cache, device.

    Exit code 1 if something required is missing.

    --sources: List each data source and how it is available: cached, generated, downloaded, or from your own copy.
    """
    checks = check_machine(sources)
    if json:
        emit_json(checks)
    else:
        states = {True: "ok", False: "MISSING", None: "optional"}
        extras = [
            name.removeprefix("extra ") for name in (item["check"] for item in checks if item["ok"]) if "extra " in name
        ]
        shown = [item for item in checks if not item["ok"] or "extra " not in item["check"]]
        rows = [[item["check"], states[item["ok"]], item["detail"]] for item in shown]
        print_table("", ["check", "state", "detail"], [*rows, ["extras", "ok", ", ".join(extras) or "none"]])
    exit_if(any(check["ok"] is False for check in checks))


_CORE = (
    *("numpy", "scipy", "pyarrow", "pydantic", "typer", "rich"),
    *("huggingface-hub", "httpx2", "fsspec", "filelock", "tomli-w"),
)
_BOARD = ("sqlalchemy", "cryptography", "jinja2", "pyyaml")
_EXTRAS = {
    "train": ("torch", "scikit-learn", "pillow"),
    "stream": ("datasets",),
    "board": _BOARD,
    "server": (*_BOARD, "anyio", "fastapi", "starlette", "uvicorn"),
    "postgres": ("psycopg",),
    "s3": ("s3fs",),
    "plot": ("matplotlib",),
    "hf": ("torch", "transformers", "tokenizers", "safetensors"),
    "llm": ("openai",),
    "hdf5": ("h5py",),
    "excel": ("openpyxl",),
    "notebook": ("pandas",),
    "ray": ("ray",),
    "boosting": ("xgboost", "lightgbm", "catboost"),
    "molecules": ("rdkit",),
    "puzzles": ("reasoning_gym",),
}


def check_machine(each_source: bool = False) -> list[dict[str, Any]]:
    """One record per check: `check`, `ok` (None if it is optional and absent) and `detail`. Uses no network.

    each_source: also a record per source; else one that counts them."""
    from ..loaders.acquire.source import load_sources
    from ..splits.catalogue import format_headline, list_split_records

    checks = [
        _make_check("python", sys.version_info >= (3, 11), f"{platform.python_version()} on {platform.platform()}")
    ]
    requirements: dict[str, tuple[str, tuple[str, ...]]] = {"packages": ("farshift", _CORE)}
    requirements |= {f"extra {extra}": (f"farshift[{extra}]", names) for extra, names in _EXTRAS.items()}
    for label, (requirement, names) in requirements.items():
        missing = [name for name in names if _find_version(name) is None]
        detail = ", ".join(f"{name} {_find_version(name)}" for name in names)
        if missing:
            detail = f"missing: {', '.join(missing)} (pip install '{requirement}')"
        absent = False if label == "packages" else None
        checks.append({"check": label, "ok": absent if missing else True, "detail": detail})
    checks += [
        _check_cache(),
        _check_registry(),
        _check_device(),
        _check_cores(),
        _make_check("splits", True, format_headline(list_split_records())),
    ]
    source_details = {source.name: _check_source(source) for source in load_sources().values()}
    if each_source:
        return checks + [_make_check(f"source {name}", True, detail) for name, detail in source_details.items()]
    kinds = sorted(Counter(detail.partition(" (")[0] for detail in source_details.values()).items())
    counts = "; ".join(f"{count} {detail}" for detail, count in kinds)
    return [*checks, _make_check("sources", True, f"{counts}; --sources lists each")]


def _check_source(source: Source) -> str:
    """How the rows of a source are available on this machine."""
    from ..loaders.cache.store import is_intact

    if source.definition.digest and is_intact(source.cached_at):
        return "in the cache"
    if not source.needs_network:
        return f"generated on demand with farshift[{source.lacks}]" if source.lacks else "generated on demand"
    if not source.downloads:
        return "only with your own copy (farshift splits pull NAME --data DIR)"
    return "downloaded on demand (or read from --mirror / FARSHIFT_MIRRORS)"


def _make_check(name: str, ok: bool, detail: str) -> dict[str, Any]:
    return {"check": name, "ok": ok, "detail": detail}


def _find_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:  # another distribution may have the module, as xgboost-cpu has xgboost
        return "(version unknown)" if find_spec(name.replace("-", "_")) else None


def _check_cache() -> dict[str, Any]:
    root = get_cache_root()
    try:
        write_atomically(root / ".writable", b"")
        (root / ".writable").unlink()
    except (FarshiftError, OSError) as error:
        return _make_check("cache", False, str(error))
    free = shutil.disk_usage(root).free / 1e9
    return _make_check("cache", True, f"{root} ({free:.1f} GB free)")


def _check_registry() -> dict[str, Any]:
    if is_offline():
        return {"check": "downloads", "ok": None, "detail": "disabled by FARSHIFT_OFFLINE"}
    has_pip = find_spec("pip") is not None
    detail = "pip is available" if has_pip else "no pip in this environment: sources that are inside packages need it"
    return {"check": "downloads", "ok": True if has_pip else None, "detail": detail}


def _check_device() -> dict[str, Any]:
    if find_spec("torch") is None:
        return {"check": "device", "ok": None, "detail": "no torch: scoring works, training baselines does not"}
    import torch

    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    detail = ", ".join(gpus) if gpus else f"CPU, {torch.get_num_threads()} threads; no GPU found"
    return _make_check("device", True, f"torch {torch.__version__}: {detail}")


def _check_cores() -> dict[str, Any]:
    from ..core.engines import count_usable_cores, describe_busy_cores, measure_busy_cores

    detail = describe_busy_cores(measure_busy_cores()) or format_count(count_usable_cores(), "core")
    return _make_check("cores", True, detail)


@command(cache_app, "list")
def cache_list(json: bool = False) -> None:
    """List the contents of the cache, least recently used first."""
    from ..loaders.cache.entries import format_size, list_contents

    report = list_contents()
    if json:
        return emit_json(report)
    rows = [
        [e["kind"], e["name"], format_size(e["bytes"]), e["last_used"].replace("T", " ").removesuffix("Z")]
        for e in report["entries"]
    ]
    if rows:
        print_table("", ["kind", "entry", "size", "last used (UTC)"], rows)
    responses = report["kinds"]["responses"]
    if responses["entries"]:
        print_line(f"language model responses: {responses['entries']:,}, {format_size(responses['bytes'])}")
    limit = (
        f"limit {format_size(report['limit'])}" if report["limit"] else "no limit (FARSHIFT_CACHE_LIMIT=10GB sets one)"
    )
    print_wrapped(f"{report['cache']}: {format_size(report['bytes'])}, {limit}")


@command(cache_app, "verify")
def cache_verify(json: bool = False) -> None:
    """Verify every cached file against its stored digest.

    Exit code 1 if one differs."""
    from ..loaders.cache.entries import verify_cache

    with show_progress():
        verdicts = verify_cache()
    wrong = [verdict for verdict in verdicts if not verdict.holds]
    busy = sum(verdict.state == "busy" for verdict in verdicts)
    if json:
        files = [verdict.__dict__ | {"advice": verdict.advice} for verdict in verdicts]
        emit_json({"cache": str(get_cache_root()), "verified": not wrong, "files": files})
    else:
        for verdict in wrong:
            print_line(f"{verdict.state}: {verdict.path}; {verdict.advice}")
        passed_over = f", {busy} being written" if busy else ""
        print_line(
            f"{get_cache_root()}: {len(verdicts) - len(wrong) - busy} of {format_count(len(verdicts), 'file')} "
            f"intact{passed_over}"
        )
    exit_if(bool(wrong))


@command(cache_app, "clear")
def cache_clear(
    older_than: float | None = None,
    kind: list[str] | None = None,
    all_: bool = False,
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Remove cached data, selected with --older-than, --kind or --all.

    Responses of language models are removed only with --kind responses or --all; everything else is downloaded or
    computed again when needed.

    --older-than DAYS: Remove only entries last used more than this many days ago.
    --kind KIND: Remove only this kind of entry: files (downloads), trees (downloaded folders), sources (decoded data),
        splits, images (decoded), features, tokens or responses (of language models). May be repeated.
    --all: Remove everything, including responses of language models.
    --dry-run: List what would be removed without removing it.
    """
    from ..loaders.cache.entries import clear_cache, describe_entry, format_size

    cleared = clear_cache(kind or (), older_than, all_, dry_run)
    if json:
        left: list[dict[str, Any]] = [describe_entry(entry) | {"why": why} for entry, why in cleared.left]
        removed = [describe_entry(entry) for entry in cleared.removed]
        return emit_json({"dry_run": dry_run, "bytes": cleared.bytes, "removed": removed, "left": left})
    done = "would be removed" if dry_run else "removed"
    for entry in cleared.removed:
        print_line(f"{done}: {entry.kind}/{entry.name}, {format_size(entry.bytes)}")
    for entry, why in cleared.left:
        print_line(f"kept: {entry.kind}/{entry.name}: {why}")
    entries = format_count(len(cleared.removed), "entry", "entries")
    print_line(f"{get_cache_root()}: {entries}, {format_size(cleared.bytes)} {done}")
