"""Every algorithm trains on a real split of its kind, and a replica comes out the same alone or among others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from farshift import Answers
from farshift.baselines.recipe import Recipe
from farshift.baselines.running.listing import list_algorithms
from farshift.baselines.running.suite import explain_unfit
from farshift.baselines.training.replica_group import ReplicaGroup
from farshift.baselines.training.training_rows import FitInput, Member
from farshift.benchmarks.benchmark import Benchmark, find_benchmark
from farshift.benchmarks.model import Budget
from farshift.benchmarks.model_inputs.load import load_model_inputs
from farshift.core.errors import ModelError, Unavailable

KNOWN = {record["name"]: record for record in list_algorithms()}
SMALL = [
    "vowel/speakers",
    "vowel/speakers_unlabelled",
    "vowel/speakers_adapting",
    "optdigits/writers_adapting",
    "compas/women",
    "optdigits/writers",
    "optdigits/writers_unlabelled",
    "optdigits/harder_noisier_40",
    "modadd97/xi35",
    "spam_assassin/hard_ham",
    "copy_repeats/length",
    "skills/pairs",
    "prefix_sums/32_to_64",
    "interventions/held_out",
]
NETWORKS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "classification": [
        ("mlp", {"width": 16}),
        ("cnn", {"widths": [4], "width": 16}),
        ("quadratic_mlp", {"width": 16}),
        ("resnet", {"widths": [4, 8]}),
    ],
    "regression": [("mlp", {"width": 16})],
    "sequence": [("lstm", {"width": 8}), ("deep_thinking", {})],
}
STEPS = 6


def recipes_for(name: str) -> list[Recipe]:
    """An algorithm with each network that it may be meant for, tiny."""
    about = KNOWN[name]
    own = {"batch_size": 8} if about["defaults"].get("batch_size") != 0 else {}
    own |= {"memo": {"views": 2}}.get(name, {})
    return [
        Recipe(
            name="smoke",
            title="Smoke",
            citation="none",
            kind=about["kind"],
            network=network,
            algorithm=name,
            settings={**settings, **own},
            quick={"steps": STEPS},
            full={"steps": STEPS},
        )
        for task in about["tasks"]
        for network, settings in NETWORKS.get(task, [])
    ]


def trained(made: Recipe, benchmark: Benchmark, seeds: tuple[int, ...]) -> list[Any]:
    """What each seed's replica predicts for a hundred test rows."""
    model_inputs, touch = load_model_inputs(benchmark), benchmark.definition.protocol.touch
    requested = model_inputs.part(benchmark.predicted_parts[-1])
    rows = FitInput(
        model_inputs.training("train"),
        model_inputs.training("id_val"),
        unlabelled=requested.batch(slice(None)) if touch.ood_test_inputs else None,
    )
    members = [Member(seed, {}) for seed in seeds]
    fit = ReplicaGroup(made, benchmark.task, members, benchmark.name).fit(rows, Budget("quick"))
    for member in members:
        assert np.isfinite(fit.remarks(member)["loss"])
        assert fit.remarks(member)["steps"] == STEPS
    return [fit.predict(member, requested.batch(slice(0, 100))) for member in members]


def where_it_fits(name: str) -> tuple[Recipe, Benchmark, Any]:
    """The first small benchmark, and the first network, that an algorithm is for; and what seed 1 predicts there."""
    refused = []
    for built in recipes_for(name):
        for benchmark in map(find_benchmark, SMALL):
            if why := explain_unfit(built, benchmark):
                refused.append(why)
                continue
            try:
                (alone,) = trained(built, benchmark, (1,))
            except (ModelError, Unavailable) as error:  # needs images, categories, an aligned task ..
                refused.append(str(error))
                continue
            return built, benchmark, alone
    raise AssertionError(f"{name} fits nowhere: {refused}")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(KNOWN))
def test_an_algorithm_trains_on_a_real_split_alone_as_among_others(name):
    built, benchmark, alone = where_it_fits(name)
    among = trained(built, benchmark, (0, 1, 2))[1]
    if isinstance(alone, Answers) and benchmark.task.type == "regression":
        assert alone.prediction.std() > 0
        assert np.allclose(alone.prediction, among.prediction, atol=1e-4)
    elif isinstance(alone, Answers):
        assert alone.scores is not None or KNOWN[name]["kind"] != "any"
        assert ((alone.prediction >= 0) & (alone.prediction < (benchmark.task.classes or 0))).all()
        if alone.scores is not None:
            assert np.allclose(alone.scores, among.scores, atol=1e-4)
        assert (alone.prediction == among.prediction).mean() > 0.98
    else:
        assert np.mean([a == b for a, b in zip(alone, among, strict=True)]) > 0.95
