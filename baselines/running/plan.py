"""A planned run of a baseline on a benchmark: what it costs, and checks before anything is trained."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ...benchmarks.benchmark import Benchmark, load_suite
from ...benchmarks.harness.evaluate import begin_run, list_seeds
from ...benchmarks.model import Budget
from ...benchmarks.model_inputs.load import StreamedBenchmark, load_model_inputs, remove_secrets
from ...benchmarks.runs.run_folder import RunFolder
from ...benchmarks.settings import NONE, Settings
from ...core.canonical import compute_identity
from ...core.errors import BadDefinition, FarshiftError, ModelError
from ...core.files import compute_file_sha256
from ...core.plugins import PACKAGE
from ...core.world import get_world
from ...loaders.acquire.pretrained import find_pretrained_network
from ..compatibility import check_available, check_inputs, check_task, list_required_data
from ..recipe import Recipe, Sort, find_plugin_files, find_recipe, load_recipes, resolve_settings


@dataclass(frozen=True)
class Plan:
    """A planned run of one baseline on one benchmark."""

    recipe: Recipe
    """With its settings for the budget."""
    benchmark: Benchmark
    budget: Budget
    seeds: list[int]
    out: Path
    settings: Settings = field(default_factory=lambda: NONE)
    """Named settings to try; by default the recipe's own."""
    selection: str | None = None
    """The rule that chooses among candidates; by default the protocol's."""
    stack: int = 0
    """The most replicas to train at once; 0: chosen automatically."""
    diagnose: tuple[str, ...] = ()
    """Names of the diagnostics to measure of each trained replica."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", self.recipe.for_budget(self.budget.name))

    @property
    def title(self) -> str:
        return f"{self.recipe.name} on {self.benchmark.name}"

    @property
    def name(self) -> str:
        """The model's name on the run card: the recipe's, with the network or weights that replace the recipe's,
        whether these are trained too, published settings or another augmentation, and its named setting, or from how
        many one is chosen: `erm (efficientnet-lite0, fine-tuned)`, `erm (efficientnet-lite0, 8 settings)`."""
        weights, shipped = self.weights, find_recipe(self.recipe.name).for_budget(self.budget.name)
        details = []
        if weights and weights != list_weight_specs(shipped, [shipped.settings_on(self.benchmark.name)]):
            tuned = ["fine-tuned"] if self.recipe.network == "pretrained" != shipped.network else []
            details = [*map(format_weights_name, weights), *tuned]
        elif self.recipe.network and self.recipe.network != shipped.network and not self.recipe.published:
            details = [self.recipe.network]
        if self.recipe.published:
            details.append(self.recipe.published)
        elif (augment := self.recipe.settings.get("augment", "")) != shipped.settings.get("augment", ""):
            details.append(str(augment))
        if len(self.settings) > 1:
            details.append(f"{len(self.settings)} settings")
        else:
            details += [name for name, values in self.settings.items() if values]
        return f"{self.recipe.name} ({', '.join(details)})" if details else self.recipe.name

    @property
    def weights(self) -> list[str]:
        """The pretrained weights that it starts from, over all of its named settings."""
        own = self.recipe.settings_on(self.benchmark.name)
        return list_weight_specs(self.recipe, [own | dict(values) for values in self.settings.values()])

    @property
    def steps(self) -> int:
        """Optimiser steps of a replica; 1 for an estimator, which stops by its own rule."""
        if self.recipe.estimator:
            return 1
        return self.budget.steps or self.recipe.steps(self.budget.name, self.benchmark.name)

    @property
    def memory(self) -> str:
        """The resource that its rows and networks take: `memory` or `device memory`."""
        return "memory" if self.budget.device == "cpu" else "device memory"

    def number_of_fits(self) -> int:
        """The number of sets of rows on which each seed and setting is trained: all rows, and all but each fold of the
        selection rule. Opens the benchmark's data if the rule has folds."""
        rule = self.benchmark.rule(self.selection)
        return 1 + sum(1 for _ in rule.folds(self.benchmark, load_model_inputs(self.benchmark))) if rule.folds else 1

    def changed(self) -> dict[str, Any]:
        """Network, algorithm and settings in force if the recipe differs from the shipped one, for the run card."""
        recipe = self.recipe
        shipped = find_recipe(recipe.name).for_budget(self.budget.name)
        if recipe.estimator or recipe == shipped.model_copy(update={"encoder": recipe.encoder}):
            return {}
        settings = name_weights(resolve_settings(recipe, self.benchmark.name))
        changes: dict[str, Any] = {"network": recipe.network, "algorithm": recipe.algorithm, "settings": settings}
        return changes | ({"published": recipe.published} if recipe.published else {})

    def check(self) -> None:
        """Raise an error, before anything is trained, for a task that the recipe cannot do, unknown settings, or data
        that the benchmark does not have or its protocol does not permit."""
        check_task(self.recipe, self.benchmark.task)
        check_inputs(self.recipe, self.benchmark.name, self.benchmark.task, has_image(self.benchmark))
        check_data(self.recipe, self.benchmark)
        self._check_folds()
        if self.recipe.estimator:
            from ..estimator import make_estimator

            for values in self.settings.values():
                make_estimator(self.recipe, self.benchmark.name, self.recipe.name, values)
        else:
            for name, values in self.settings.items():
                try:
                    resolve_settings(self.recipe, self.benchmark.name, values)
                except BadDefinition as error:
                    raise BadDefinition(f"setting {name}: {error}" if name else str(error)) from error
        if self.diagnose:
            self._check_diagnosis()

    def check_stream(self) -> None:
        """Raise an error if the recipe cannot be trained on a stream; opens no data."""
        if not isinstance(self.benchmark, StreamedBenchmark):
            return
        self.benchmark.refuse(self.selection)
        if self.recipe.estimator:
            raise ModelError(
                f"{self.title}: an estimator reads all rows at once, and streamed rows are not in memory: leave "
                "--stream out, or train a network"
            )

    def _check_folds(self) -> None:
        """Refuse a rule that also trains on one environment's rows if the algorithm compares environments."""
        rule = self.benchmark.rule(self.selection)
        if rule.folds is None or "groups" not in list_required_data(self.recipe):
            return
        for fold in rule.folds(self.benchmark, load_model_inputs(self.benchmark)):
            if len(np.unique(fold.train.columns["group"])) < 2:
                raise ModelError(
                    f"{self.title}: {rule.name} also trains without the rows of {fold.name}; the others come from "
                    f"one environment, and the algorithm {self.recipe.algorithm} compares several: choose another "
                    "--selection, or a benchmark with three training environments or more"
                )

    def _check_diagnosis(self) -> None:
        if self.recipe.estimator:
            raise ModelError(f"{self.recipe.name}: an estimator has no network to diagnose: leave --diagnose out")
        rule = self.benchmark.rule(self.selection)
        if len(self.settings) > 1 or rule.folds is not None:
            why = "several settings are tried" if len(self.settings) > 1 else f"{rule.name} trains on other rows too"
            raise ModelError(
                f"{self.title}: diagnostics need one replica a seed, and {why}: leave --diagnose out, "
                "or run one setting under another --selection"
            )

    def begin(self) -> AbstractContextManager[RunFolder]:
        model: dict[str, Any] = {"name": self.name, "kind": "baseline"}
        weights = describe_weights(self.weights)
        model["code"] = compute_code_digest(self.recipe, weights)
        if weights:
            model["pretrained"] = weights
        if changed := self.changed():
            model["recipe"] = changed
        if self.settings != NONE:
            named = dict if self.recipe.estimator else name_weights
            model["settings"] = {name: named(values) for name, values in self.settings.items()}
        if self.diagnose:
            model["diagnose"] = list(self.diagnose)
        if isinstance(self.benchmark, StreamedBenchmark):
            model["streamed"] = remove_secrets(self.benchmark.address)
        return begin_run(self.benchmark, self.out, model, self.budget, self.seeds, self.selection, get_world())


def split_seeds(seeds: list[int], workers: int) -> list[tuple[int, ...]]:
    """Split the seeds evenly into as many replica groups as there are workers: each worker stacks its own."""
    count = min(workers, len(seeds))
    return [tuple(seeds[offset::count]) for offset in range(count)]


def has_image(benchmark: Benchmark) -> bool:
    """Whether a benchmark's only input is an image: encoded, a recording (read as a spectrogram), or an array of two or
    three axes."""
    if len(benchmark.task.inputs) != 1:
        return False
    field = benchmark.split.source.schema[benchmark.task.inputs[0]]
    return field.encoded or len(field.shape) in (2, 3)


def check_data(recipe: Recipe, benchmark: Benchmark) -> None:
    """`ModelError` if an algorithm requires data that a benchmark does not have or its protocol does not permit."""
    touch = benchmark.definition.protocol.touch
    available: dict[str, Callable[[], bool]] = {
        "groups": lambda: len(set(benchmark.part("train").row_metadata.get("group", np.empty(0)).tolist())) > 1,
        "id_val": lambda: benchmark.has_part("id_val"),
        "ood_val": lambda: touch.ood_val_labels and benchmark.has_part("ood_val"),
        "unlabelled": lambda: touch.ood_test_inputs,
        "test batches": lambda: touch.adaptation is not None,
    }
    check_available(recipe, benchmark.name, available)


_ONLY_TOLD: Any = {"quick": {"reference"}, "full": {"reference"}}
_ONLY_TOLD |= {"on": {"__all__": dict(_ONLY_TOLD)}}
"""Fields of a recipe that have no effect on its training."""


def compute_code_digest(recipe: Recipe, weights: Sequence[Mapping[str, str]] | None = None) -> str:
    """sha256 over all that determines a baseline's result: the recipe, the code of all baselines (your own too), the
    pretrained `weights` (by default those that the recipe names), and the versions of Farshift, torch and
    scikit-learn."""
    files = {path for sort in get_args(Sort) if sort != "recipes" for path in find_plugin_files(sort).values()}
    files |= set((PACKAGE / "baselines").rglob("*.py"))
    code = sorted([f"{path.parent.name}/{path.name}", compute_file_sha256(path)] for path in files)
    versions = [_get_installed_version(name) for name in ("farshift", "torch", "scikit-learn")]
    weights = describe_weights(list_weight_specs(recipe, [recipe.settings])) if weights is None else weights
    if weights:
        versions += [*(entry["digest"] for entry in weights), _get_installed_version("transformers")]
    return compute_identity([recipe.model_dump(mode="json", exclude=_ONLY_TOLD), code, versions])


def describe_weights(weights: Sequence[str]) -> list[dict[str, str]]:
    """`name` and `digest` of pretrained weights, and what shipped ones were `trained_on`, for the run card."""
    if not weights:
        return []
    from ..encoding.checkpoint import find_checkpoint

    entries = [{"name": format_weights_name(spec), "digest": find_checkpoint(spec).digest} for spec in weights]
    for spec, entry in zip(weights, entries, strict=True):
        if network := find_pretrained_network(spec):
            entry["trained_on"] = network.trained_on
    return entries


WEIGHTS = ("weights", "teacher_weights")
"""The settings that name pretrained weights: of a network, or of a weaker teacher's."""


def list_weight_specs(recipe: Recipe, settings: Iterable[Mapping[str, Any]]) -> list[str]:
    """The pretrained weights that a recipe and the settings in force name, each once: those of a frozen encoder and of
    networks."""
    own = [] if recipe.estimator else list(settings)  # a scikit-learn setting `weights` is something else
    named = [recipe.encoder, *(values.get(name) for values in own for name in WEIGHTS)]
    return list(dict.fromkeys(str(spec) for spec in named if spec))


def name_weights(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as in a run card: weights by their name, without their location."""
    return {
        name: format_weights_name(str(value)) if name in WEIGHTS and value else value
        for name, value in settings.items()
    }


def format_weights_name(spec: str) -> str:
    """The name of weights: without a revision on the Hub, or the location of a folder or file."""
    is_path = spec.startswith((".", "/", "~")) or ".py:" in spec
    return Path(spec).expanduser().resolve().name if is_path else spec.partition("@")[0]


def _get_installed_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def explain_unfit(candidate: Recipe, benchmark: Benchmark) -> str:
    """Say why a recipe does not belong on a benchmark; empty if it does."""
    if not any(fnmatchcase(benchmark.name, pattern) for pattern in candidate.suits):
        return f"it is for {', '.join(candidate.suits)}"
    if candidate.kind not in ("any", benchmark.kind):
        return f"it is for {candidate.kind} shifts, and this is {benchmark.kind}"
    try:
        check_task(candidate, benchmark.task)
        check_data(candidate, benchmark)
    except ModelError as error:
        return str(error)
    return ""


def make_suite_plans(
    name: str,
    out: Path,
    only: Sequence[str] = (),
    budget: Budget = Budget(),  # noqa: B008  (frozen)
    seeds: int | None = None,
    stack: int = 0,
) -> list[Plan]:
    """Make a plan for every baseline (or those in `only`) on every benchmark of a suite that it belongs on. The run
    folder is `out/BENCHMARK/BASELINE`, with the slash of the benchmark's name written as two underscores."""
    chosen = [find_recipe(baseline_name) for baseline_name in dict.fromkeys(only)] or list(load_recipes().values())
    plans = [
        Plan(
            candidate,
            benchmark,
            budget,
            list_seeds(seeds, benchmark, budget.name),
            get_run_folder(out, benchmark.name, candidate.name),
            stack=stack,
        )
        for benchmark in load_suite(name)
        for candidate in chosen
        if not explain_unfit(candidate, benchmark)
    ]
    if not plans:
        raise FarshiftError(f"none of {', '.join(only) or 'the baselines'} fits a benchmark of the suite {name}")
    return plans


def get_run_folder(out: Path, benchmark: str, name: str) -> Path:
    """The run folder of a baseline on a benchmark under `out`."""
    return out / benchmark.replace("/", "__") / name
