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
from ..core.files import get_cache_root, is_offline, write_atomically
from ..loaders.acquire.source import Source, load_sources
from ..loaders.cache.store import is_intact
from ..splits.catalogue import list_split_records
from ..splits.families import format_headline

_CORE = ("numpy", "pyarrow", "pydantic", "typer", "rich", "huggingface-hub", "httpx2", "filelock", "tomli-w")
_EXTRAS = {
    "train": ("torch", "scikit-learn", "pillow", "scipy"),
    "stream": ("datasets",),
    "board": ("sqlalchemy", "cryptography", "jinja2", "pyyaml", "fsspec"),
    "server": (
        *("sqlalchemy", "cryptography", "jinja2", "pyyaml", "fsspec"),
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


def check_machine(each_source: bool = False) -> list[dict[str, Any]]:
    """One record per check: `check`, `ok` (None if it is optional and absent) and `detail`. Uses no network.

    each_source: also a record per source; else one that counts them."""
    checks = [
        _make_check("python", sys.version_info >= (3, 11), f"{platform.python_version()} on {platform.platform()}")
    ]
    checks += [_check_package(name) for name in _CORE]
    for extra, names in _EXTRAS.items():
        missing = [name for name in names if _find_version(name) is None]
        detail = (
            f"missing: {', '.join(missing)} (pip install 'farshift[{extra}]')" if missing else _join_versions(names)
        )
        checks.append({"check": f"extra {extra}", "ok": None if missing else True, "detail": detail})
    checks += [
        _check_cache(),
        _check_registry(),
        _check_device(),
        _make_check("splits", True, format_headline(list_split_records())),
    ]
    source_details = {source.name: _check_source(source) for source in load_sources().values()}
    if each_source:
        return checks + [_make_check(f"source {name}", True, detail) for name, detail in source_details.items()]
    kinds = sorted(Counter(detail.partition(" (")[0] for detail in source_details.values()).items())
    counts = "; ".join(f"{count} {detail}" for detail, count in kinds)
    return [*checks, _make_check("sources", True, f"{counts}; --sources lists each")]


def summarise_checks(checks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The checks for a screen: one line for all installed packages, and one for all installed extras."""
    details: dict[str, list[str]] = {"packages": [], "extras": []}
    rows = []
    for check in checks:
        name, extra = str(check["check"]), str(check["check"]).removeprefix("extra ")
        folded = "packages" if name in _CORE else "extras" if extra in _EXTRAS and extra != name else ""
        if not folded or not check["ok"]:
            rows.append(check)
            continue
        if not details[folded]:
            rows.append({"check": folded, "ok": True, "detail": details[folded]})
        details[folded].append(f"{name} {check['detail']}" if folded == "packages" else extra)
    return [row | ({"detail": ", ".join(row["detail"])} if isinstance(row["detail"], list) else {}) for row in rows]


def _check_source(source: Source) -> str:
    """How the rows of a source are available on this machine."""
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
    except PackageNotFoundError:
        return None


def _join_versions(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {_find_version(name)}" for name in names)


def _check_package(name: str) -> dict[str, Any]:
    version = _find_version(name)
    return _make_check(name, version is not None, version or "missing: pip install farshift")


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
