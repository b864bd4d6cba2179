"""Benchmarks on frozen splits of one's own, written in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farshift.cli._own_benchmark import prepare_benchmark
from farshift.core.files import write_atomically
from farshift.loaders.split import open_split
from farshift.splits.manifest import Manifest


def write_benchmark(manifest: Manifest, said: Mapping[str, Any], home: Path) -> None:
    """As a draft's table `benchmark` does it."""
    for path, content in prepare_benchmark(open_split(manifest.full_name), said, home, home / "draft.toml"):
        write_atomically(path, content)
