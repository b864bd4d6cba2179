"""Is this machine ready? What is installed, where the cache is, and which sources are available."""

from __future__ import annotations

import platform
import shutil
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from ..core.errors import FarshiftError
from ..core.files import cache_root, offline, write_atomically
from ..loaders.acquire.source import Source, sources
from ..loaders.cache.store import intact
from ..splits.catalogue import listing
from ..splits.folding import headline

_CORE = ("numpy", "pyarrow", "pydantic", "typer", "rich", "huggingface-hub", "httpx2", "filelock", "tomli-w")
_EXTRAS = {
    "train": ("torch", "scikit-learn", "pillow", "scipy"),
    "stream": ("datasets",),
    "board": ("sqlalchemy", "alembic", "cryptography", "jinja2", "pyyaml", "fsspec"),
    "server": (
        *("sqlalchemy", "alembic", "cryptography", "jinja2", "pyyaml", "fsspec"),
        *("fastapi", "starlette", "uvicorn"),
    ),
    "postgres": ("psycopg",),
    "s3": ("s3fs",),
    "plot": ("matplotlib",),
    "hf": ("torch", "transformers", "tokenizers", "safetensors"),
    "llm": ("openai",),
    "hdf5": ("h5py",),
    "notebook": ("pandas",),
    "ray": ("ray",),
    "molecules": ("rdkit",),
    "puzzles": ("reasoning_gym",),
}


def examine(each_source: bool = False) -> list[dict[str, Any]]:
    """One record per check: `check`, `ok` (None if it is optional and absent) and `detail`. Uses no network.

    each_source: also a record per source; else one that counts them."""
    found = [_check("python", sys.version_info >= (3, 11), f"{platform.python_version()} on {platform.platform()}")]
    found += [_package(name) for name in _CORE]
    for extra, names in _EXTRAS.items():
        absent = [name for name in names if _version(name) is None]
        detail = f"absent: {', '.join(absent)} (pip install 'farshift[{extra}]')" if absent else _versions(names)
        found.append({"check": f"extra {extra}", "ok": None if absent else True, "detail": detail})
    found += [_cache(), _registry(), _device(), _check("splits", True, headline(listing()))]
    told = {source.name: _source(source) for source in sources().values()}
    if each_source:
        return found + [_check(f"source {name}", True, detail) for name, detail in told.items()]
    kinds = sorted(Counter(detail.partition(" (")[0] for detail in told.values()).items())
    counts = "; ".join(f"{count} {detail}" for detail, count in kinds)
    return [*found, _check("sources", True, f"{counts}; --sources lists each")]


def in_short(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The checks for a screen: one for all packages that are there, and one for all extras that are."""
    said: dict[str, list[str]] = {"packages": [], "extras": []}
    rows = []
    for check in found:
        name, extra = str(check["check"]), str(check["check"]).removeprefix("extra ")
        folded = "packages" if name in _CORE else "extras" if extra in _EXTRAS and extra != name else ""
        if not folded or not check["ok"]:
            rows.append(check)
            continue
        if not said[folded]:
            rows.append({"check": folded, "ok": True, "detail": said[folded]})
        said[folded].append(f"{name} {check['detail']}" if folded == "packages" else extra)
    return [row | ({"detail": ", ".join(row["detail"])} if isinstance(row["detail"], list) else {}) for row in rows]


def _source(source: Source) -> str:
    """How a source's rows can be had here."""
    if source.definition.digest and intact(source.cached_at):
        return "in the cache"
    if not source.needs_network:
        return f"generated here with farshift[{source.lacks}]" if source.lacks else "generated here when asked for"
    if not source.downloads:
        return "definition: bring the data (farshift splits pull NAME --data DIR)"
    return "to be downloaded (or found in --mirror / FARSHIFT_MIRRORS)"


def _check(name: str, ok: bool, detail: str) -> dict[str, Any]:
    return {"check": name, "ok": ok, "detail": detail}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _versions(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {_version(name)}" for name in names)


def _package(name: str) -> dict[str, Any]:
    found = _version(name)
    return _check(name, found is not None, found or "absent: pip install farshift")


def _cache() -> dict[str, Any]:
    root = cache_root()
    try:
        write_atomically(root / ".writable", b"")
        (root / ".writable").unlink()
    except (FarshiftError, OSError) as error:
        return _check("cache", False, str(error))
    free = shutil.disk_usage(root).free / 1e9
    return _check("cache", True, f"{root} ({free:.1f} GB free)")


def _registry() -> dict[str, Any]:
    if offline():
        return {"check": "downloads", "ok": None, "detail": "switched off by FARSHIFT_OFFLINE"}
    has_pip = find_spec("pip") is not None
    detail = (
        "pip is there for sources inside packages" if has_pip else "no pip in this environment: some sources need it"
    )
    return {"check": "downloads", "ok": True if has_pip else None, "detail": detail}


def _device() -> dict[str, Any]:
    if find_spec("torch") is None:
        return {"check": "device", "ok": None, "detail": "no torch: scoring works, training baselines does not"}
    import torch

    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    detail = ", ".join(gpus) if gpus else f"CPU, {torch.get_num_threads()} threads; no GPU seen"
    return _check("device", True, f"torch {torch.__version__}: {detail}")
