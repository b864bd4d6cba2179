"""Recipes of baselines: one TOML file each, found in folders and checked without importing torch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..core.documents import parse_toml
from ..core.errors import BadDefinition, ModelError, UnknownName
from ..core.plugins import REMEMBERED, find_files_by_name, read_definition, validate_record
from .ranges import explain_out_of_range

Kind = Literal["any", "domain", "length", "compositional", "easy-to-hard", "corrupted-label"]
Role = Literal["plain", "helps"]
Touchable = Literal["train", "groups", "id_val", "ood_val", "unlabelled", "test batches", "clean rate"]
"""The data that an algorithm may require: `TOUCHABLE` of `training/algorithm.py` says what each is."""
Setting = bool | int | float | str | list[int]

HERE = Path(__file__).parent
BOOSTING = ("xgboost", "lightgbm", "catboost")
"""Packages of the extra `boosting`, whose classes are used as those of scikit-learn."""
ESTIMATOR = rf"^(sklearn|{'|'.join(BOOSTING)}|farshift\.baselines)(\.[A-Za-z_][A-Za-z0-9_]*)+$"
BUDGETS = ("quick", "full")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RecipeBudget(_Strict):
    """What one replica may spend under a budget: optimiser steps."""

    steps: Annotated[int, Field(gt=0)]
    settings: dict[str, Setting] = {}
    """Settings that differ from the recipe's under this budget only: a method's published settings may need more steps
    than a short budget has."""
    reference: str = ""
    """For `full`: what the paper or its released code trains for; empty if it has not been looked up."""


class BenchmarkOverride(_Strict):
    """What a recipe changes on one benchmark, and the role that it has there."""

    role: Role | None = None
    settings: dict[str, Setting] = {}
    quick: RecipeBudget | None = None
    full: RecipeBudget | None = None

    def for_budget(self, budget: str) -> BenchmarkOverride:
        """As `Recipe.for_budget`, for the changes on one benchmark."""
        spend = _get_budget(self, budget)
        return self.model_copy(update={"settings": self.settings | spend.settings}) if spend else self


class Recipe(_Strict):
    """An algorithm, a network and their settings; or an estimator in the manner of scikit-learn, with its settings.

    `network` and `algorithm` name files under `networks/` and `algorithms/`; `estimator` is a dotted
    class of scikit-learn, of a package of `BOOSTING` or of `farshift.baselines`. `on` has what differs on single
    benchmarks.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", description="lower-case letters, digits and -")]
    title: str
    kind: Kind = "any"
    citation: str
    network: str | None = None
    algorithm: str | None = None
    suits: list[str] = ["*"]
    """The benchmarks that it is meant for, as shell patterns."""
    estimator: Annotated[str, Field(pattern=ESTIMATOR)] | None = None
    whole_answers: bool = False
    """Whether an estimator does sequence tasks: each answer of the training rows is a class."""
    regressor: bool = False
    """Whether an estimator predicts numbers: it then does regression tasks only."""
    encoder: str | None = None
    """A frozen pretrained encoder of transformers whose features replace texts or images: `org/name` of the Hub, or a
    folder."""
    published: str | None = None
    """The file of `published/` that its settings come from."""
    settings: dict[str, Setting] = {}
    quick: RecipeBudget | None = None
    full: RecipeBudget | None = None
    on: dict[str, BenchmarkOverride] = {}

    @model_validator(mode="after")
    def _check_completeness(self) -> Recipe:
        if self.estimator is not None:
            if self.network or self.algorithm or self.quick or self.full:
                raise ValueError("an estimator has no network, algorithm, [quick] or [full]: it stops by itself")
            if self.regressor and self.whole_answers:
                raise ValueError("whole_answers is for classifiers: a regressor predicts numbers")
        elif self.whole_answers:
            raise ValueError("whole_answers is for estimators: a network generates its answers")
        elif self.regressor:
            raise ValueError("regressor is for estimators: for a network, the algorithm determines the tasks")
        elif not (self.network and self.algorithm and self.quick and self.full):
            raise ValueError("give network, algorithm, [quick] and [full] (or estimator alone)")
        return self

    def settings_on(self, benchmark: str) -> dict[str, Setting]:
        """The settings in force on `benchmark`: the recipe's own, overridden by those for that benchmark."""
        return self.settings | (self.on[benchmark].settings if benchmark in self.on else {})

    def for_budget(self, budget: str) -> Recipe:
        """The recipe with its settings for one budget; settings for one benchmark still override them. A budget other
        than `quick` or `full` has none."""
        on = {name: override.for_budget(budget) for name, override in self.on.items()}
        spend = _get_budget(self, budget)
        if on == self.on and not (spend and spend.settings):
            return self
        return self.model_copy(update={"settings": self.settings | (spend.settings if spend else {}), "on": on})

    def role_on(self, benchmark: str) -> Role | None:
        return self.on[benchmark].role if benchmark in self.on else None

    def steps(self, budget: str, benchmark: str) -> int:
        """Optimiser steps under the budget `quick` or `full`; `UnknownName` for another budget."""
        if budget not in BUDGETS:
            raise UnknownName("budget", budget, BUDGETS, "(or give the steps)")
        special = getattr(self.on.get(benchmark), budget, None)
        spend = special or getattr(self, budget)
        assert isinstance(spend, RecipeBudget), "only estimators have no steps"
        return spend.steps


def _get_budget(given: Recipe | BenchmarkOverride, budget: str) -> RecipeBudget | None:
    return {"quick": given.quick, "full": given.full}.get(budget)


S = TypeVar("S", "Recipe", BenchmarkOverride)


def map_settings(section: S, change: Callable[[dict[str, Setting]], dict[str, Setting]]) -> S:
    """A recipe, or what it changes on one benchmark, with `change` applied to its settings and to those of each budget
    and benchmark."""
    update: dict[str, Any] = {"settings": change(section.settings)}
    for budget in BUDGETS:
        if spend := _get_budget(section, budget):
            update[budget] = spend.model_copy(update={"settings": change(spend.settings)})
    if isinstance(section, Recipe):
        update["on"] = {name: map_settings(override, change) for name, override in section.on.items()}
    return section.model_copy(update=update)


def drop_settings(recipe: Recipe, changed: Mapping[str, Any]) -> Recipe:
    """The recipe for all benchmarks, with the same steps and no settings but those in `changed`."""
    bare = map_settings(recipe.model_copy(update={"on": {}, "suits": ["*"]}), lambda _: {})
    return bare.model_copy(update=dict(changed))


Sort = Literal["recipes", "networks", "algorithms", "optimisers", "schedules", "positions", "formats", "augmentations"]


def find_plugin_files(sort: Sort) -> dict[str, Path]:
    """Every plug-in file of a sort, by name, of this package and of FARSHIFT_PATH."""
    return find_files_by_name(f"baselines/{sort}", ".toml" if sort == "recipes" else ".py")


def read_literal(file: Path, name: str, default: Any = ...) -> Any:
    """Read a literal assigned at the top level of a Python file from its syntax tree, without importing the file. If
    there is none, `default`; without one `BadDefinition`."""
    literal = _parse_literal(file.read_text(encoding="utf-8"), file, name)
    if literal is default is ...:
        raise BadDefinition(f"{file} has no {name}: add it at the top, as a literal")
    return default if literal is ... else deepcopy(literal)


@lru_cache(maxsize=REMEMBERED)
def _parse_literal(text: str, file: Path, name: str) -> Any:
    for node in parse_code(text, file).body:
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            try:
                return ast.literal_eval(node.value)  # type: ignore[attr-defined]
            except ValueError as error:
                raise BadDefinition(f"{file}: {name} must be a literal") from error
    return ...


def parse_code(text: str, file: Path) -> ast.Module:
    """The syntax tree of a Python file; `BadDefinition` names the line of an error."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise BadDefinition(f"{file}, line {error.lineno}: {error.msg}") from error


class Declaration(BaseModel):
    """What an algorithm's file states at its top. kind: of shift. touches: the data that it requires. search: the
    ranges of settings, `draw_settings` of `running/search.py`."""

    model_config = ConfigDict(alias_generator=str.upper)

    kind: Kind = "any"
    citation: str = ""
    tasks: tuple[Literal["classification", "sequence", "regression"], ...] = ("classification",)
    touches: tuple[Touchable, ...] = ("train",)
    search: dict[str, list[Any]] = {}


def read_declaration(algorithm: str) -> Declaration:
    """What the file of an algorithm states; `BadDefinition` where a value is none of those that it may have."""
    file = find_named_file("algorithm", "algorithms", algorithm)
    stated = {name: read_literal(file, name, None) for name in map(str.upper, Declaration.model_fields)}
    return validate_record({name: value for name, value in stated.items() if value is not None}, file, Declaration)


def read_settings(file: Path) -> dict[str, Setting]:
    """A file's `SETTINGS`: the default of each setting."""
    settings: dict[str, Setting] = read_literal(file, "SETTINGS")
    return settings


def collect_defaults(recipe: Recipe) -> dict[str, Setting]:
    """Every setting that a network recipe may give, with its default: those of the trainer, the encoding, the
    optimiser, the schedule, the augmentations, the network and the algorithm. The algorithm may override the defaults
    of all others."""
    assert recipe.network and recipe.algorithm, "an estimator's defaults are its own"
    trainer = read_settings(HERE / "training" / "trainer.py")
    algorithm = read_settings(find_named_file("algorithm", "algorithms", recipe.algorithm))
    known: dict[str, Setting] = trainer | read_settings(HERE / "encoding" / "encoding.py")
    for sort in ("optimiser", "schedule"):
        chosen = recipe.settings.get(sort, algorithm.get(sort, trainer[sort]))
        known |= read_settings(find_named_file(sort, f"{sort}s", str(chosen)))  # type: ignore[arg-type]
    for name in str(recipe.settings.get("augment", algorithm.get("augment", known["augment"]))).split("+"):
        known |= read_settings(find_named_file("augmentation", "augmentations", name))
    return known | read_settings(find_named_file("network", "networks", recipe.network)) | algorithm


def resolve_settings(recipe: Recipe, benchmark: str, extra: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The settings in force on a benchmark, overridden by `extra` and checked; integers become floats where the default
    is a float."""
    given = recipe.settings_on(benchmark) | dict(extra)
    known = collect_defaults(recipe.model_copy(update={"settings": given}))
    _check_settings(given, known, f"recipe {recipe.name} on {benchmark}")
    merged_settings: dict[str, Any] = known | given
    return {name: float(value) if isinstance(known[name], float) else value for name, value in merged_settings.items()}


def find_named_file(what: str, sort: Sort, name: str) -> Path:
    known = find_plugin_files(sort)
    if name not in known:
        raise UnknownName(what, name, known)
    return known[name]


def _iterate_setting_groups(recipe: Recipe) -> Iterator[tuple[str, dict[str, Setting]]]:
    yield "[settings]", recipe.settings
    sections: dict[str, Recipe | BenchmarkOverride] = {"": recipe} | {
        f'on."{benchmark}"': on for benchmark, on in recipe.on.items()
    }
    for prefix, section in sections.items():
        if isinstance(section, BenchmarkOverride):
            yield f"[{prefix}] settings", section.settings
        for budget, spend in ("quick", section.quick), ("full", section.full):
            if spend and spend.settings:
                yield f"[{prefix}{'.' if prefix else ''}{budget}] settings", spend.settings


def check_recipe(recipe: Recipe, where: str) -> None:
    """`BadDefinition` if a setting is unknown or of another type than its default."""
    if recipe.estimator:
        return  # only scikit-learn knows its settings: they are checked when it is built
    for group, settings in _iterate_setting_groups(recipe):
        _check_settings(
            settings,
            collect_defaults(recipe.model_copy(update={"settings": recipe.settings | settings})),
            f"{where}, {group}",
        )


def _check_settings(settings: Mapping[str, Any], known: Mapping[str, Any], where: str) -> None:
    """`BadDefinition` if a setting is unknown, or of another type than its default."""
    for name, value in settings.items():
        if name not in known:
            raise make_unknown_setting_error(name, known, where)
        default = known[name]
        if type(value) is not type(default) and not (type(value) is int and isinstance(default, float)):
            kind = type(default).__name__
            raise BadDefinition(f"{where}: {name} = {value!r} must be of type {kind}, like its default {default!r}")
        if problem := explain_out_of_range(name, value):
            raise BadDefinition(f"{where}: {name} = {value!r}: {problem}")


def make_unknown_setting_error(name: str, known: Mapping[str, Any], where: str) -> BadDefinition:
    return BadDefinition(f"{where}: {UnknownName('setting', name, known)}")


def read_recipe(file: Path) -> Recipe:
    """Read the recipe in one file; `BadDefinition` names the file and the first error in it."""
    recipe = read_definition(file, Recipe)
    if recipe.name != file.stem:
        raise BadDefinition(f"{file} has the name {recipe.name!r}: it must be that of its file, {file.stem!r}")
    try:
        check_recipe(recipe, str(file))
    except UnknownName as error:
        raise BadDefinition(f"{file}: {error}") from error
    return recipe


def load_recipes() -> dict[str, Recipe]:
    """All recipes of this package and of FARSHIFT_PATH, by name, sorted."""
    recipes_by_name = {name: read_recipe(file) for name, file in find_plugin_files("recipes").items()}
    return dict(sorted(recipes_by_name.items()))


def find_recipe(name: str) -> Recipe:
    """The recipe called `name`; `UnknownName` suggests the nearest."""
    known = find_plugin_files("recipes")
    if name not in known:
        raise UnknownName("baseline", name, known, listed="farshift baselines list")
    return read_recipe(known[name])


_FINE_TUNED: dict[str, Setting] = {"lr": 5e-5, "batch_size": 32, "weight_decay": 0.0}
"""DomainBed's defaults for its ResNets (Gulrajani and Lopez-Paz, ICLR 2021, arXiv:2007.01434)."""


def make_fine_tuned(recipe: Recipe, weights: str, **chosen: Setting) -> Recipe:
    """The recipe's algorithm on a pretrained network that is fine-tuned, with DomainBed's learning rate and batch size;
    of its own settings only those of the algorithm remain. chosen: settings that override all of these."""
    if recipe.algorithm is None:
        raise ModelError(f"{recipe.name} is an estimator and has no network to fine-tune: try --encoder {weights}")
    own = read_settings(find_named_file("algorithm", "algorithms", recipe.algorithm))
    settings = {name: value for name, value in recipe.settings.items() if name in own and name != "lr"}
    rate = {"lr": own["lr"]} if "lr" in own else {}  # a rate that an algorithm sets is its paper's
    settings |= _FINE_TUNED | rate | {"weights": weights} | chosen
    return drop_settings(recipe, {"network": "pretrained", "settings": settings})


def replace_network(recipe: Recipe, network: str) -> Recipe:
    """The recipe's algorithm on another network with that network's defaults; all other settings of the recipe (steps,
    learning rate, algorithm) remain. `UnknownName` for an unknown network, `ModelError` for an estimator and for a
    network that starts from pretrained weights."""
    if recipe.network is None:
        raise ModelError(f"{recipe.name} is an estimator and has no network: leave --network out")
    find_named_file("network", "networks", network)
    if network == "pretrained":
        raise ModelError("--network pretrained: name its weights instead, such as --fine-tune microsoft/resnet-50")
    if network == recipe.network:
        return recipe
    assert recipe.algorithm
    shared = read_settings(HERE / "training" / "trainer.py") | read_settings(
        find_named_file("algorithm", "algorithms", recipe.algorithm)
    )
    network_settings = {*read_settings(find_named_file("network", "networks", recipe.network))} - {*shared}

    changed = map_settings(
        recipe, lambda settings: {name: value for name, value in settings.items() if name not in network_settings}
    )
    return changed.model_copy(update={"network": network, "suits": ["*"]})


def replace_augmentation(recipe: Recipe, spec: str) -> Recipe:
    """The recipe with augmented rows: `NAME[+NAME..][,setting=value..]`. `BadDefinition` for an unknown setting,
    `ModelError` for an estimator."""
    if recipe.estimator:
        raise ModelError(f"{recipe.name} is an estimator, which does not augment rows: leave --augment out")
    augment, *given = spec.split(",")
    pairs = [assignment.partition("=") for assignment in given]
    if any(not sign for _, sign, _ in pairs):
        raise BadDefinition(f"--augment {spec}: give settings as name=value, separated by commas")
    augmented_recipe = recipe.model_copy(update={"settings": recipe.settings | {"augment": augment}})
    settings = augmented_recipe.settings | {name: parse_setting(text) for name, _, text in pairs}
    _check_settings(settings, collect_defaults(augmented_recipe), f"--augment {spec}")
    return recipe.model_copy(update={"settings": settings})


def parse_setting(text: str) -> Setting:
    """A setting's value as TOML, or else the text itself."""
    try:
        value: Setting = parse_toml(f"value = {text}")["value"]
    except ValueError:
        return text
    return value
