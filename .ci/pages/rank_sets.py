"""Compute the rank sets of recorded results, the shares of wrong labels that they memorised, and means over PACS'
domains by selection rule, for docs/results.md: this needs the data, and the pages do not.

python .ci/pages/rank_sets.py [BENCHMARK ..]    compute those of some benchmarks anew, by default of all stored ones;
                                                `pacs` stands for the means over its domains

ranks.json has for each benchmark the digests of the results that were ranked: the page shows no rank set of others.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

from farshift import score
from farshift.baselines.running.recorded_scores import find_low_id_scores, read_recorded_scores
from farshift.baselines.running.results import digest_result, find_recorded_run, list_results
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.comparison.compare import Side
from farshift.benchmarks.statistics.aggregate import Scale, aggregate
from farshift.benchmarks.statistics.interval import estimate_mean
from farshift.benchmarks.statistics.joint_covariance import estimate_joint_covariance
from farshift.benchmarks.statistics.ranks import compute_rank_sets
from farshift.benchmarks.statistics.sample import Sample

CORRUPTION_ERROR = "mean_corruption_error"
STORE = Path(__file__).with_name("ranks.json")
PACS = tuple(f"pacs/{domain}" for domain in ("art_painting", "cartoon", "photo", "sketch"))
ENCODED, SEARCHED = " (efficientnet-lite0)", " (efficientnet-lite0, 8 settings)"
RULES = ("training_domain_val", "leave_one_group_out", "test_domain_val")
"""DomainBed's selection methods."""


@cache
def list_ranked(benchmark: str) -> list[str]:
    """The recorded results under the budget `quick` that learnt the task in distribution: only they are ranked.
    Searched settings are chosen by another protocol."""
    scores = read_recorded_scores(benchmark)
    left_out = find_low_id_scores(benchmark, scores)
    return sorted(name for name in scores if name not in left_out and not name.endswith(SEARCHED))


def digest_results(benchmark: str, names: list[str]) -> str:
    """A digest of results with their names: it changes when one of them does, or when one comes or goes."""
    return sha256("\n".join(f"{name} {digest_result(benchmark, name)}" for name in names).encode()).hexdigest()


@cache
def read_ranks(benchmark: str) -> dict[str, tuple[int, int]]:
    """The lowest and highest rank of each ranked result, by baseline; empty if none are stored for these results."""
    return {name: (low, high) for name, (low, high) in _read_stored(benchmark).get("ranks", {}).items()}


def read_memorised(benchmark: str) -> dict[str, list[float]]:
    """The share of wrong training labels given back, with its interval, by ranked result; empty if none are stored."""
    found: dict[str, list[float]] = _read_stored(benchmark).get("memorised", {})
    return found


def read_corruption_errors(benchmark: str) -> dict[str, list[float]]:
    """The mean corruption error, with its interval, by ranked result; empty if none are stored."""
    found: dict[str, list[float]] = _read_stored(benchmark).get(CORRUPTION_ERROR, {})
    return found


@cache
def list_searched() -> list[str]:
    """The recipes that are recorded with eight settings on every domain of PACS."""
    models = set.intersection(*({name for on, name in list_results() if on == domain} for domain in PACS))
    return sorted(name.removesuffix(SEARCHED) for name in models if name.endswith(SEARCHED))


def digest_searched() -> str:
    """A digest of the results that `compute_means` takes."""
    names = [name + suffix for name in list_searched() for suffix in (SEARCHED, ENCODED)]
    return sha256("\n".join(digest_results(domain, names) for domain in PACS).encode()).hexdigest()


def read_means() -> dict[str, dict[str, list[float]]]:
    """By rule (`default`: the recipe's own settings), then recipe: the mean over PACS' domains, and its interval."""
    stored: dict[str, Any] = json.loads(STORE.read_text("utf-8")).get("pacs", {})
    return stored["means"] if stored.get("results") == digest_searched() else {}


def compute_means() -> dict[str, Any]:
    """The mean OOD accuracy over PACS' domains of each searched recipe by each rule, and with its own settings."""

    def sample(domain: str, recipe: str, rule: str) -> Sample:
        side = Side(find_recorded_run(domain, recipe + (SEARCHED if rule else ENCODED)))
        return side.rows("ood", rule).by(side.metric)

    means = {}
    for rule in ("", *RULES):
        samples = {domain: {name: sample(domain, name, rule) for name in list_searched()} for domain in PACS}
        rows = aggregate(samples, dict.fromkeys(PACS, Scale(0, 1))).rows
        means[rule or "default"] = {row.entry: [row.mean.value, row.mean.low, row.mean.high] for row in rows}
    return {"results": digest_searched(), "means": means}


def _read_stored(benchmark: str) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(STORE.read_text("utf-8")).get(benchmark, {})
    return stored if stored.get("results") == digest_results(benchmark, list_ranked(benchmark)) else {}


def compute_ranks(benchmark: str) -> dict[str, Any]:
    """The rank sets of a benchmark's ranked results with a known variance: 95 % simultaneous, on the same OOD rows."""
    names = list_ranked(benchmark)
    samples = {name: Side(find_recorded_run(benchmark, name)).sample("ood") for name in names}
    known = [name for name in names if isfinite(samples[name].spread().variance)]
    joint = estimate_joint_covariance([samples[name] for name in known])
    better = find_benchmark(benchmark).metrics[0].better
    sets = compute_rank_sets(joint, better, stream=f"results/{benchmark}")
    ranks = {name: [int(sets.low[k]), int(sets.high[k])] for k, name in enumerate(known)}
    return {"results": digest_results(benchmark, names), "ranks": ranks} | _estimate_others(benchmark, names)


def _estimate_others(benchmark: str, names: list[str]) -> dict[str, Any]:
    """The share of wrong training labels that each result gives back, if the benchmark has them, and the mean
    corruption error, if it is among its metrics, each with its interval."""
    runs = {name: find_recorded_run(benchmark, name) for name in names}
    others: dict[str, Any] = {}
    if "memorised" in find_benchmark(benchmark).definition.views:
        shares = {name: estimate_mean(Side(run).sample("memorised")) for name, run in runs.items()}
        others["memorised"] = {name: [found.value, found.low, found.high] for name, found in shares.items()}
    if any(metric.name == CORRUPTION_ERROR for metric in find_benchmark(benchmark).metrics):
        metrics = {name: score(run).to_dict()["metrics"][f"{CORRUPTION_ERROR}@1"]["ood"] for name, run in runs.items()}
        others[CORRUPTION_ERROR] = {
            name: [each[end] for end in ("value", "low", "high")] for name, each in metrics.items()
        }
    return others


if __name__ == "__main__":
    stored = json.loads(STORE.read_text("utf-8"))
    for benchmark in sys.argv[1:] or sorted(stored):
        if benchmark == "pacs":
            stored[benchmark] = compute_means()
        elif list_ranked(benchmark):
            stored[benchmark] = compute_ranks(benchmark)
        else:
            print(
                f"{benchmark}: no recorded result learnt the task in distribution, so none is ranked", file=sys.stderr
            )
            stored.pop(benchmark, None)
        lines = [f"{json.dumps(name)}: {json.dumps(stored[name])}" for name in sorted(stored)]
        STORE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
