"""Farshift: how well does a model generalise when the data shifts?

    import farshift as fs

    part = fs.load("scan/length", part="train")            # verified rows, memory-mapped
    run = fs.evaluate(model, on="scan/length", seeds=5)    # predictions; the model never gets test labels
    print(fs.score(run))                                   # ID, OOD, gap, each with its interval
    print(fs.compare(run, fs.baseline("scan/length", "lstm")))   # paired difference to a recorded baseline
    fs.splits("speech", kind="length")                     # search; also benchmarks, baselines, results

Names load when they are first used: importing the package imports nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .baselines.running.listing import baselines
    from .baselines.running.recorded_scores import results
    from .baselines.running.results import find_recorded_run as baseline
    from .benchmarks.adapters._transformers import processor
    from .benchmarks.adapters.function import predictor
    from .benchmarks.answers import Answers, Failed
    from .benchmarks.benchmark import find_benchmark as benchmark
    from .benchmarks.comparison.compare import compare
    from .benchmarks.comparison.run_measures import replicates, variation
    from .benchmarks.harness.conformance import check_model
    from .benchmarks.harness.evaluate import evaluate
    from .benchmarks.listing import benchmarks
    from .benchmarks.runs.run import read_run
    from .benchmarks.scoring.score import score
    from .core.errors import FarshiftError
    from .leaderboard.client import Board
    from .loaders.listing import splits
    from .loaders.split import load
    from .loaders.stream.open import stream

__all__ = [
    "Answers",
    "Board",
    "Failed",
    "FarshiftError",
    "baseline",
    "baselines",
    "benchmark",
    "benchmarks",
    "check_model",
    "compare",
    "evaluate",
    "load",
    "predictor",
    "processor",
    "read_run",
    "replicates",
    "results",
    "score",
    "splits",
    "stream",
    "variation",
]

_HOMES = {
    "Answers": ("benchmarks.answers", "Answers"),
    "Board": ("leaderboard.client", "Board"),
    "Failed": ("benchmarks.answers", "Failed"),
    "FarshiftError": ("core.errors", "FarshiftError"),
    "baseline": ("baselines.running.results", "find_recorded_run"),
    "benchmark": ("benchmarks.benchmark", "find_benchmark"),
    "check_model": ("benchmarks.harness.conformance", "check_model"),
    "compare": ("benchmarks.comparison.compare", "compare"),
    "evaluate": ("benchmarks.harness.evaluate", "evaluate"),
    "load": ("loaders.split", "load"),
    "predictor": ("benchmarks.adapters.function", "predictor"),
    "processor": ("benchmarks.adapters._transformers", "processor"),
    "read_run": ("benchmarks.runs.run", "read_run"),
    "replicates": ("benchmarks.comparison.run_measures", "replicates"),
    "results": ("baselines.running.recorded_scores", "results"),
    "score": ("benchmarks.scoring.score", "score"),
    "stream": ("loaders.stream.open", "stream"),
    "variation": ("benchmarks.comparison.run_measures", "variation"),
}


def __getattr__(name: str) -> Any:
    if name in ("baselines", "benchmarks", "splits"):  # packages that are called
        return import_module(f".{name}", __name__)
    if name == "__version__":
        return import_module(".core.settings", __name__).get_version()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module_path, attribute = _HOMES[name]
    value = getattr(import_module(f".{module_path}", __name__), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
