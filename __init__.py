"""Farshift: how far does a model's skill carry when the data shifts?

    import farshift as fs

    part = fs.load("scan/length", part="train")            # verified rows, memory-mapped
    run = fs.evaluate(model, on="scan/length", seeds=5)    # predictions; test labels are never handed over
    print(fs.score(run))                                   # ID, OOD, gap, each with its interval
    print(fs.compare(run, fs.baseline("scan/length", "lstm")))   # paired difference to a recorded baseline

Names load when they are first used: importing the package imports nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import splits
    from .baselines.results import recorded as baseline
    from .benchmarks.adapters.function import predictor
    from .benchmarks.answers import Answers, Failed
    from .benchmarks.benchmark import find_benchmark as benchmark
    from .benchmarks.compare import compare
    from .benchmarks.conformance import check_model
    from .benchmarks.harness import evaluate
    from .benchmarks.run import read_run
    from .benchmarks.score import score
    from .benchmarks.variation import variation
    from .loaders.split import load
    from .loaders.stream import stream
    from .splits.errors import FarshiftError

__all__ = [
    "Answers",
    "Failed",
    "FarshiftError",
    "baseline",
    "benchmark",
    "check_model",
    "compare",
    "evaluate",
    "load",
    "predictor",
    "read_run",
    "score",
    "splits",
    "stream",
    "variation",
]

_HOMES = {
    "Answers": ("benchmarks.answers", "Answers"),
    "Failed": ("benchmarks.answers", "Failed"),
    "FarshiftError": ("splits.errors", "FarshiftError"),
    "baseline": ("baselines.results", "recorded"),
    "benchmark": ("benchmarks.benchmark", "find_benchmark"),
    "check_model": ("benchmarks.conformance", "check_model"),
    "compare": ("benchmarks.compare", "compare"),
    "evaluate": ("benchmarks.harness", "evaluate"),
    "load": ("loaders.split", "load"),
    "predictor": ("benchmarks.adapters.function", "predictor"),
    "read_run": ("benchmarks.run", "read_run"),
    "score": ("benchmarks.score", "score"),
    "stream": ("loaders.stream", "stream"),
    "variation": ("benchmarks.variation", "variation"),
}


def __getattr__(name: str) -> Any:
    if name == "splits":
        return import_module(".splits", __name__)
    if name == "__version__":
        return import_module(".benchmarks.run", __name__).version()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place, attribute = _HOMES[name]
    value = getattr(import_module(f".{place}", __name__), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
